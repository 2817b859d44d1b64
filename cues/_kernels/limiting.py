"""The look-ahead limiter's loop; `cues.mixing.limiter` describes the method and the layout of the state."""

from __future__ import annotations

import numpy as np

from cues._kernels import layout
from cues._kernels.compiling import kernel
from cues._kernels.memory import carray, float32_at, int32_at, int64_at

__all__ = ["limit"]

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)
_CEILING, _LOUD, _LARGEST = _F(layout.CEILING), _F(layout.LOUD), _F(layout.LARGEST_SAMPLE)
_AT_REST = _F(layout.AT_REST)


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
def limit(limiter: int, channel: int, samples: int, n: int) -> int:
    """Delay `n` samples of a channel and hold them under the ceiling, in place; how many were turned down."""
    first = carray(int32_at(limiter), 2 * layout.LIMITER_HEADER_WORDS)
    ring_bytes = 4 * (np.int64(first[layout.LIMITER_MASK_I32]) + 1)
    gain_bytes = 4 * (np.int64(first[layout.LIMITER_GAIN_MASK_I32]) + 1)
    state = limiter + channel * (8 * layout.LIMITER_HEADER_WORDS + ring_bytes + 2 * gain_bytes)
    words = carray(int64_at(state), layout.LIMITER_HEADER_WORDS)
    ints = carray(int32_at(state), 2 * layout.LIMITER_HEADER_WORDS)
    floats = carray(float32_at(state), 2 * layout.LIMITER_HEADER_WORDS)
    attack, mask, gain_mask = (
        np.int64(ints[layout.LIMITER_ATTACK_I32]),
        np.int64(ints[layout.LIMITER_MASK_I32]),
        np.int64(ints[layout.LIMITER_GAIN_MASK_I32]),
    )
    table = carray(float32_at(words[layout.LIMITER_TABLE_I64]), (layout.PHASES - 1) * layout.TAPS + attack + 1)
    ring = carray(float32_at(state + 8 * layout.LIMITER_HEADER_WORDS), mask + 1)
    needed = carray(float32_at(state + 8 * layout.LIMITER_HEADER_WORDS + 4 * (mask + 1)), gain_mask + 1)
    gains = carray(
        float32_at(state + 8 * layout.LIMITER_HEADER_WORDS + 4 * (mask + 1) + 4 * (gain_mask + 1)), gain_mask + 1
    )
    y = carray(float32_at(samples), n)
    latency = attack + layout.TAPS // 2
    weights = (layout.PHASES - 1) * layout.TAPS
    now = words[layout.LIMITER_TIME_I64]
    loud, dip, turn = (
        words[layout.LIMITER_LOUD_UNTIL_I64],
        words[layout.LIMITER_DIP_UNTIL_I64],
        words[layout.LIMITER_TURN_UNTIL_I64],
    )
    gain, release = floats[layout.LIMITER_GAIN_F32], floats[layout.LIMITER_RELEASE_F32]
    limited = 0
    for i in range(n):
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
    words[layout.LIMITER_TIME_I64] = now
    words[layout.LIMITER_LOUD_UNTIL_I64], words[layout.LIMITER_DIP_UNTIL_I64], words[layout.LIMITER_TURN_UNTIL_I64] = (
        loud,
        dip,
        turn,
    )
    floats[layout.LIMITER_GAIN_F32] = gain
    return limited
