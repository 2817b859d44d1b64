"""The mixing loops in numpy: what a process that never warms up runs, and what the kernels are tested against.

Every function has a namesake in `cues._kernels.mixing` and does the same float32 arithmetic in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cues._kernels import layout
from cues.signal.fades import smoothstep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cues.mixing.level import SpeechLevel
    from cues.mixing.limiter import Limiter
    from cues.mixing.sound import Sound
    from cues.mixing.state import Row

    Samples = NDArray[np.float32]

__all__ = ["mix_row"]

_F = np.float32
_HALF_PI = _F(np.pi / 2)
_NEARLY_FULL = _F(0.999)
_SINE = tuple(_F(c) for c in (1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0))
_COSINE = tuple(_F(c) for c in (-1 / 3628800, 1 / 40320, -1 / 720, 1 / 24, -1 / 2, 1.0))


def _progress(k: int, n: int, length: int) -> Samples:
    """Where samples `k` … `k + n − 1` of a ramp of `length` samples are on their way from 0 to 1."""
    samples: Samples = np.arange(k, k + n, dtype=np.int32).astype(np.float32)
    samples *= _F(1) / _F(length)
    return samples


def _ramp(u: Samples, g0: np.float32, g1: np.float32, slope: np.float32) -> Samples:
    u3 = u * u * u
    arrest = u + u3 * (u * (_F(8) - _F(3) * u) - _F(6))
    gain: Any = g0 + (g1 - g0) * (u3 * (_F(10) + u * (_F(6) * u - _F(15)))) + slope * arrest
    return np.asarray(gain)


def _crossfade(u: Samples, g0: np.float32, g1: np.float32) -> Samples:
    angle: Samples = _HALF_PI * smoothstep(u)
    square = angle * angle
    sine: Samples = np.zeros_like(u)
    cosine: Samples = np.zeros_like(u)
    for coefficient in _SINE:
        sine = coefficient + square * sine
    for coefficient in _COSINE:
        cosine = coefficient + square * cosine
    gain: Samples = g0 * cosine + g1 * (angle * sine)
    return gain


def _gain_speech(row: Row, target: Samples) -> np.float32:
    """Apply the speech's gain from the session's position on; the largest gain on the way."""
    first = position = row.position
    end = position + len(target)
    largest = _F(0)
    while position < end:
        if row.words[layout.NEXT_T0_I64] <= position:
            row.promote()
        stop = min(end, int(row.words[layout.NEXT_T0_I64]))
        t0, n = int(row.words[layout.SPEECH_T0_I64]), int(row.ints[layout.SPEECH_N_I32])
        g0, g1 = row.floats[layout.SPEECH_G0_F32], row.floats[layout.SPEECH_G1_F32]
        if position < t0 + abs(n):
            stop = min(stop, t0 + abs(n))
            u = _progress(position - t0, stop - position, abs(n))
            slope = row.floats[layout.SPEECH_SLOPE_F32]
            gain = _ramp(u, g0, g1, slope) if n > 0 else _crossfade(u, g0, g1)
            target[position - first : stop - first] *= gain
            largest = max(largest, max(g0, g1) + _F(0.25) * abs(slope) if n > 0 else g0 + g1)
        else:
            if g1 != 1.0:
                target[position - first : stop - first] *= g1
            largest = max(largest, g1)
        position = stop
    return largest


def _add_voice(row: Row, number: int, sound: Sound, target: Samples) -> np.float32:
    """Add one voice from the session's position on; frees its slot at its end. The largest magnitude it can add."""
    words, ints, floats = row.voice(number)
    start = int(words[layout.VOICE_START_I64])
    flags = int(ints[layout.VOICE_N_I32])
    length, ramp = sound.length, flags & layout.RAMP_MASK
    ramp_start = start + int(ints[layout.VOICE_T0_I32])
    ramp_end = ramp_start + ramp
    finish = row.voice_end(number, length)
    g0, g1 = floats[layout.VOICE_G0_F32], floats[layout.VOICE_G1_F32]
    position, end = row.position, row.position + len(target)
    now, stop = max(position, start), min(end, finish)
    while now < stop:
        offset = (now - start) % length
        until = min(stop, now + length - offset)
        until = min(until, ramp_start if now < ramp_start else ramp_end if now < ramp_end else until)
        gain: Samples | np.float32 = g0 if now < ramp_start else g1
        if ramp_start <= now < ramp_end:
            u = _progress(now - ramp_start, until - now, ramp)
            gain = g0 + (g1 - g0) * smoothstep(u)
        target[now - position : until - position] += sound.samples[offset : offset + until - now] * gain
        now = until
    if end >= finish:
        words[layout.VOICE_SOUND_I64] = 0
    largest: np.float32 = sound.peak * max(g0, g1)
    return largest


def _hear(row: Row, speech: Samples, position: int) -> None:
    """Note the last sample that is no pause."""
    loud = np.flatnonzero((speech.view(np.int32) & 0x7FFFFFFF) > layout.QUIET_BITS)
    if len(loud):
        row.words[layout.HEARD_I64] = position + int(loud[-1]) + 1


def _hold_ceiling(target: Samples) -> int:
    """Cut off what is outside of ±1.0; how many samples that were."""
    count = int((np.abs(target) > 1).sum())
    np.clip(target, -1, 1, out=target)
    return count


def mix_row(  # noqa: PLR0917  (as the kernel: the row, what it points to, and the frame)
    row: Row,
    sounds: Sequence[Sound | None],
    limiter: Limiter | None,
    level: SpeechLevel | None,
    source: Samples,
    target: Samples,
) -> None:
    """Mix `source` into `target` (which may be the same array) and advance the row's position."""
    position = row.position
    if level is not None:
        level.hear(source, position)
    end = row.busy_until(sounds) if limiter is None else layout.NEVER  # a limiter's output is late: all goes through it
    busy = target[: max(min(end - position, len(target)), 0)]  # what comes after is the caller's, sample for sample
    _hear(row, source if row.ints[layout.FLAGS_I32] & layout.FLAG_LISTEN else source[: len(busy)], position)
    if source is not target:
        target[:] = source
    checked = target if row.ints[layout.FLAGS_I32] & layout.FLAG_GUARD else busy
    finite = np.isfinite(checked)
    if not finite.all():
        row.ints[layout.NONFINITE_I32] += np.int32(len(checked) - int(finite.sum()))
        checked[~finite] = 0.0
    peak = np.abs(busy).max(initial=_F(0))
    with np.errstate(over="ignore"):
        bound = peak * _gain_speech(row, busy)
        for number in row.sounding():
            sound = sounds[number]
            assert sound is not None
            bound += _add_voice(row, number, sound, busy)
        row.words[layout.POSITION_I64] = position + len(target)
        flags = int(row.ints[layout.FLAGS_I32]) & ~layout.FLAG_BUSY
        row.ints[layout.FLAGS_I32] = flags | layout.FLAG_BUSY if end > position + len(target) else flags
        if limiter is not None:
            row.ints[layout.LIMITED_I32] += np.int32(limiter.limit(target))
        elif bound > _NEARLY_FULL:
            row.ints[layout.LIMITED_I32] += np.int32(_hold_ceiling(busy))
    if max(row.ints[layout.LIMITED_I32], row.ints[layout.NONFINITE_I32]) >= layout.COUNTED:
        row.words[layout.WAKE_I64] = -1
