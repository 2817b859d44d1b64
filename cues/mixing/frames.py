"""The Python path of a frame: check it, convert it, mix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cues._kernels import layout
from cues.errors import CueTypeError, CueValueError
from cues.signal.pcm import bytes_of_pcm16, float_of_pcm16, pcm16_of_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from cues.mixing.scheduler import Scheduler

    Samples = NDArray[np.float32]

__all__ = ["mix_bytes", "mix_frame", "mix_in_parts"]

_FLOAT32 = np.dtype(np.float32)  # the one that almost every array has: a comparison of two takes 0.1 µs


def mix_frame(scheduler: Scheduler, frame: ArrayLike, out: Samples | None) -> Samples:
    """`Mixer.mix`."""
    source = _float32_frame(frame)
    if out is not None:
        _check_out(out, len(source))
    if len(source) == 0:
        return source if out is None else out
    if scheduler.passes(len(source)) and not _is_bad(scheduler, source):
        scheduler.let_pass(len(source), lambda: source)
        if out is None:
            return source
        if out is not source:
            out[:] = source
        return out
    contiguous = source if source.flags.c_contiguous else np.ascontiguousarray(source)
    target = np.empty(len(source), dtype=np.float32) if out is None else np.asarray(out)
    if out is not None and target is not contiguous and np.may_share_memory(target, contiguous):
        contiguous = contiguous.copy()
    scheduler.mix(contiguous, target)
    return target if out is None else out


def mix_in_parts(
    scheduler: Scheduler, entry: Callable[[Samples, Samples], Samples], frame: Samples, out: Samples | None
) -> Samples | None:
    """`Mixer.mix` of a frame in which something changes, by the compiled entry; None if it takes checks or a listener.

    The entry needs a third of the time of `Scheduler.mix` for each part, and comes back to Python where it must.
    """
    if scheduler.listens or frame.dtype is not _FLOAT32 or frame.ndim != 1:
        return None
    target = np.empty(len(frame), dtype=np.float32) if out is None else out
    if out is not None and out is not frame and not _are_apart(frame, out):
        return None
    done = 0
    while done < len(frame):
        end = min(len(frame), done + scheduler.planned() - scheduler.row.position)
        entry(frame[done:end], target[done:end])
        done = end
    return target


def _are_apart(frame: Samples, out: Samples) -> bool:
    """Whether `out` surely fits and has memory of its own."""
    fits = type(out) is np.ndarray and out.dtype is _FLOAT32 and out.shape == frame.shape and out.flags.writeable
    return fits and out.base is None and frame.base is None


def mix_bytes(scheduler: Scheduler, data: bytes) -> bytes:
    """`Mixer.mix_pcm16`."""
    raw = bytes_of_pcm16(data)
    if len(raw) % 2:
        raise CueValueError(f"data holds {len(raw)} bytes; samples of 16 bits need an even number of them")
    if not raw:
        return data
    if scheduler.passes(len(raw) // 2):
        scheduler.let_pass(len(raw) // 2, lambda: float_of_pcm16(raw))
        return data
    samples = float_of_pcm16(raw)
    scheduler.mix(samples, samples)
    return pcm16_of_float(samples)


def _is_bad(scheduler: Scheduler, source: Samples) -> bool:
    """Whether a guarded mixer must silence samples of `source`."""
    return bool(scheduler.row.flags & layout.FLAG_GUARD) and not np.isfinite(source).all()


def _float32_frame(frame: ArrayLike) -> Samples:
    """`frame` as a 1-D float32 array, not copied if it is one."""
    if type(frame) is np.ndarray and frame.dtype is _FLOAT32 and frame.ndim == 1:
        return frame
    try:
        array = np.asarray(frame)
    except (TypeError, ValueError):
        raise CueTypeError(f"frame is a {type(frame).__name__}; it must be an array of floats") from None
    if array.dtype == np.float32 and array.ndim == 1:
        return array
    if array.dtype.kind != "f":
        raise CueTypeError(
            f"frame has dtype {array.dtype}; it must be floating point, full scale ±1.0 (int16 bytes: mix_pcm16)"
        )
    if array.ndim != 1:
        raise CueValueError(f"frame has shape {array.shape}; it must be 1-D: one channel")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _check_out(out: Any, n_samples: int) -> None:
    """Raise unless `out` can hold `n_samples` float32 samples."""
    if not isinstance(out, np.ndarray) or (out.dtype is not _FLOAT32 and out.dtype != np.float32):
        raise CueTypeError(f"out is {type(out).__name__}; it must be a float32 array")
    flags = out.flags
    if out.shape != (n_samples,) or not flags.c_contiguous or not flags.writeable:
        raise CueValueError(
            f"out has shape {out.shape}; it must be a writeable, contiguous array of shape ({n_samples},)"
        )
