"""Warm-up: loads the compiled mixing loops ahead of live sessions."""

from __future__ import annotations

import logging
import os
import time
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from cues.errors import CueValueError
from cues.mixing.backends import selection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["are_cached", "has_object_file", "load_kernels", "warm_up", "write_object_file"]

logger = logging.getLogger(__name__)

_lock = Lock()


def warm_up() -> None:
    """Load the compiled mixing loops; call it once, before serving.

    They are one object file in `$CUES_CACHE_DIR`, or else in the user's cache folder, which llvmlite loads in less time
    than numpy's import takes. The first call on a machine compiles it with numba (11 s of processor time), and logs
    that at INFO. Later calls do nothing. Existing mixers switch at their next command.

    Without this call, without numba on a machine that has no file yet (logged as a WARNING), or with
    `NUMBA_DISABLE_JIT=1`, numpy mixes: the same sound, at tens of microseconds a frame instead of less than one.

    On CPython with a GIL, `Mixer.mix` and `Mixer.mix_pcm16` become compiled methods, which use only the stable ABI.
    `CUES_NO_ENTRIES=1` in the environment disables them: frames then go through ctypes, for the same bits.
    """
    with _lock:
        if selection.kernels() is None and os.environ.get("NUMBA_DISABLE_JIT", "0") in {"", "0"}:
            selection.install(load_kernels())


def write_object_file(base: Path | None = None, level: str | None = None) -> tuple[Path, str]:
    """Path of a new object file that processes with `CUES_CACHE_DIR=base` load, and its level.

    Without `base`, it is in the first cache folder that can be written; without `level`, for this processor. Raises
    `ImportError` or `RuntimeError` if the loops have to be compiled, and numba is not installed or cannot do it, and
    `OSError` if the file cannot be written, or others may write to its folder.
    """
    from cues._kernels import machine_code, object_file

    level = level or machine_code.usable_levels()[0]
    if level not in machine_code.levels():
        raise CueValueError(f"level is {level!r}; it must be one of {', '.join(machine_code.levels())}")
    code = object_file.find([level])
    if code is None:
        code = _compiled(level)
    path = object_file.keep(code, level) if base is None else object_file.store(code, level, base)
    if path is None:
        raise OSError("no cache folder can be written")
    return path, level


def has_object_file() -> bool:
    """Whether `warm_up` has nothing to compile."""
    try:
        from cues._kernels import machine_code, object_file
    except ImportError:
        return False
    return object_file.find(machine_code.usable_levels()) is not None


def are_cached(kernels: Sequence[str]) -> bool:
    """Whether all of these compiled loops of meters are in the cache; imports numba (0.2 s)."""
    if not kernels:
        return True
    from cues._kernels import compiling

    return compiling.are_cached(kernels)


@cache
def load_kernels() -> Any:
    """The compiled loops, a `MachineCode`; None, and a warning, if they cannot be had."""
    try:
        from cues._kernels import object_file
        from cues._kernels.machine_code import MachineCode, usable_levels

        best, *_ = levels = usable_levels()
        code = object_file.find(levels)
        if code is None:
            code = _compiled(best)
            kept = object_file.keep(code, best)
            logger.info("the mixing loops are kept in %s", kept or "no folder: none can be written")
        return MachineCode(code)
    except Exception as error:  # noqa: BLE001  (whatever a compiler or a system refuses, numpy mixes)
        logger.warning("numpy mixes, at tens of microseconds a frame instead of less than one: %s", error)
        return None


def _compiled(level: str) -> bytes:
    logger.info("compiling the mixing loops for %s, once for this machine", level)
    begin = time.perf_counter()
    from cues._kernels import building

    code = building.build(level)
    logger.info("compiled the mixing loops in %.1f s", time.perf_counter() - begin)
    return code
