"""Loops over samples, by address: the only code that runs for every sample of a live session.

All arithmetic is float32 in the order in which `cues.mixing.backends.numpy_loops` has it; every loop vectorizes.
"""

import numpy as np

from cues._kernels.layout import FULL_SCALE
from cues._kernels.tools import carray, float32_at, float_of_bits, int16_at, int32_at, kernel

_F = np.float32
_ZERO, _ONE, _SIX, _TEN, _FIFTEEN = _F(0), _F(1), _F(6), _F(10), _F(15)
_EIGHT, _THREE = _F(8), _F(3)
FINITE_BITS = np.int32(0x7F7FFFFF)  # the largest finite float32, as an integer
_ABS_BITS = np.int32(0x7FFFFFFF)
_ONE_BITS = np.int32(0x3F800000)  # 1.0
_FULL_SCALE = _F(FULL_SCALE)
NEARLY_FULL = _F(0.999)  # a sum may be an ulp above its bound
_HALF_PI = _F(np.pi / 2)
_S3, _S5, _S7, _S9 = _F(-1 / 6), _F(1 / 120), _F(-1 / 5040), _F(1 / 362880)
_C2, _C4, _C6, _C8, _C10 = _F(-1 / 2), _F(1 / 24), _F(-1 / 720), _F(1 / 40320), _F(-1 / 3628800)


@kernel
def peak_bits(samples: int, n: int) -> np.int32:
    """Largest magnitude as the bits of a float32; above `FINITE_BITS` where something is NaN or infinite."""
    bits = carray(int32_at(samples), n)
    largest = np.int32(0)
    for i in range(n):
        largest = max(largest, bits[i] & _ABS_BITS)
    return largest


@kernel
def last_above(samples: int, n: int, bits: np.int32) -> int:
    """Number of samples up to the last one above a magnitude (float32's bits); 0 if no sample is above it."""
    words = carray(int32_at(samples), n)
    while n > 0 and (words[n - 1] & _ABS_BITS) <= bits:
        n -= 1
    return n


@kernel
def pcm16_peak(samples: int, n: int) -> np.float32:
    """Largest magnitude of int16 samples, full scale 1.0."""
    x = carray(int16_at(samples), n)
    largest = np.int32(0)
    for i in range(n):
        largest = max(largest, abs(np.int32(x[i])))
    return _F(largest) * _F(1.0 / 32768.0)


@kernel
def loudest_channel(frames: int, target: int, n: int, channels: int) -> None:
    """For each of `n` samples the largest magnitude of the interleaved channels; NaN and infinity are the largest."""
    x = carray(int32_at(frames), n * channels)
    y = carray(int32_at(target), n)
    for i in range(n):
        largest = np.int32(0)
        for channel in range(channels):
            largest = max(largest, x[i * channels + channel] & _ABS_BITS)
        y[i] = largest


@kernel
def gather(frames: int, target: int, n: int, channels: int) -> None:
    """Copy `n` samples of the interleaved channel whose first one is at `frames`."""
    x = carray(float32_at(frames), n * channels)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = x[i * channels]


@kernel
def scatter(source: int, frames: int, n: int, channels: int) -> None:
    """The reverse of `gather`."""
    x = carray(float32_at(source), n)
    y = carray(float32_at(frames), n * channels)
    for i in range(n):
        y[i * channels] = x[i]


@kernel
def sum_of_squares(samples: int, n: int) -> np.int64:
    """Squares of the magnitudes, as whole 32768ths cut off at 1.0, added up; NaN and infinity count as silence."""
    # Whole numbers add up to the same in any order, so the sum does not depend on how the samples are cut into parts.
    bits = carray(int32_at(samples), n)
    total = np.int64(0)
    for i in range(n):
        magnitude = bits[i] & _ABS_BITS
        heard = min(magnitude, _ONE_BITS) if magnitude <= FINITE_BITS else np.int32(0)
        whole = np.int64(np.int32(float_of_bits(heard) * _FULL_SCALE))
        total += whole * whole
    return total


