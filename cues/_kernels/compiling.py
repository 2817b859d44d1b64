"""How kernels are compiled, and how those of the meters are kept: one cache for all processes.

numba's own cache notices a changed file only for the function that was called first, not for the helpers in other
files that were compiled into it, and it gives up beside a read-only install. Here the folder's name is a digest of
every kernel's source and of the compiler's version: any number of processes, installs and container images with the
same code share it, stale code cannot be found, and a folder that may only be read (built into an image) still serves.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numba.core.caching
from llvmlite import __version__ as llvmlite_version  # type: ignore[import-untyped]  # it has no types
from llvmlite import binding

from cues._kernels.folders import cache_folders, source_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# numba's inner part is typed in part only.
_caching: Any = numba.core.caching

_Result = TypeVar("_Result")

__all__ = ["are_cached", "fused_kernel", "kernel", "meter_kernel"]


def kernel(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """`function` compiled into the object file of the mixing kernels (`cues._kernels.building`), which is its cache.

    `error_model="numpy"` leaves out the zero-division branch, which alone keeps loops from being vectorized.
    """
    return numba.njit(error_model="numpy")(function)


def meter_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled at its first call for the types it gets, and kept in numba's cache.

    The cache's key does not know these options: no function may be compiled with two sets of them.
    """
    return _cached(numba.njit(error_model="numpy", nogil=True)(function), function)


def fused_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `meter_kernel`, but products may be added before they are rounded: 10 % less time for a recursive filter.

    For meters alone. Which products are fused is the compiler's choice, and a mix must not change with how it was cut.
    """
    return _cached(numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})(function), function)


def _cached(compiled: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    folder = _folder()
    # What its enable_caching() does, with another cache.
    compiled._cache = _caching.NullCache() if folder is None else _SharedCache(function)  # noqa: SLF001
    return compiled  # type: ignore[no-any-return]  # numba's dispatcher


def are_cached(kernels: Iterable[str]) -> bool:
    """Whether the cache holds each of these kernels for this code and this processor."""
    folder = _folder()
    return folder is not None and all(any(folder.glob(f"{kernel}-*.nbi")) for kernel in kernels)


@cache
def _folder() -> Path | None:
    """Where numba's cache is; None where nothing can be kept and nothing is there."""
    for base in cache_folders():
        folder = base / _digest()
        if _writable(folder) or any(folder.glob("*.nbi")):
            return folder
    return None


@cache
def _digest() -> str:
    """A name for this code under this compiler for this processor.

    numba tells processors apart inside of an index, but two processes that write it at once can mix up whose code is
    whose, where machines of several kinds share a folder.
    """
    target = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES"), _processor()
    return source_digest(f"numba {numba.__version__} llvmlite {llvmlite_version} {target}")


def _processor() -> str:
    try:
        return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    except RuntimeError:  # not every system tells; numba then compiles for its name alone
        return str(binding.get_host_cpu_name())


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


class _Locator:
    """Tells numba's cache where to look; the interface is `numba.core.caching._CacheLocator`."""

    _py_file = __file__

    @classmethod
    def from_function(cls, _function: Callable[..., Any], _file: str) -> _Locator:
        return cls()

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(_folder())

    def get_source_stamp(self) -> str:
        return _digest()

    def get_disambiguator(self) -> str:
        return "shared"


class _Implementation(_caching.CompileResultCacheImpl):  # type: ignore[misc]  # Any, see above
    _locator_classes = (_Locator,)


class _SharedCache(_caching.FunctionCache):  # type: ignore[misc]  # Any, see above
    _impl_class = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As inherited; a damaged file counts as none."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001  (whatever unpickling met, compiling again mends it)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """As inherited, over an index that is damaged; where the folder cannot be written, the kernel is not kept."""
        try:
            super().save_overload(sig, data)
        except OSError:
            return
        except Exception:  # noqa: BLE001  (as above: it reads the index first)
            with contextlib.suppress(OSError):
                self.flush()  # numba's word for an empty index
                super().save_overload(sig, data)
