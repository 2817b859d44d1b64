"""The way of a frame through Python: it is checked, converted, cut where the plan changes, and mixed part by part."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cues._kernels import layout
from cues.arrays import Samples
from cues.errors import CueTypeError, CueValueError
from cues.mixing.backends import selection
from cues.mixing.scheduler import Scheduler
from cues.mixing.state import speech_bits
from cues.signal.pcm import bytes_of_pcm16, float_of_pcm16, pcm16_of_float

__all__ = ["checked_frame", "mix_bytes", "mix_frame"]

_FLOAT32 = np.dtype(np.float32)  # the one that almost every array has: a comparison of two takes 0.1 µs


def mix_frame(scheduler: Scheduler, frame: ArrayLike, out: Samples | None) -> Samples:
    """`Mixer.mix`."""
    source = checked_frame(frame, scheduler.channels)
    if out is not None:
        _check_out(out, source.shape)
    if len(source) == 0:
        return source if out is None else out
    contiguous = source if source.flags.c_contiguous else np.ascontiguousarray(source)
    target = None if out is None else np.asarray(out)
    if target is not None and target is not contiguous and np.may_share_memory(target, contiguous):
        contiguous = contiguous.copy()
    mixed = _mix_parts(scheduler, contiguous, target)
    if out is None:
        return source if mixed is contiguous else mixed
    return out


def mix_bytes(scheduler: Scheduler, data: bytes) -> bytes:
    """`Mixer.mix_pcm16`."""
    raw, channels = bytes_of_pcm16(data), scheduler.channels
    if len(raw) % (2 * channels):
        needed = "an even number of them" if channels == 1 else f"a multiple of {2 * channels} for {channels} channels"
        raise CueValueError(f"data holds {len(raw)} bytes; samples of 16 bits need {needed}")
    if not raw:
        return data
    samples = float_of_pcm16(raw)
    frame = samples if channels == 1 else samples.reshape(-1, channels)
    mixed = _mix_parts(scheduler, frame, None)
    return data if mixed is frame else pcm16_of_float(mixed)


def _mix_parts(scheduler: Scheduler, source: Samples, target: Samples | None) -> Samples:
    """Mix `source` into `target` (contiguous, of one shape; may be the same array)."""
    # Without a target the result is `source` if all of it passes unchanged, and else a new array.
    row, words, done, mixed = scheduler.row, scheduler.row.words, 0, target
    while done < len(source):
        end = min(len(source), done + scheduler.planned() - words[layout.POSITION_I64])
        if row.flags & (layout.FLAG_YIELD | layout.FLAG_APART) == layout.FLAG_YIELD:
            heard = speech_bits(source[done:end]) > layout.SPEECH_BITS
            if heard[0]:  # the plan ends the waiting sound at this sample, which is not mixed yet
                words[layout.HEARD_I64] = words[layout.POSITION_I64] + 1
                scheduler.plan()
                continue
            end = done + (int(heard.argmax()) or len(heard))
        # An idle part is its own target, and a kernel's target is writeable.
        is_idle = row.flags & (layout.FLAG_GUARD | ~layout.IDLE_FLAGS) == 0 and source.flags.writeable
        if target is None and not is_idle:  # a guard may find something to silence
            target = np.empty(source.shape, dtype=np.float32)
            target[:done] = source[:done]
        part = source[done:end]
        result = selection.mix_or_pass(scheduler, part, part if target is None else target[done:end])
        mixed = target if result == layout.MIXED else mixed
        done = end
    return source if mixed is None else mixed


def checked_frame(frame: ArrayLike, channels: int) -> Samples:
    """`frame` as a float32 array, not copied if it is one."""
    n_dimensions = 1 if channels == 1 else 2
    if type(frame) is np.ndarray and frame.dtype is _FLOAT32 and frame.ndim == n_dimensions == 1:
        return frame
    try:
        array = np.asarray(frame)
    except (TypeError, ValueError):
        raise CueTypeError(f"frame is a {type(frame).__name__}; it must be an array of floats") from None
    if array.dtype.kind != "f":
        raise CueTypeError(
            f"frame has dtype {array.dtype}; it must be floating point, full scale ±1.0 (int16 bytes: mix_pcm16)"
        )
    if array.ndim != n_dimensions or (channels > 1 and array.shape[1] != channels):
        shape = "1-D: one channel" if channels == 1 else f"(n_samples, {channels})"
        raise CueValueError(f"frame has shape {array.shape}; it must be {shape}")
    with np.errstate(over="ignore"):
        return array if array.dtype == np.float32 else array.astype(np.float32)


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    """Raise unless `out` can hold a frame of float32 samples."""
    if not isinstance(out, np.ndarray) or (out.dtype is not _FLOAT32 and out.dtype != np.float32):
        raise CueTypeError(f"out is {type(out).__name__}; it must be a float32 array")
    flags = out.flags
    if out.shape != shape or not flags.c_contiguous or not flags.writeable:
        raise CueValueError(f"out has shape {out.shape}; it must be a writeable, contiguous array of shape {shape}")