@kernel
def copy(source: int, target: int, n: int) -> None:
    """Copy `n` float32."""
    x = carray(float32_at(source), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = x[i]


@kernel
def silence_nonfinite(samples: int, n: int) -> int:
    """Put 0.0 in place of NaN and infinity; how many there were."""
    y = carray(float32_at(samples), n)
    bits = carray(int32_at(samples), n)
    count = 0
    for i in range(n):
        if (bits[i] & _ABS_BITS) > FINITE_BITS:
            y[i] = _ZERO
            count += 1
    return count


@kernel
def scale(samples: int, n: int, gain: np.float32) -> None:
    """Multiply by a constant gain, in place."""
    y = carray(float32_at(samples), n)
    for i in range(n):
        y[i] = y[i] * gain


@kernel
def scale_by_ramp(  # noqa: PLR0917  (kernels have no keywords)
    samples: int, n: int, k: int, inverse: np.float32, g0: np.float32, change: np.float32, slope: np.float32
) -> None:
    """Multiply by a ramp of which `samples[0]` is sample `k`, in place."""
    y = carray(float32_at(samples), n)
    for i in range(n):
        u = _F(np.int32(k + i)) * inverse
        u3 = u * u * u
        q = u3 * (_TEN + u * (_SIX * u - _FIFTEEN))
        arrest = u + u3 * (u * (_EIGHT - _THREE * u) - _SIX)
        y[i] = y[i] * (g0 + change * q + slope * arrest)


@kernel
def scale_by_smoothstep(  # noqa: PLR0917  (kernels have no keywords)
    samples: int, n: int, k: int, inverse: np.float32, g0: np.float32, change: np.float32
) -> None:
    """Multiply by a ramp that begins at rest, in place: `scale_by_ramp` without a slope, to the bit."""
    y = carray(float32_at(samples), n)
    for i in range(n):
        u = _F(np.int32(k + i)) * inverse
        y[i] = y[i] * (g0 + change * (u * u * u * (_TEN + u * (_SIX * u - _FIFTEEN))))


@kernel
def scale_by_crossfade(  # noqa: PLR0917  (kernels have no keywords)
    samples: int, n: int, k: int, inverse: np.float32, g0: np.float32, g1: np.float32
) -> None:
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
def add(sound: int, target: int, n: int, gain: np.float32) -> None:
    """Add a sound at a constant gain."""
    c = carray(float32_at(sound), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = y[i] + c[i] * gain


@kernel
def add_ramped(  # noqa: PLR0917  (kernels have no keywords)
    sound: int, target: int, n: int, k: int, inverse: np.float32, g0: np.float32, change: np.float32
) -> None:
    """Add a sound under a ramp of which its first sample is sample `k`."""
    c = carray(float32_at(sound), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        u = _F(np.int32(k + i)) * inverse
        q = u * u * u * (_TEN + u * (_SIX * u - _FIFTEEN))
        y[i] = y[i] + c[i] * (g0 + change * q)


@kernel
def hold_ceiling(samples: int, n: int) -> np.int32:
    """Cut off what is outside of ±1.0; how many samples that were."""
    # A knee below would change full-scale speech too, and a ramp's first sample would be a jump.
    y = carray(float32_at(samples), n)
    cut = np.int32(0)
    for i in range(n):
        cut += np.int32(abs(y[i]) > _ONE)
        y[i] = min(max(y[i], -_ONE), _ONE)
    return cut


@kernel
def float_of_pcm16(source: int, target: int, n: int) -> None:
    """Turn int16 into float32, full scale ±1.0."""
    x = carray(int16_at(source), n)
    y = carray(float32_at(target), n)
    for i in range(n):
        y[i] = _F(x[i]) * _F(1.0 / 32768.0)


@kernel
def pcm16_of_float(source: int, target: int, n: int) -> None:
    """Turn float32 within ±1.0 into int16, rounded to the nearest (ties to even)."""
    x = carray(float32_at(source), n)
    y = carray(int16_at(target), n)
    for i in range(n):
        # Adding 1.5·2²³ leaves no fraction: rounding that vectorizes.
        whole = (x[i] * _F(32768.0) + _F(12582912.0)) - _F(12582912.0)
        y[i] = np.int16(min(max(whole, _F(-32768.0)), _F(32767.0)))
