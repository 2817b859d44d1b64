"""One session's frame from its row of state, and one frame for each of many sessions.

Every gain is a function of the absolute sample, so cutting the same input into other frames changes no bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cues._kernels import layout
from cues._kernels.compiling import kernel
from cues._kernels.limiting import limit
from cues._kernels.listening import hear
from cues._kernels.loops import (
    FINITE_BITS,
    NEARLY_FULL,
    add,
    add_ramped,
    copy,
    hold_ceiling,
    last_above,
    peak_bits,
    scale,
    scale_by_crossfade,
    scale_by_ramp,
    scale_by_smoothstep,
    silence_nonfinite,
)
from cues._kernels.memory import carray, float32_at, float_of_bits, int32_at, int64_at, peek, prefetch

__all__ = ["is_due", "let_pass", "mix_or_pass", "mix_row", "mix_rows", "passes"]

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)
_QUIET_BITS = np.int32(layout.QUIET_BITS)


@kernel
def promote(row: int) -> None:
    """Let the next speech ramp take over; the planner sees to it that the one before has come to rest."""
    words = carray(int64_at(row), 12)
    ints = carray(int32_at(row), 24)
    floats = carray(float32_at(row), 24)
    words[layout.SPEECH_T0_I64] = words[layout.NEXT_T0_I64]
    words[layout.NEXT_T0_I64] = layout.NEVER
    ints[layout.SPEECH_N_I32] = ints[layout.NEXT_N_I32]
    floats[layout.SPEECH_G0_F32] = floats[layout.SPEECH_G1_F32]
    floats[layout.SPEECH_G1_F32] = floats[layout.NEXT_G1_F32]
    floats[layout.SPEECH_SLOPE_F32] = _ZERO


@kernel
def gain_speech(row: int, target: int, n: int) -> np.float32:
    """Apply the speech's gain to `n` samples from the session's position on; the largest gain on the way."""
    words = carray(int64_at(row), 12)
    ints = carray(int32_at(row), 24)
    floats = carray(float32_at(row), 24)
    position = words[layout.POSITION_I64]
    end = position + n
    largest = _ZERO
    while position < end:
        if words[layout.NEXT_T0_I64] <= position:
            promote(row)
        here = target + 4 * (n - (end - position))
        stop = min(end, words[layout.NEXT_T0_I64])
        t0 = words[layout.SPEECH_T0_I64]
        length = np.int64(abs(ints[layout.SPEECH_N_I32]))
        g0, g1 = floats[layout.SPEECH_G0_F32], floats[layout.SPEECH_G1_F32]
        if position < t0 + length:
            stop = min(stop, t0 + length)
            k = position - t0
            if ints[layout.SPEECH_N_I32] > 0:
                s = floats[layout.SPEECH_SLOPE_F32]
                if s == _ZERO:
                    scale_by_smoothstep(here, stop - position, k, _ONE / _F(length), g0, g1 - g0)
                else:
                    scale_by_ramp(here, stop - position, k, _ONE / _F(length), g0, g1 - g0, s)
                largest = max(largest, max(g0, g1) + _F(0.25) * abs(s))
            else:
                scale_by_crossfade(here, stop - position, k, _ONE / _F(length), g0, g1)
                largest = max(largest, g0 + g1)
        else:
            if g1 != _ONE:
                scale(here, stop - position, g1)
            largest = max(largest, g1)
        position = stop
    return largest


@kernel
def voice_end(voice: int) -> Any:
    """The sample at which a voice will have ended."""
    words = carray(int64_at(voice), 4)
    ints = carray(int32_at(voice), 8)
    flags = ints[layout.VOICE_N_I32]
    start = words[layout.VOICE_START_I64]
    end = layout.NEVER if flags & layout.VOICE_LOOPS else start + peek(words[layout.VOICE_SOUND_I64])
    if flags & layout.VOICE_ENDS:
        end = min(end, start + ints[layout.VOICE_T0_I32] + (flags & layout.RAMP_MASK))
    return end


@kernel
def busy_until(row: int) -> Any:
    """The sample from which on the speech passes as it is, if nothing else is planned."""
    words = carray(int64_at(row), 12)
    ints = carray(int32_at(row), 24)
    floats = carray(float32_at(row), 24)
    end: Any = np.int64(layout.NEVER)
    if words[layout.NEXT_T0_I64] != layout.NEVER:
        if floats[layout.NEXT_G1_F32] == _ONE:
            end = words[layout.NEXT_T0_I64] + abs(ints[layout.NEXT_N_I32])
    elif floats[layout.SPEECH_G1_F32] == _ONE:
        end = words[layout.SPEECH_T0_I64] + abs(ints[layout.SPEECH_N_I32])
    voice = row + layout.BUS_BYTES
    for _ in range(ints[layout.SLOTS_I32]):
        if peek(voice + 8 * layout.VOICE_SOUND_I64) != 0:
            end = max(end, voice_end(voice))
        voice += layout.VOICE_BYTES
    return end


@kernel
def add_voice(voice: int, target: int, position: int, n: int) -> Any:
    """Add one voice to `n` samples from `position` on; frees its slot at its end. The largest magnitude it can add."""
    words = carray(int64_at(voice), 4)
    ints = carray(int32_at(voice), 8)
    floats = carray(float32_at(voice), 8)
    start, sound = words[layout.VOICE_START_I64], words[layout.VOICE_SOUND_I64]
    length = peek(sound)
    ramp = np.int64(ints[layout.VOICE_N_I32] & layout.RAMP_MASK)
    ramp_start = start + ints[layout.VOICE_T0_I32]
    ramp_end = ramp_start + ramp
    loops = (ints[layout.VOICE_N_I32] & layout.VOICE_LOOPS) != 0
    finish = voice_end(voice)
    g0, g1 = floats[layout.VOICE_G0_F32], floats[layout.VOICE_G1_F32]
    samples = sound + 4 * layout.HEADER_FLOATS
    end = position + n
    now = max(position, start)
    stop = min(end, finish)
    while now < stop:
        offset = now - start
        if loops:
            offset %= length
        until = min(stop, now + length - offset)
        here = target + 4 * (now - position)
        if now < ramp_start:
            until = min(until, ramp_start)
            add(samples + 4 * offset, here, until - now, g0)
        elif now < ramp_end:
            until = min(until, ramp_end)
            add_ramped(samples + 4 * offset, here, until - now, now - ramp_start, _ONE / _F(ramp), g0, g1 - g0)
        else:
            add(samples + 4 * offset, here, until - now, g1)
        now = until
    if end >= finish:
        words[layout.VOICE_SOUND_I64] = 0
    return carray(float32_at(sound), 4)[2] * max(g0, g1)


@kernel
def mix_row(row: int, source: int, target: int, n: int) -> None:
    """Mix `n` float32 from `source` into `target` (which may be the same) and move the session on.

    The planner has run: nothing but what the row holds happens within these samples.
    """
    words = carray(int64_at(row), 12)
    ints = carray(int32_at(row), 24)
    position = words[layout.POSITION_I64]
    flags = ints[layout.FLAGS_I32]
    if flags & layout.FLAG_FOLLOW:
        hear(words[layout.LEVEL_I64], source, n, position)
    # A limiter's output is late: everything goes through it.
    end = np.int64(layout.NEVER) if flags & layout.FLAG_LIMITER else busy_until(row)
    busy = max(min(end - position, n), 0)  # what comes after is the caller's, sample for sample
    checked = n if flags & layout.FLAG_GUARD else busy
    bits = peak_bits(source, checked)
    listened = n if flags & layout.FLAG_LISTEN else busy
    if bits > _QUIET_BITS or listened > checked:
        last = last_above(source, listened, _QUIET_BITS)
        if last > 0:
            words[layout.HEARD_I64] = position + last
    if source != target:
        copy(source, target, n)
    if bits > FINITE_BITS:
        ints[layout.NONFINITE_I32] += np.int32(silence_nonfinite(target, checked))
        bits = peak_bits(target, busy)
    bound = float_of_bits(bits) * gain_speech(row, target, busy)
    voice = row + layout.BUS_BYTES
    for _ in range(ints[layout.SLOTS_I32]):
        if peek(voice + 8 * layout.VOICE_SOUND_I64) != 0:
            bound += add_voice(voice, target, position, busy)
        voice += layout.VOICE_BYTES
    words[layout.POSITION_I64] = position + n
    ints[layout.FLAGS_I32] = flags | layout.FLAG_BUSY if end > position + n else flags & ~layout.FLAG_BUSY
    if flags & layout.FLAG_LIMITER:
        ints[layout.LIMITED_I32] += np.int32(limit(words[layout.LIMITER_I64], target, n))
    elif bound > NEARLY_FULL:
        ints[layout.LIMITED_I32] += hold_ceiling(target, busy)
    if max(ints[layout.LIMITED_I32], ints[layout.NONFINITE_I32]) >= layout.COUNTED:
        words[layout.WAKE_I64] = -1


@kernel
def is_due(row: int, n: int) -> bool:
    """Whether the scheduler has to run within the next `n` samples."""
    words = carray(int64_at(row), 12)
    return bool(words[layout.POSITION_I64] + n > words[layout.WAKE_I64])


@kernel
def passes(row: int, samples: int, n: int) -> bool:
    """Whether samples pass as they are: nothing sounds, and a guard finds nothing to silence."""
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    if flags == 0:
        return True
    if flags & ~(layout.FLAG_GUARD | layout.FLAG_FOLLOW):
        return False
    return bool(flags & layout.FLAG_GUARD == 0 or peak_bits(samples, n) <= FINITE_BITS)


@kernel
def let_pass(row: int, samples: int, n: int) -> None:
    """Move a session on over samples that pass as they are."""
    words = carray(int64_at(row), 12)
    if carray(int32_at(row), 24)[layout.FLAGS_I32] & layout.FLAG_FOLLOW:
        hear(words[layout.LEVEL_I64], samples, n, words[layout.POSITION_I64])
    words[layout.POSITION_I64] += n


@kernel
def mix_or_pass(row: int, source: int, target: int, n: int) -> int:
    """Mix or copy a frame; `layout.REFUSED` if the scheduler has to run first, or the two overlap in part."""
    apart = source == target or source + 4 * n <= target or target + 4 * n <= source
    if n == 0 or not apart or is_due(row, n):
        return layout.REFUSED
    if not passes(row, source, n):
        mix_row(row, source, target, n)
        return layout.MIXED
    let_pass(row, source, n)
    if source != target:
        copy(source, target, n)
    return layout.PASSED


@kernel
def mix_rows(  # noqa: PLR0917  (kernels have no keywords)
    rows: int, row_bytes: int, n_rows: int, source: int, target: int, n: int, waking: int
) -> int:
    """Mix one frame of `n` samples for each of many sessions; how many have to be planned first.

    Their numbers are written to `waking` (int64) and their frames are left to the caller.
    """
    found = carray(int64_at(waking), n_rows)
    count = 0
    frame = np.int64(0)
    for i in range(n_rows):
        row = rows + i * row_bytes
        if i + 8 < n_rows:
            prefetch(row + 8 * row_bytes)
        # At a live cadence the caches are cold, and a frame's loops are shorter than its way from memory.
        if i + 4 < n_rows and carray(int32_at(row + 4 * row_bytes), 24)[layout.FLAGS_I32] != 0:
            for line in range(64, row_bytes, 64):
                prefetch(row + 4 * row_bytes + line)
        if i + 2 < n_rows and carray(int32_at(row + 2 * row_bytes), 24)[layout.FLAGS_I32] != 0:
            for line in range(0, 4 * n, 64):
                prefetch(source + 4 * n * (i + 2) + line)
        words = carray(int64_at(row), 12)
        if words[layout.POSITION_I64] + n > words[layout.WAKE_I64]:
            found[count] = i
            count += 1
        elif carray(int32_at(row), 24)[layout.FLAGS_I32] == 0:
            words[layout.POSITION_I64] += n
            if source != target:
                copy(source + frame, target + frame, n)
        else:
            mix_row(row, source + frame, target + frame, n)
        frame += 4 * n
    return count
