"""The mixing loops: one session's frame from its row of state, by address.

Every gain is a function of the absolute sample, so cutting the same input into other frames changes no bit. All
arithmetic is float32 in the order in which `cues.numpy_mixing` has it.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from cues._kernels import layout as at
from cues._kernels.compiling import callback, kernel
from cues._kernels.memory import (
    call_python,
    float32_at,
    float_of_bits,
    int16_at,
    int32_at,
    int64_at,
    new_bytes,
    new_reference,
    peek,
)

__all__ = ["mix_pcm16_entry", "mix_entry", "mix_row", "mix_rows"]

_F = np.float32
_ZERO, _ONE, _SIX, _TEN, _FIFTEEN = _F(0), _F(1), _F(6), _F(10), _F(15)
_EIGHT, _THREE = _F(8), _F(3)
_FINITE_BITS = np.int32(0x7F7FFFFF)  # the largest finite float32, as an integer
_ABS_BITS = np.int32(0x7FFFFFFF)
_KNEE = _F(at.CEILING_KNEE)
_NEARLY_KNEE = _F(0.999 * at.CEILING_KNEE)  # a sum may be an ulp above its bound
_ROOM = _F(1.0 - at.CEILING_KNEE)
_PER_ROOM = _F(1.0 / (1.0 - at.CEILING_KNEE))
_HALF_PI = _F(np.pi / 2)
_S3, _S5, _S7, _S9 = _F(-1 / 6), _F(1 / 120), _F(-1 / 5040), _F(1 / 362880)
_C2, _C4, _C6, _C8, _C10 = _F(-1 / 2), _F(1 / 24), _F(-1 / 720), _F(1 / 40320), _F(-1 / 3628800)


@kernel
def peak_bits(samples, n):
    """Largest magnitude as the bits of a float32; above `_FINITE_BITS` where something is NaN or infinite."""
    bits = carray(int32_at(samples), n)
    largest = np.int32(0)
    for i in range(n):
        largest = max(largest, bits[i] & _ABS_BITS)
    return largest


@kernel
def copy(source, target, n):
    """Copy `n` float32."""
    x = carray(float32_at(source), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = x[i]


@kernel
def silence_nonfinite(samples, n):
    """Put 0.0 in place of NaN and infinity; how many there were."""
    y = carray(float32_at(samples), n)
    bits = carray(int32_at(samples), n)
    count = 0
    for i in range(n):
        if (bits[i] & _ABS_BITS) > _FINITE_BITS:
            y[i] = _ZERO
            count += 1
    return count


@kernel
def scale(samples, n, gain):
    """Multiply by a constant gain, in place."""
    y = carray(float32_at(samples), n)
    for i in range(n):
        y[i] = y[i] * gain


@kernel
def scale_by_ramp(samples, n, k, inverse, g0, change, slope):
    """Multiply by a ramp of which `samples[0]` is sample `k`, in place."""
    y = carray(float32_at(samples), n)
    for i in range(n):
        u = _F(np.int32(k + i)) * inverse
        u3 = u * u * u
        q = u3 * (_TEN + u * (_SIX * u - _FIFTEEN))
        h = u + u3 * (u * (_EIGHT - _THREE * u) - _SIX)
        y[i] = y[i] * (g0 + change * q + slope * h)


@kernel
def scale_by_crossfade(samples, n, k, inverse, g0, g1):
    """Multiply by an equal-power ramp, in place: `g0·cos(π/2·q) + g1·sin(π/2·q)`."""
    y = carray(float32_at(samples), n)
    for i in range(n):
        u = _F(np.int32(k + i)) * inverse
        a = _HALF_PI * (u * u * u * (_TEN + u * (_SIX * u - _FIFTEEN)))
        b = a * a
        sine = a * (_ONE + b * (_S3 + b * (_S5 + b * (_S7 + b * _S9))))
        cosine = _ONE + b * (_C2 + b * (_C4 + b * (_C6 + b * (_C8 + b * _C10))))
        y[i] = y[i] * (g0 * cosine + g1 * sine)


@kernel
def add(sound, target, n, gain):
    """Add a sound at a constant gain."""
    c = carray(float32_at(sound), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = y[i] + c[i] * gain


@kernel
def add_ramped(sound, target, n, k, inverse, g0, change):
    """Add a sound under a ramp of which its first sample is sample `k`."""
    c = carray(float32_at(sound), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        u = _F(np.int32(k + i)) * inverse
        q = u * u * u * (_TEN + u * (_SIX * u - _FIFTEEN))
        y[i] = y[i] + c[i] * (g0 + change * q)


@kernel
def hold_ceiling(samples, n):
    """Bend what is above the knee so that it stays within ±1.0; how many samples were bent."""
    y = carray(float32_at(samples), n)
    bent = np.int32(0)
    for i in range(n):
        magnitude = abs(y[i])
        over = max(magnitude - _KNEE, _ZERO) * _PER_ROOM
        held = min(_KNEE + _ROOM * (_ONE - _ONE / (_ONE + over)), _ONE)
        above = magnitude > _KNEE
        bent += np.int32(above)
        y[i] = np.copysign(held, y[i]) if above else y[i]
    return bent


@kernel
def promote(row):
    """Let the next speech ramp take over; the planner sees to it that the one before has come to rest."""
    words = carray(int64_at(row), 10)
    ints = carray(int32_at(row), 20)
    floats = carray(float32_at(row), 20)
    words[at.SPEECH_T0_I64] = words[at.NEXT_T0_I64]
    words[at.NEXT_T0_I64] = at.NEVER
    ints[at.SPEECH_N_I32] = ints[at.NEXT_N_I32]
    floats[at.SPEECH_G0_F32] = floats[at.SPEECH_G1_F32]
    floats[at.SPEECH_G1_F32] = floats[at.NEXT_G1_F32]
    floats[at.SPEECH_SLOPE_F32] = _ZERO


@kernel
def gain_speech(row, target, n):
    """Apply the speech's gain to `n` samples from the session's position on; the largest gain on the way."""
    words = carray(int64_at(row), 10)
    ints = carray(int32_at(row), 20)
    floats = carray(float32_at(row), 20)
    position = words[at.POSITION_I64]
    end = position + n
    largest = _ZERO
    while position < end:
        if words[at.NEXT_T0_I64] <= position:
            promote(row)
        here = target + 4 * (n - (end - position))
        stop = min(end, words[at.NEXT_T0_I64])
        t0 = words[at.SPEECH_T0_I64]
        length = np.int64(abs(ints[at.SPEECH_N_I32]))
        g0, g1 = floats[at.SPEECH_G0_F32], floats[at.SPEECH_G1_F32]
        if position < t0 + length:
            stop = min(stop, t0 + length)
            k = position - t0
            if ints[at.SPEECH_N_I32] > 0:
                s = floats[at.SPEECH_SLOPE_F32]
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
def voice_end(voice):
    """The sample at which a voice will have ended."""
    words = carray(int64_at(voice), 4)
    ints = carray(int32_at(voice), 8)
    flags = ints[at.VOICE_N_I32]
    start = words[at.VOICE_START_I64]
    end = at.NEVER if flags & at.VOICE_LOOPS else start + peek(words[at.VOICE_SOUND_I64])
    if flags & at.VOICE_ENDS:
        end = min(end, start + ints[at.VOICE_T0_I32] + (flags & at.RAMP_MASK))
    return end


@kernel
def busy_until(row):
    """The sample from which on the speech passes as it is, if nothing else is planned."""
    words = carray(int64_at(row), 10)
    ints = carray(int32_at(row), 20)
    floats = carray(float32_at(row), 20)
    end = np.int64(at.NEVER)
    if words[at.NEXT_T0_I64] != at.NEVER:
        if floats[at.NEXT_G1_F32] == _ONE:
            end = words[at.NEXT_T0_I64] + abs(ints[at.NEXT_N_I32])
    elif floats[at.SPEECH_G1_F32] == _ONE:
        end = words[at.SPEECH_T0_I64] + abs(ints[at.SPEECH_N_I32])
    voice = row + at.BUS_BYTES
    for _ in range(ints[at.SLOTS_I32]):
        if peek(voice + 8 * at.VOICE_SOUND_I64) != 0:
            end = max(end, voice_end(voice))
        voice += at.VOICE_BYTES
    return end


@kernel
def add_voice(voice, target, position, n):
    """Add one voice to `n` samples from `position` on; frees its slot at its end. The largest magnitude it can add."""
    words = carray(int64_at(voice), 4)
    ints = carray(int32_at(voice), 8)
    floats = carray(float32_at(voice), 8)
    start, sound = words[at.VOICE_START_I64], words[at.VOICE_SOUND_I64]
    length = peek(sound)
    ramp = np.int64(ints[at.VOICE_N_I32] & at.RAMP_MASK)
    ramp_start = start + ints[at.VOICE_T0_I32]
    ramp_end = ramp_start + ramp
    loops = (ints[at.VOICE_N_I32] & at.VOICE_LOOPS) != 0
    finish = voice_end(voice)
    g0, g1 = floats[at.VOICE_G0_F32], floats[at.VOICE_G1_F32]
    samples = sound + 4 * at.HEADER_FLOATS
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
        words[at.VOICE_SOUND_I64] = 0
    return carray(float32_at(sound), 4)[2] * max(g0, g1)


@kernel(signature="void(int64, int64, int64, int64)", nogil=False)
def mix_row(row, source, target, n):
    """Mix `n` float32 from `source` into `target` (which may be the same) and move the session on.

    The planner has run: nothing but what the row holds happens within these samples.
    """
    words = carray(int64_at(row), 10)
    ints = carray(int32_at(row), 20)
    position = words[at.POSITION_I64]
    end = busy_until(row)
    busy = max(min(end - position, n), 0)  # what comes after is the caller's, sample for sample
    checked = n if ints[at.FLAGS_I32] & at.FLAG_GUARD else busy
    bits = peak_bits(source, checked)
    if source != target:
        copy(source, target, n)
    if bits > _FINITE_BITS:
        ints[at.NONFINITE_I32] += np.int32(silence_nonfinite(target, checked))
        bits = peak_bits(target, busy)
    bound = float_of_bits(bits) * gain_speech(row, target, busy)
    voice = row + at.BUS_BYTES
    for _ in range(ints[at.SLOTS_I32]):
        if peek(voice + 8 * at.VOICE_SOUND_I64) != 0:
            bound += add_voice(voice, target, position, busy)
        voice += at.VOICE_BYTES
    words[at.POSITION_I64] = position + n
    flags = ints[at.FLAGS_I32] & ~at.FLAG_BUSY
    ints[at.FLAGS_I32] = flags | at.FLAG_BUSY if end > position + n else flags
    if bound > _NEARLY_KNEE:
        ints[at.LIMITED_I32] += hold_ceiling(target, busy)


@kernel(signature="int64(int64, int64, int64, int64, int64, int64, int64)")
def mix_rows(rows, row_bytes, n_rows, source, target, n, waking):
    """Mix one frame of `n` samples for each of many sessions; how many have to be planned first.

    Their numbers are written to `waking` (int64) and their frames are left to the caller.
    """
    found = carray(int64_at(waking), n_rows)
    count = 0
    frame = np.int64(0)
    for i in range(n_rows):
        row = rows + i * row_bytes
        words = carray(int64_at(row), 10)
        if words[at.POSITION_I64] + n > words[at.WAKE_I64]:
            found[count] = i
            count += 1
        elif carray(int32_at(row), 20)[at.FLAGS_I32] == 0:
            words[at.POSITION_I64] += n
            if source != target:
                copy(source + frame, target + frame, n)
        else:
            mix_row(row, source + frame, target + frame, n)
        frame += 4 * n
    return count


# The entries below are C functions that CPython calls with (self, arguments, count, keyword names). `self` is the tuple
# that `cues.direct` makes: the row, the slow way (called with the same arguments), the string "out", and a float32
# array that shows what a frame's descriptor and type look like. Offsets are those of PyTupleObject, PyArrayObject and
# PyBytesObject; `cues.direct` refuses an interpreter where they are not so.
_ROW, _SLOW, _OUT, _EXAMPLE = 24, 32, 40, 48
_TYPE, _SIZE = 8, 16
_DATA, _NDIM, _SHAPE, _DESCRIPTOR, _ARRAY_FLAGS = 16, 24, 32, 56, 64
_BYTES = 32
_CONTIGUOUS_ALIGNED = 0x101
_WRITEABLE = 0x400
_SCRATCH_SAMPLES = 1024


@kernel
def is_frame(thing, example, flags):
    """Whether a Python object is a float32 array of one dimension, contiguous, with the given flags."""
    return (
        peek(thing + _TYPE) == peek(example + _TYPE)
        and peek(thing + _DESCRIPTOR) == peek(example + _DESCRIPTOR)
        and (peek(thing + _NDIM) & 0xFFFFFFFF) == 1
        and (peek(thing + _ARRAY_FLAGS) & flags) == flags
    )


@callback("int64(int64, int64, int64, int64)")
def mix_entry(self, arguments, n_arguments, names):
    """`Mixer.mix` for a frame and a buffer that need no conversion; everything else goes the slow way."""
    example = peek(self + _EXAMPLE)
    n_names = np.int64(0) if names == 0 else peek(names + _SIZE)
    if n_arguments >= 1 and n_arguments + n_names <= 2 and (n_names == 0 or peek(names + 24) == peek(self + _OUT)):
        frame = peek(arguments)
        row = peek(peek(self + _ROW) + _DATA)
        if is_frame(frame, example, _CONTIGUOUS_ALIGNED):
            words = carray(int64_at(row), 10)
            n = peek(peek(frame + _SHAPE))
            idle = carray(int32_at(row), 20)[at.FLAGS_I32] == 0
            if words[at.POSITION_I64] + n <= words[at.WAKE_I64]:
                if n_arguments + n_names == 1:
                    if idle:
                        words[at.POSITION_I64] += n
                        return new_reference(frame)
                else:
                    out = peek(arguments + 8)
                    if is_frame(out, example, _CONTIGUOUS_ALIGNED | _WRITEABLE) and peek(peek(out + _SHAPE)) == n:
                        source, target = peek(frame + _DATA), peek(out + _DATA)
                        apart = source == target or source + 4 * n <= target or target + 4 * n <= source
                        if apart:
                            if not idle:
                                mix_row(row, source, target, n)
                            else:
                                words[at.POSITION_I64] += n
                                if source != target:
                                    copy(source, target, n)
                            return new_reference(out)
    return call_python(peek(self + _SLOW), arguments, n_arguments, names)


@kernel
def float_of_pcm16(source, target, n):
    """Turn int16 into float32, full scale ±1.0."""
    x = carray(int16_at(source), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = _F(x[i]) * _F(1.0 / 32768.0)


@kernel
def pcm16_of_float(source, target, n):
    """Turn float32 within ±1.0 into int16, rounded to the nearest (ties to even)."""
    x = carray(float32_at(source), n)
    y = carray(int16_at(target), n)
    for i in range(n):
        # Adding 1.5·2²³ leaves no fraction: rounding that vectorizes.
        whole = (x[i] * _F(32768.0) + _F(12582912.0)) - _F(12582912.0)
        y[i] = np.int16(min(max(whole, _F(-32768.0)), _F(32767.0)))


@callback("int64(int64, int64, int64, int64)")
def mix_pcm16_entry(self, arguments, n_arguments, names):
    """`Mixer.mix_pcm16` for `bytes` that hold whole samples; everything else goes the slow way.

    `self` holds an example of `bytes` and a float32 array of `_SCRATCH_SAMPLES` to work in (used under the GIL).
    """
    if n_arguments == 1 and names == 0:
        data = peek(arguments)
        row = peek(peek(self + _ROW) + _DATA)
        size = peek(data + _SIZE)
        if peek(data + _TYPE) == peek(peek(self + _EXAMPLE) + _TYPE) and size % 2 == 0 and size > 0:
            words = carray(int64_at(row), 10)
            n = size // 2
            if words[at.POSITION_I64] + n <= words[at.WAKE_I64]:
                if carray(int32_at(row), 20)[at.FLAGS_I32] & ~at.FLAG_GUARD == 0:
                    words[at.POSITION_I64] += n
                    return new_reference(data)
                result = new_bytes(size)
                scratch = peek(peek(self + _OUT) + _DATA)
                done = np.int64(0)
                while done < n and result != 0:
                    step = min(n - done, _SCRATCH_SAMPLES)
                    float_of_pcm16(data + _BYTES + 2 * done, scratch, step)
                    mix_row(row, scratch, scratch, step)
                    pcm16_of_float(scratch, result + _BYTES + 2 * done, step)
                    done += step
                return result
    return call_python(peek(self + _SLOW), arguments, n_arguments, names)
