"""How kernels are compiled and kept: one set of options for all of them, one cache for all processes.

numba's own cache notices a changed file only for the function that was called first, not for the helpers in other
files that were compiled into it, and it gives up beside a read-only install. Here the folder's name is a digest of
every kernel's source and of the compiler's version: any number of processes, installs and container images with the
same code share it, stale code cannot be found, and a folder that may only be read (built into an image) still serves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numba.core.caching
import numba.core.ccallback
import numba.core.sigutils
from llvmlite import __version__ as llvmlite_version  # type: ignore[import-untyped]  # it has no types
from llvmlite import binding

from cues.paths import user_cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# numba's inner parts are typed in part only.
_caching: Any = numba.core.caching
_callbacks: Any = numba.core.ccallback
_signatures: Any = numba.core.sigutils

__all__ = ["are_cached", "callback", "fused_kernel", "kernel", "kernel_now"]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled at its first call for the types it gets, or into the kernel that calls it.

    `error_model="numpy"` leaves out the zero-division branch, which alone keeps loops from being vectorized. The
    cache's key does not know these options: no function may be compiled with two sets of them.
    """
    return _cached(numba.njit(error_model="numpy", nogil=True)(function), function)


def fused_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, but products may be added before they are rounded: 10 % less time for a recursive filter.

    For meters alone. Which products are fused is the compiler's choice, and a mix must not change with how it was cut.
    """
    return _cached(numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})(function), function)


def _cached(compiled: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    compiled._cache = _cache_of(function)  # noqa: SLF001  (what its enable_caching() does, with another cache)
    return compiled  # type: ignore[no-any-return]  # numba's dispatcher


def kernel_now(signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function at once, for this signature and never for another.

    It keeps the GIL: a frame takes a microsecond, and whoever gives the GIL away may wait 5 ms to get it back.
    """

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Any = _cached(numba.njit(error_model="numpy")(function), function)
        compiled.compile(signature)
        compiled.disable_compile()
        return compiled  # type: ignore[no-any-return]  # numba's dispatcher

    return compile_now


def callback(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function to one that C calls with machine words; its `.address` is where."""

    def compile_now(function: Callable[..., Any]) -> Any:
        arguments, result = _signatures.normalize_signature(signature)
        compiled = _callbacks.CFunc(function, (arguments, result), locals={}, options={"error_model": "numpy"})
        compiled._cache = _cache_of(function)  # noqa: SLF001  (as in `kernel`)
        compiled.compile()
        return compiled

    return compile_now


def are_cached(kernels: Iterable[str]) -> bool:
    """Whether the cache holds each of these kernels for this code and this processor."""
    folder = _folder()
    return folder is not None and all(any(folder.glob(f"{kernel}-*.nbi")) for kernel in kernels)


@cache
def _folder() -> Path | None:
    """Where compiled kernels are kept; None where nothing can be kept and nothing is there."""
    named = [os.environ.get(variable) for variable in ("CUES_CACHE_DIR", "NUMBA_CACHE_DIR")]
    candidates = [Path(name) for name in named if name]
    users = user_cache_dir()
    if users is not None:
        candidates.append(users)
    usable = [base / "kernels" / _digest() for base in candidates]
    for folder in usable:
        if _writable(folder) or any(folder.glob("*.nbi")):
            return folder
    return _private_temporary_folder()


@cache
def _digest() -> str:
    """A name for this code under this compiler for this processor.

    numba tells processors apart inside of an index, but two processes that write it at once can mix up whose code is
    whose, where machines of several kinds share a folder.
    """
    target = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES"), _processor()
    digest = hashlib.sha256(f"numba {numba.__version__} llvmlite {llvmlite_version} {target}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]


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


def _private_temporary_folder() -> Path | None:
    """A folder among the temporary files that nobody else can write to: what lies in a cache is run as code."""
    if not hasattr(os, "getuid"):
        return None
    base = Path(tempfile.gettempdir()) / f"cue-engine-{os.getuid()}"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        status = base.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    folder = base / "kernels" / _digest()
    return folder if private and _writable(folder) else None


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


def _cache_of(function: Callable[..., Any]) -> Any:
    return _caching.NullCache() if _folder() is None else _SharedCache(function)
