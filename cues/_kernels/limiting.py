"""The look-ahead limiter's loop; `cues.mixing.limiter` describes the method and the layout of the state."""

from typing import Any

import numpy as np

from cues._kernels import layout
from cues._kernels.loops import copy, peak_bits
from cues._kernels.tools import carray, float32_at, float_of_bits, int32_at, int64_at, kernel, stack

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)
_CEILING, _LOUD, _LARGEST, _BEND = _F(layout.CEILING), _F(layout.LOUD), _F(layout.LARGEST_SAMPLE), _F(layout.BEND)
_AT_REST, _ONE_BITS = _F(layout.AT_REST), np.int32(0x3F800000)
_CHUNK, _BLOCK = 512, 64
_HELD_BYTES = 4 * (_CHUNK + 640)  # a latency is 1.5 ms, of 384 kHz at most


@kernel
def read_ring(ring: int, size: int, end: int, target: int, n: int) -> None:
    """Copy the `n` values of a ring before absolute position `end`."""
    start = (end - n) & (size - 1)
    first = min(n, size - start)
    copy(ring + 4 * start, target, first)
    copy(ring, target + 4 * first, n - first)


@kernel
def write_ring(ring: int, size: int, end: int, source: int, n: int) -> None:
    """The reverse of `read_ring`; of more values than fit, the last ones stay."""
    kept = min(n, size)
    start = (end - kept) & (size - 1)
    first = min(kept, size - start)
    copy(source + 4 * (n - kept), ring + 4 * start, first)
    copy(source + 4 * (n - kept + first), ring, kept - first)


@kernel
def quiet_samples(samples: int, n: int) -> int:
    """How many samples come before the first one that is loud."""
    if float_of_bits(peak_bits(samples, n)) <= _LOUD:
        return n
    x = carray(float32_at(samples), n)
    for i in range(n):
        if not abs(x[i]) <= _LOUD:
            return i
    return n


@kernel
def fill(values: int, n: int) -> None:
    """Set `n` values to 1."""
    x = carray(float32_at(values), n)
    for i in range(n):
        x[i] = _ONE


@kernel
def any_below_one(values: int, n: int) -> bool:
    """Whether one of `n` positive values is below 1."""
    bits = carray(int32_at(values), n)
    lowest = _ONE_BITS
    for i in range(n):
        lowest = min(lowest, bits[i])
    return bool(lowest < _ONE_BITS)


