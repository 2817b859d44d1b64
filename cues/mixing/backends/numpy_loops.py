"""The mixing loops in numpy: what a process that never warms up runs, and what the kernels are tested against.

It is the arithmetic of `cues._kernels.mixing`, in float32 and in the same order, on the scheduler's own numbers, which
the row's are copies of.
"""

from typing import Any

import numpy as np

from cues._kernels import layout
from cues.arrays import Samples
from cues.mixing.scheduler import Scheduler
from cues.mixing.slots import Slots
from cues.mixing.speech_gain import SpeechBus
from cues.mixing.state import speech_bits
from cues.signal.fades import smoothstep

__all__ = ["mix_or_pass"]

_F = np.float32
_HALF_PI = _F(np.pi / 2)
_NEARLY_FULL = _F(0.999)
_FINITE_BITS = 0x7F7FFFFF
_NOTHING = np.zeros(0, dtype=np.int32)
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


def _gain_speech(bus: SpeechBus, position: int, target: Samples) -> np.float32:
    """Apply the speech's gain to the samples from `position` on; the largest gain on the way."""
    first, end, largest = position, position + len(target), _F(0)
    while position < end:
        bus.settle(position)
        stop = min(end, bus.next_t0)
        g0, g1 = _F(bus.g0), _F(bus.g1)
        if position < bus.rest:
            stop, n = min(stop, bus.rest), abs(bus.n)
            u, slope = _progress(position - bus.t0, stop - position, n), _F(bus.slope)
            gain = _ramp(u, g0, g1, slope) if bus.n > 0 else _crossfade(u, g0, g1)
            target[position - first : stop - first] *= _each(gain, target)
            largest = max(largest, max(g0, g1) + _F(0.25) * abs(slope) if bus.n > 0 else g0 + g1)
        else:
            if g1 != 1.0:
                target[position - first : stop - first] *= g1
            largest = max(largest, g1)
        position = stop
    return largest


def _each(values: Samples, frame: Samples) -> Samples:
    """One value for each sample of a frame, for all of its channels."""
    return values if frame.ndim == 1 else values[:, None]


def _add_voices(slots: Slots, position: int, target: Samples) -> float:
    """Add each voice to the samples from `position` on; the largest magnitude that they can add."""
    largest = 0.0
    for sound, start, t0, ramp, g0, g1, finish, _ in slots.playing():
        ramp_start = start + t0
        ramp_end = ramp_start + ramp
        now, stop = max(position, start), min(position + len(target), finish)
        largest += sound.peak * max(g0, g1) if now < stop else 0.0
        while now < stop:
            offset = (now - start) % sound.length
            until = min(stop, now + sound.length - offset)
            until = min(until, ramp_start if now < ramp_start else ramp_end if now < ramp_end else until)
            cue = sound.samples[offset : offset + until - now]
            if ramp_start <= now < ramp_end:
                cue = cue * (_F(g0) + (_F(g1) - _F(g0)) * smoothstep(_progress(now - ramp_start, until - now, ramp)))
            else:
                cue = cue * _F(g0 if now < ramp_start else g1)
            target[now - position : until - position] += _each(cue, target)
            now = until
    return largest


def mix_or_pass(scheduler: Scheduler, source: Samples, target: Samples) -> int:
    """Mix or copy `source` into `target` (which may be the same array) and advance the row's position."""
    row, n, limiter = scheduler.row, len(source), scheduler.limiter
    position, flags = row.position, row.flags
    speech = speech_bits(source) if flags & ~layout.FLAG_APART else _NOTHING
    passes = not flags & ~layout.IDLE_FLAGS
    if flags & layout.FLAG_GUARD:
        passes = passes and bool((speech <= _FINITE_BITS).all())
    # A limiter's output is late: everything goes through it. What comes after `busy` is the caller's.
    end = layout.NEVER if limiter is not None else scheduler.busy_until
    busy = 0 if passes else max(min(end - position, n), 0)
    if not flags & layout.FLAG_APART:
        if scheduler.level is not None:
            scheduler.level.hear(speech.view(np.float32), position)
        heard = np.flatnonzero(speech[: n if flags & layout.FLAG_LISTEN else busy] > layout.SPEECH_BITS)
        if len(heard):
            row.words[layout.HEARD_I64] = position + int(heard[-1]) + 1
    if source is not target:
        target[:] = source
    row.words[layout.POSITION_I64] = position + n
    if passes:
        return layout.PASSED
    ints, mixed = row.ints, target[:busy]
    checked = target if flags & layout.FLAG_GUARD else mixed
    bad = ~np.isfinite(checked)
    ints[layout.NONFINITE_I32] += np.int32(bad.sum())
    checked[bad] = 0.0
    with np.errstate(over="ignore"):
        bound = np.abs(mixed).max(initial=_F(0)) * _gain_speech(scheduler.bus, position, mixed)
        bound += _add_voices(scheduler.slots, position, mixed)
    if limiter is not None:
        ints[layout.LIMITED_I32] += np.int32(limiter.limit(target))
    elif bound > _NEARLY_FULL:
        ints[layout.LIMITED_I32] += np.int32((np.abs(mixed) > 1).sum())
        np.clip(mixed, -1, 1, out=mixed)
    ints[layout.FLAGS_I32] = flags | layout.FLAG_BUSY if end > position + n else flags & ~layout.FLAG_BUSY
    if max(ints[layout.LIMITED_I32], ints[layout.NONFINITE_I32]) >= layout.COUNTED:
        row.words[layout.WAKE_I64] = -1
    return layout.MIXED
