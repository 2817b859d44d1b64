"""One session's frame from its row of state, and one frame for each of many sessions.

Every gain is a function of the absolute sample, so cutting the same input into other frames changes no bit.
"""

from typing import Any

import numpy as np

from cues._kernels import layout
from cues._kernels.limiting import limit
from cues._kernels.listening import SPEECH_BITS, listen
from cues._kernels.loops import (
    FINITE_BITS,
    NEARLY_FULL,
    add,
    add_ramped,
    copy,
    gather,
    hold_ceiling,
    peak_bits,
    scale,
    scale_by_crossfade,
    scale_by_ramp,
    scale_by_smoothstep,
    scatter,
    silence_nonfinite,
)
from cues._kernels.tools import (
    carray,
    float32_at,
    float_of_bits,
    int16_at,
    int32_at,
    int64_at,
    kernel,
    peek,
    prefetch,
    stack,
)

_F = np.float32
_ZERO, _ONE = _F(0), _F(1)
_SCRATCH_BYTES = 4 * layout.SCRATCH_SAMPLES


@kernel
def views(address: int) -> Any:
    """A row or a voice, seen as int64, int32 and float32."""
    return carray(int64_at(address), 12), carray(int32_at(address), 24), carray(float32_at(address), 24)


@kernel
def promote(row: int) -> None:
    """Let the next speech ramp take over; the scheduler ensures that the one before has come to rest."""
    words, ints, floats = views(row)
    words[layout.SPEECH_T0_I64] = words[layout.NEXT_T0_I64]
    words[layout.NEXT_T0_I64] = layout.NEVER
    ints[layout.SPEECH_N_I32] = ints[layout.NEXT_N_I32]
    floats[layout.SPEECH_G0_F32] = floats[layout.SPEECH_G1_F32]
    floats[layout.SPEECH_G1_F32] = floats[layout.NEXT_G1_F32]
    floats[layout.SPEECH_SLOPE_F32] = _ZERO


@kernel
def gain_speech(row: int, samples: int, n: int) -> np.float32:
    """Apply the speech's gain to `n` samples from the session's position on; the largest gain on the way."""
    words, ints, floats = views(row)
    length = np.int64(abs(ints[layout.SPEECH_N_I32]))
    g0, g1 = floats[layout.SPEECH_G0_F32], floats[layout.SPEECH_G1_F32]
    k = words[layout.POSITION_I64] - words[layout.SPEECH_T0_I64]
    ramp = min(n, max(length - k, 0))
    largest = g1 if ramp < n else _ZERO
    if ramp > 0:
        inverse = _ONE / _F(length)
        if ints[layout.SPEECH_N_I32] > 0:
            s = floats[layout.SPEECH_SLOPE_F32]
            if s == _ZERO:
                scale_by_smoothstep(samples, ramp, k, inverse, g0, g1 - g0)
            else:
                scale_by_ramp(samples, ramp, k, inverse, g0, g1 - g0, s)
            largest = max(largest, max(g0, g1) + _F(0.25) * abs(s))
        else:
            scale_by_crossfade(samples, ramp, k, inverse, g0, g1)
            largest = max(largest, g0 + g1)
    if ramp < n and g1 != _ONE:
        scale(samples + 4 * ramp, n - ramp, g1)
    return largest


@kernel
def voice_end(voice: int) -> Any:
    """The sample at which a voice will have ended."""
    words, ints, _ = views(voice)
    flags = ints[layout.VOICE_N_I32]
    start = words[layout.VOICE_START_I64]
    end = layout.NEVER if flags & layout.VOICE_LOOPS else start + peek(words[layout.VOICE_SOUND_I64])
    if flags & layout.VOICE_ENDS:
        end = min(end, start + ints[layout.VOICE_T0_I32] + (flags & layout.RAMP_MASK))
    return end


@kernel
def busy_until(row: int) -> Any:
    """The sample from which on the speech passes as it is, if nothing else is planned."""
    words, ints, floats = views(row)
    end: Any = np.int64(layout.NEVER)
    if words[layout.NEXT_T0_I64] != layout.NEVER:
        if floats[layout.NEXT_G1_F32] == _ONE:
            end = words[layout.NEXT_T0_I64] + abs(ints[layout.NEXT_N_I32])
    elif floats[layout.SPEECH_G1_F32] == _ONE:
        end = words[layout.SPEECH_T0_I64] + abs(ints[layout.SPEECH_N_I32])
    voice = row + layout.BUS_BYTES
    for _ in range(carray(int16_at(row), 48)[layout.SLOTS_I16]):
        if peek(voice + 8 * layout.VOICE_SOUND_I64) != 0:
            end = max(end, voice_end(voice))
        voice += layout.VOICE_BYTES
    return end


