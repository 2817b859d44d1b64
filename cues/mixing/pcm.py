"""Samples of 16 bits, as transports carry them, and float32, as everything here computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

__all__ = ["float_of_pcm16", "pcm16_of_float"]

_FULL_SCALE = np.float32(32768.0)


def float_of_pcm16(data: bytes) -> Samples:
    """Samples of int16 little-endian bytes as float32, full scale ±1.0."""
    samples: Samples = np.frombuffer(data, dtype="<i2").astype(np.float32) * (1 / _FULL_SCALE)
    return samples


def pcm16_of_float(samples: Samples) -> bytes:
    """Int16 little-endian bytes of float32 within ±1.0, rounded to the nearest (ties to even)."""
    whole = np.rint(samples * _FULL_SCALE)
    data: bytes = np.clip(whole, -32768.0, 32767.0).astype("<i2").tobytes()
    return data
