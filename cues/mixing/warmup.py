"""Warm-up: loads the compiled mixing loops ahead of live sessions."""

import os
from pathlib import Path
from threading import Lock

from cues._kernels import object_file
from cues._kernels.object_file import load_kernels
from cues.errors import CueValueError
from cues.mixing.backends import selection

__all__ = ["has_object_file", "load_kernels", "warm_up", "write_object_file"]

_lock = Lock()


def warm_up() -> None:
    """Load the compiled mixing loops; call it once, before serving.

    They are one object file in `$CUES_CACHE_DIR`, or else in the user's cache folder, which llvmlite loads in less time
    than numpy's import takes. The first call on a machine compiles it with numba (14 s of processor time), and logs
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
    """Path of a new object file that processes with `CUES_CACHE_DIR=base` load, and its level."""
    # Without `base`, it is in the first cache folder that can be written; without `level`, for this processor. Raises
    # `ImportError` or `RuntimeError` if the loops have to be compiled, and numba is not installed or cannot do it, and
    # `OSError` if the file cannot be written, or others may write to its folder.
    from cues._kernels import machine_code

    level = level or machine_code.usable_levels()[0]
    if level not in machine_code.levels():
        raise CueValueError(f"level is {level!r}; it must be one of {', '.join(machine_code.levels())}")
    code = object_file.find([level]) or object_file.compiled_code(level)
    path = object_file.keep(code, level) if base is None else object_file.store(code, level, base)
    if path is None:
        raise OSError("no cache folder can be written")
    return path, level


def has_object_file() -> bool:
    """Whether `warm_up` has nothing to compile."""
    try:
        from cues._kernels.machine_code import usable_levels
    except ImportError:
        return False
    return object_file.find(usable_levels()) is not None