@kernel
def find_needed_gains(signal: int, table: int, needed: int, n: int) -> None:
    """Write the gains that keep the middles of `n` windows of a signal under the ceiling."""
    # A phase is a loop over windows: a sum over taps must keep its order, and cannot be vectorized.
    x = carray(float32_at(signal), n + layout.TAPS)
    peaks = carray(float32_at(needed), n)
    for i in range(n):
        peaks[i] = max(abs(x[i + layout.TAPS // 2 - 1]), abs(x[i + layout.TAPS // 2]))
    for phase in range(layout.PHASES - 1):
        taps = carray(float32_at(table + 4 * layout.TAPS * phase), layout.TAPS)
        for i in range(n):
            between = _ZERO
            for tap in range(layout.TAPS):
                between += taps[tap] * x[i + tap]
            peaks[i] = max(peaks[i], abs(between))
    for i in range(n):
        peaks[i] = _CEILING / peaks[i] if peaks[i] > _CEILING else _ONE


@kernel
def may_exceed(signal: int, n: int) -> bool:
    """Whether a value interpolated between samples may exceed the ceiling; for speech, few of the loud ones do."""
    peak = float_of_bits(peak_bits(signal, n))
    if peak <= _LOUD:
        return False
    x, largest = carray(float32_at(signal), n), np.int32(0)
    for i in range(n - 2):
        largest = max(largest, np.float32(abs(x[i] - _F(2) * x[i + 1] + x[i + 2])).view(np.int32))
    return bool(peak + _BEND * float_of_bits(largest) > _CEILING)


@kernel
def find_needs(signal: int, table: int, needed: int, n: int) -> bool:
    """`find_needed_gains` where a peak may exceed the ceiling, else 1; whether one may."""
    found = False
    for start in range(0, n, _BLOCK):
        size = min(n - start, _BLOCK)
        if may_exceed(signal + 4 * start, size + layout.TAPS - 1):
            find_needed_gains(signal + 4 * start, table, needed + 4 * start, size)
            found = True
        else:
            fill(needed + 4 * start, size)
    return found


@kernel
def take_lower(values: int, target: int, n: int, shift: int) -> None:
    """Write the lower of each of `n` values and of the one `shift` after it."""
    x, later, y = (
        carray(float32_at(values), n),
        carray(float32_at(values + 4 * shift), n),
        carray(float32_at(target), n),
    )
    for i in range(n):
        y[i] = min(x[i], later[i])


@kernel
def release(needed: int, spare: int, gains: int, attack: int, n: int, state: Any) -> None:  # noqa: PLR0917
    """Write `n` gains: as low as needed within the last `attack` samples at once, back to 1 slowly.

    Overwrites `needed` and `spare`, which is as long. A minimum over twice the samples is that of two minima.
    """
    width = np.int64(1)
    while width <= attack:
        shift = min(width, attack + 1 - width)
        width += shift
        take_lower(needed, spare, n + attack + 1 - width, shift)
        needed, spare = spare, needed
    copy(needed, gains, n)
    lowest = carray(float32_at(gains), n)
    gain, rate = state[layout.LIMITER_GAIN_F32], state[layout.LIMITER_RELEASE_F32]
    at: Any = np.int64(0)
    while at < n:
        risen = gain + (_ONE - gain) * rate
        while at < n and lowest[at] == _ONE and risen <= _AT_REST:  # a loop of its own has the shortest way to the next
            lowest[at] = gain = risen
            risen = gain + (_ONE - gain) * rate
            at += 1
        if at < n:
            gain = min(lowest[at], risen) if lowest[at] < _ONE else _ONE
            lowest[at] = gain
            at += 1
    state[layout.LIMITER_GAIN_F32] = gain


@kernel
def turn_down(samples: int, gains: int, window: int, attack: int, n: int) -> int:
    """Multiply `n` samples by the smoothed gains; how many were turned down."""
    y, depths = carray(float32_at(samples), n), carray(float32_at(stack(_HELD_BYTES)), n)
    for i in range(n):
        depths[i] = _ZERO
    for k in range(attack + 1):
        gain, weight = carray(float32_at(gains + 4 * (attack - k)), n), carray(float32_at(window), attack + 1)[k]
        for i in range(n):
            depths[i] += weight * (_ONE - gain[i])
    count = 0
    for i in range(n):
        y[i] = y[i] * (_ONE - depths[i])
        count += int(depths[i] > _ZERO)
    return count


@kernel
def limit(limiter: int, channel: int, samples: int, n: int) -> int:
    """Delay `n` samples of a channel and hold them under the ceiling, in place; how many were turned down."""
    first = carray(int32_at(limiter), 2 * layout.LIMITER_HEADER_WORDS)
    attack = np.int64(first[layout.LIMITER_ATTACK_I32])
    size, n_gains = np.int64(first[layout.LIMITER_MASK_I32]) + 1, np.int64(first[layout.LIMITER_GAIN_MASK_I32]) + 1
    state = limiter + channel * (8 * layout.LIMITER_HEADER_WORDS + 4 * size + 8 * n_gains)
    words = carray(int64_at(state), layout.LIMITER_HEADER_WORDS)
    floats = carray(float32_at(state), 2 * layout.LIMITER_HEADER_WORDS)
    table, ring = words[layout.LIMITER_TABLE_I64], state + 8 * layout.LIMITER_HEADER_WORDS
    needed_ring, gain_ring = ring + 4 * size, ring + 4 * (size + n_gains)
    latency = attack + layout.TAPS // 2
    past = max(latency, np.int64(layout.TAPS - 1))
    signal, needed, gains = stack(_HELD_BYTES), stack(_HELD_BYTES), stack(_HELD_BYTES)
    limited = 0
    done: Any = np.int64(0)
    while done < n:
        now, here, step = words[layout.LIMITER_TIME_I64], samples + 4 * done, min(n - done, _CHUNK)
        quiet: Any = np.int64(0)
        if floats[layout.LIMITER_GAIN_F32] == _ONE and now >= words[layout.LIMITER_BUSY_UNTIL_I64]:
            quiet = quiet_samples(here, step)
            step = quiet if quiet > 0 else step
        end = now + step
        read_ring(ring, size, now, signal, past)
        x, y = carray(float32_at(signal + 4 * past), step), carray(float32_at(here), step)
        for i in range(step):
            x[i] = min(max(y[i], -_LARGEST), _LARGEST)
        write_ring(ring, size, end, signal + 4 * past, step)
        copy(signal + 4 * (past - latency), here, step)
        if quiet > 0:
            fill(needed_ring, 2 * n_gains)
        else:
            is_loud = find_needs(signal + 4 * (past - layout.TAPS + 1), table, needed + 4 * attack, step)
            read_ring(needed_ring, n_gains, now, needed, attack)
            read_ring(gain_ring, n_gains, now, gains, attack)
            write_ring(needed_ring, n_gains, end, needed + 4 * attack, step)
            if floats[layout.LIMITER_GAIN_F32] < _ONE or any_below_one(needed, attack + step):
                release(needed, signal, gains + 4 * attack, attack, step, floats)
            else:
                fill(gains + 4 * attack, step)
            write_ring(gain_ring, n_gains, end, gains + 4 * attack, step)
            if any_below_one(gains, attack + step):
                limited += turn_down(here, gains, table + 4 * (layout.PHASES - 1) * layout.TAPS, attack, step)
                is_loud = True
            if is_loud:
                words[layout.LIMITER_BUSY_UNTIL_I64] = end + layout.TAPS + attack
        words[layout.LIMITER_TIME_I64] = end
        done += step
    return limited
