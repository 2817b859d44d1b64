"""The look-ahead limiter's loop; `cues.mixing.limiter` describes the method and the layout of the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from cues._kernels import layout
from cues._kernels.compiling import kernel
from cues._kernels.loops import copy, peak_bits
from cues._kernels.memory import carray, float32_at, float_of_bits, int32_at, int64_at, stack

__all__ = ["limit"]

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)
_CEILING, _LOUD, _LARGEST = _F(layout.CEILING), _F(layout.LOUD), _F(layout.LARGEST_SAMPLE)
_AT_REST = _F(layout.AT_REST)
_CHUNK = 512
_HELD_BYTES = 4 * (_CHUNK + 640)  # a latency is 1.5 ms, of 384 kHz at most


@kernel
def needed_gain(ring: np.ndarray, table: np.ndarray, newest: int, mask: int) -> np.float32:
    """The gain that keeps the signal between two samples, `TAPS/2` before the newest, under the ceiling."""
    peak = max(abs(ring[(newest - layout.TAPS // 2) & mask]), abs(ring[(newest - layout.TAPS // 2 + 1) & mask]))
    for phase in range(layout.PHASES - 1):
        between = _ZERO
        for tap in range(layout.TAPS):
            between += table[phase * layout.TAPS + tap] * ring[(newest - layout.TAPS + 1 + tap) & mask]
        peak = max(peak, abs(between))
    return _CEILING / peak if peak > _CEILING else _ONE


@kernel
def read_ring(ring: int, size: int, at: int, target: int, n: int) -> None:
    """Copy `n` values of a ring, the first one at absolute position `at`."""
    start = at & (size - 1)
    first = min(n, size - start)
    copy(ring + 4 * start, target, first)
    copy(ring, target + 4 * first, n - first)


@kernel
def write_ring(ring: int, size: int, at: int, source: int, n: int) -> None:
    """The reverse of `read_ring`."""
    start = at & (size - 1)
    first = min(n, size - start)
    copy(source, ring + 4 * start, first)
    copy(source + 4 * first, ring, n - first)


@kernel
def delay(ring: int, size: int, now: int, latency: int, samples: int, n: int) -> None:  # noqa: PLR0917
    """Delay up to `_CHUNK` quiet samples in place."""
    held = stack(_HELD_BYTES)
    read_ring(ring, size, now - latency, held, latency)
    copy(samples, held + 4 * latency, n)
    copy(held, samples, n)
    kept = min(n, size)
    write_ring(ring, size, now + n - kept, held + 4 * (latency + n - kept), kept)


@kernel
def quiet_samples(samples: int, n: int) -> int:
    """How many samples, of at most `_CHUNK`, come before the first one that is loud."""
    n = min(n, _CHUNK)
    if float_of_bits(peak_bits(samples, n)) <= _LOUD:
        return n
    x = carray(float32_at(samples), n)
    for i in range(n):
        if not abs(x[i]) <= _LOUD:
            return i
    return n


@kernel
def limit(limiter: int, channel: int, samples: int, n: int) -> int:
    """Delay `n` samples of a channel and hold them under the ceiling, in place; how many were turned down."""
    first = carray(int32_at(limiter), 2 * layout.LIMITER_HEADER_WORDS)
    attack = np.int64(first[layout.LIMITER_ATTACK_I32])
    mask, gain_mask = np.int64(first[layout.LIMITER_MASK_I32]), np.int64(first[layout.LIMITER_GAIN_MASK_I32])
    state = limiter + channel * (8 * layout.LIMITER_HEADER_WORDS + 4 * (mask + 1) + 8 * (gain_mask + 1))
    words = carray(int64_at(state), layout.LIMITER_HEADER_WORDS)
    floats = carray(float32_at(state), 2 * layout.LIMITER_HEADER_WORDS)
    weights = (layout.PHASES - 1) * layout.TAPS
    table = carray(float32_at(words[layout.LIMITER_TABLE_I64]), weights + attack + 1)
    ring_at = state + 8 * layout.LIMITER_HEADER_WORDS
    ring = carray(float32_at(ring_at), mask + 1)
    needed = carray(float32_at(ring_at + 4 * (mask + 1)), gain_mask + 1)
    gains = carray(float32_at(ring_at + 4 * (mask + 1) + 4 * (gain_mask + 1)), gain_mask + 1)
    y = carray(float32_at(samples), n)
    latency = attack + layout.TAPS // 2
    now = words[layout.LIMITER_TIME_I64]
    loud, dip = words[layout.LIMITER_LOUD_UNTIL_I64], words[layout.LIMITER_DIP_UNTIL_I64]
    turn = words[layout.LIMITER_TURN_UNTIL_I64]
    gain, release = floats[layout.LIMITER_GAIN_F32], floats[layout.LIMITER_RELEASE_F32]
    limited = 0
    i: Any = np.int64(0)
    while i < n:
        if gain == _ONE and now >= max(loud, dip, turn):
            quiet = quiet_samples(samples + 4 * i, n - i)
            if quiet > 0:
                delay(ring_at, mask + 1, now, latency, samples + 4 * i, quiet)
                needed[:] = _ONE
                gains[:] = _ONE
                i += quiet
                now += quiet
                continue
        sample = min(max(y[i], -_LARGEST), _LARGEST)
        ring[now & mask] = sample
        if abs(sample) > _LOUD:
            loud = now + layout.TAPS
        need = _ONE
        if now < loud:
            need = needed_gain(ring, table, now, mask)
        needed[now & gain_mask] = need
        if need < _ONE:
            dip = now + attack + 1
        if now < dip or gain < _ONE:
            lowest = _ONE
            for k in range(attack + 1):
                lowest = min(lowest, needed[(now - k) & gain_mask])
            gain = min(lowest, gain + (_ONE - gain) * release)
            if lowest == _ONE and gain > _AT_REST:
                gain = _ONE
            turn = now + attack + 1
        gains[now & gain_mask] = gain
        delayed = ring[(now - latency) & mask]
        if now < turn:
            smooth = _ZERO
            for k in range(attack + 1):
                smooth += table[weights + k] * (_ONE - gains[(now - k) & gain_mask])
            delayed = delayed * (_ONE - smooth)
            limited += int(smooth > _ZERO)
        y[i] = delayed
        now += 1
        i += 1
    words[layout.LIMITER_TIME_I64] = now
    words[layout.LIMITER_LOUD_UNTIL_I64], words[layout.LIMITER_DIP_UNTIL_I64] = loud, dip
    words[layout.LIMITER_TURN_UNTIL_I64] = turn
    floats[layout.LIMITER_GAIN_F32] = gain
    return limited
