"""Conversion between int16, as transports carry it, and float32, full scale ±1.0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.arrays import Samples
from cues.errors import CueTypeError

__all__ = ["bytes_of_pcm16", "dithered_int16", "float_of_int16", "float_of_pcm16", "int16_of_float", "pcm16_of_float"]

_FULL_SCALE = np.float32(32768.0)
_FORMATS = frozenset(order + kind for order in ("", "<", "=", "@") for kind in "bBch")
"""Allowed buffer formats, in `struct` notation: bytes, or native (little-endian) int16."""


def bytes_of_pcm16(data: Any) -> bytes:
    """The bytes of a buffer of bytes or int16 (`bytes` as they are); floats, which would be noise, are refused."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)
    except (TypeError, ValueError):
        raise CueTypeError(f"data is {type(data).__name__}; it must be bytes or have a buffer") from None
    if view.format not in _FORMATS:
        raise CueTypeError(
            f"data has dtype {getattr(data, 'dtype', view.format)}; "
            "it must be int16 little-endian bytes (floats: `mix`, `push`)"
        )
    return view.tobytes()


def float_of_int16(samples: NDArray[np.int16]) -> Samples:
    """Int16 samples of any shape as float32, full scale ±1.0."""
    return np.multiply(samples, 1 / _FULL_SCALE, dtype=np.float32)


def float_of_pcm16(data: bytes) -> Samples:
    """Int16 little-endian bytes as float32 samples, full scale ±1.0."""
    return float_of_int16(np.frombuffer(data, dtype="<i2"))


def int16_of_float(samples: Samples) -> NDArray[np.int16]:
    """Float32 samples of any shape as int16, rounded (ties to even) and clipped at full scale."""
    return _steps(samples * _FULL_SCALE)


def pcm16_of_float(samples: Samples) -> bytes:
    """Float32 samples as int16 little-endian bytes, rounded as by `int16_of_float`."""
    return int16_of_float(samples).astype("<i2", copy=False).tobytes()


def dithered_int16(samples: Samples) -> NDArray[np.int16]:
    """Samples of shape `(n_samples,)` as int16 with triangular dither of ±1 step; digital silence stays silent."""
    # The dither comes from raw integers of PCG64 with a fixed seed, so the result is the same on every machine.
    bits = np.random.PCG64(16).random_raw(2 * len(samples))
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    dither = np.where(samples != 0.0, uniform[: len(samples)] - uniform[len(samples) :], 0.0)
    return _steps(samples.astype(np.float64) * _FULL_SCALE + dither)


def _steps(scaled: NDArray[np.floating]) -> NDArray[np.int16]:
    whole: NDArray[np.int16] = np.clip(np.rint(scaled), -32768, 32767).astype(np.int16)
    return whole