@kernel
def add_voice(voice: int, samples: int, position: int, n: int) -> Any:
    """Add one voice to `n` samples from `position` on; the largest magnitude that it can add."""
    words, ints, floats = views(voice)
    start, sound = words[layout.VOICE_START_I64], words[layout.VOICE_SOUND_I64]
    length = peek(sound)
    ramp = np.int64(ints[layout.VOICE_N_I32] & layout.RAMP_MASK)
    ramp_start = start + ints[layout.VOICE_T0_I32]
    ramp_end = ramp_start + ramp
    loops = (ints[layout.VOICE_N_I32] & layout.VOICE_LOOPS) != 0
    g0, g1 = floats[layout.VOICE_G0_F32], floats[layout.VOICE_G1_F32]
    cue = sound + 4 * layout.HEADER_FLOATS
    now = max(position, start)
    stop = min(position + n, voice_end(voice))
    largest = carray(float32_at(sound), 4)[2] * max(g0, g1) if now < stop else _ZERO
    while now < stop:
        offset = now - start
        if loops:
            offset %= length
        until = min(stop, now + length - offset)
        here = samples + 4 * (now - position)
        if now < ramp_start:
            until = min(until, ramp_start)
            add(cue + 4 * offset, here, until - now, g0)
        elif now < ramp_end:
            until = min(until, ramp_end)
            add_ramped(cue + 4 * offset, here, until - now, now - ramp_start, _ONE / _F(ramp), g0, g1 - g0)
        else:
            add(cue + 4 * offset, here, until - now, g1)
        now = until
    return largest


@kernel
def channels_of(row: int) -> Any:
    """How many channels a frame has, interleaved."""
    return np.int64(carray(int16_at(row), 48)[layout.CHANNELS_I16])


@kernel
def mix_channel(row: int, samples: int, n: int, busy: int, bits: np.int32, channel: int) -> None:  # noqa: PLR0917
    """Mix `n` samples of a channel in place; `bits` is the peak of those that are checked, or of a louder channel."""
    words, ints, _ = views(row)
    flags = ints[layout.FLAGS_I32]
    if bits > FINITE_BITS:
        checked = n if flags & layout.FLAG_GUARD else busy
        ints[layout.NONFINITE_I32] += np.int32(silence_nonfinite(samples, checked))
        bits = peak_bits(samples, busy)
    bound = float_of_bits(bits) * gain_speech(row, samples, busy)
    voice = row + layout.BUS_BYTES
    for _ in range(carray(int16_at(row), 48)[layout.SLOTS_I16]):
        if peek(voice + 8 * layout.VOICE_SOUND_I64) != 0:
            bound += add_voice(voice, samples, words[layout.POSITION_I64], busy)
        voice += layout.VOICE_BYTES
    if flags & layout.FLAG_LIMITER:
        ints[layout.LIMITED_I32] += np.int32(limit(words[layout.LIMITER_I64], channel, samples, n))
    elif bound > NEARLY_FULL:
        ints[layout.LIMITED_I32] += hold_ceiling(samples, busy)


@kernel
def mix_part(row: int, source: int, target: int, n: int) -> None:
    """Mix `n` samples within which one ramp of the speech is in force, of one channel or of few samples."""
    words, ints, _ = views(row)
    position, channels = words[layout.POSITION_I64], channels_of(row)
    flags = ints[layout.FLAGS_I32]
    # A limiter's output is late: everything goes through it.
    end = np.int64(layout.NEVER) if flags & layout.FLAG_LIMITER else busy_until(row)
    busy = max(min(end - position, n), 0)  # what comes after is the caller's, sample for sample
    bits = listen(row, source, n, channels, n if flags & layout.FLAG_LISTEN else busy)
    if channels == 1:
        if source != target:
            copy(source, target, n)
        mix_channel(row, target, n, busy, bits, 0)
    else:
        samples = stack(_SCRATCH_BYTES)
        for channel in range(channels):
            gather(source + 4 * channel, samples, n, channels)
            mix_channel(row, samples, n, busy, bits, channel)
            scatter(samples, target + 4 * channel, n, channels)
    words[layout.POSITION_I64] = position + n
    ints[layout.FLAGS_I32] = flags | layout.FLAG_BUSY if end > position + n else flags & ~layout.FLAG_BUSY


@kernel
def mix_row(row: int, source: int, target: int, n: int) -> None:
    """Mix `n` samples of each channel from `source` into `target` (which may be the same) and move the session on."""
    # The scheduler has run: nothing but what the row holds happens within these samples.
    words, ints, _ = views(row)
    channels = channels_of(row)
    most = n if channels == 1 else layout.SCRATCH_SAMPLES // channels
    done: Any = np.int64(0)
    while done < n:
        if words[layout.NEXT_T0_I64] <= words[layout.POSITION_I64]:
            promote(row)
        step = min(n - done, most, words[layout.NEXT_T0_I64] - words[layout.POSITION_I64])
        mix_part(row, source + 4 * channels * done, target + 4 * channels * done, step)
        done += step
    if max(ints[layout.LIMITED_I32], ints[layout.NONFINITE_I32]) >= layout.COUNTED:
        words[layout.WAKE_I64] = -1


@kernel
def is_due(row: int, n: int) -> bool:
    """Whether the scheduler has to run within the next `n` samples, whatever they are."""
    words = carray(int64_at(row), 12)
    return bool(words[layout.POSITION_I64] + n > words[layout.WAKE_I64])


@kernel
def yields(row: int) -> bool:
    """Whether the scheduler has to run before speech in a frame is mixed."""
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    return bool(flags & (layout.FLAG_YIELD | layout.FLAG_APART) == layout.FLAG_YIELD)


@kernel
def must_plan(row: int, samples: int, n: int) -> bool:
    """Whether the scheduler has to run within these samples of a frame."""
    return is_due(row, n) or bool(yields(row) and peak_bits(samples, n * channels_of(row)) > SPEECH_BITS)


@kernel
def passes(row: int, samples: int, n: int) -> bool:
    """Whether samples pass as they are: nothing sounds, and a guard finds nothing to silence."""
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    if flags == 0:
        return True
    if flags & ~layout.IDLE_FLAGS:
        return False
    return bool(flags & layout.FLAG_GUARD == 0 or peak_bits(samples, n * channels_of(row)) <= FINITE_BITS)


@kernel
def let_pass(row: int, samples: int, n: int) -> None:
    """Move a session on over samples that pass as they are."""
    words = carray(int64_at(row), 12)
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    channels = channels_of(row)
    listened = flags & (layout.FLAG_FOLLOW | layout.FLAG_LISTEN) and not flags & layout.FLAG_APART
    most = n if channels == 1 or not listened else layout.SCRATCH_SAMPLES // channels
    done: Any = np.int64(0)
    while done < n:
        step = min(n - done, most)
        if listened:
            listen(row, samples + 4 * channels * done, step, channels, step if flags & layout.FLAG_LISTEN else 0)
        words[layout.POSITION_I64] += step
        done += step


@kernel
def mix_or_pass(row: int, source: int, target: int, n: int) -> int:
    """Mix or copy a frame for which the scheduler has run."""
    if not passes(row, source, n):
        mix_row(row, source, target, n)
        return layout.MIXED
    let_pass(row, source, n)
    if source != target:
        copy(source, target, n * channels_of(row))
    return layout.PASSED


@kernel
def try_to_mix(row: int, source: int, target: int, n: int) -> int:
    """Mix or copy a frame; `layout.REFUSED` if the scheduler has to run first, or the two overlap in part."""
    n_bytes = 4 * n * channels_of(row)
    apart = source == target or source + n_bytes <= target or target + n_bytes <= source
    if not apart or must_plan(row, source, n):
        return layout.REFUSED
    return mix_or_pass(row, source, target, n)


@kernel
def mix_rows(  # noqa: PLR0917  (kernels have no keywords)
    rows: int, row_bytes: int, n_rows: int, source: int, target: int, n: int, waking: int
) -> int:
    """Mix one frame of `n` samples for each of many sessions of one channel; how many have to be planned first."""
    # Their numbers are written to `waking` (int64) and their frames are left to the caller.
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
        flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
        if must_plan(row, source + frame, n):
            found[count] = i
            count += 1
        elif flags == 0:
            carray(int64_at(row), 12)[layout.POSITION_I64] += n
            if source != target:
                copy(source + frame, target + frame, n)
        elif flags & ~layout.IDLE_FLAGS:
            mix_row(row, source + frame, target + frame, n)
        else:
            mix_or_pass(row, source + frame, target + frame, n)
        frame += 4 * n
    return count
