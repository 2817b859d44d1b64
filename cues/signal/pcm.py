"""Samples of 16 bits, as transports carry them, and float32, as everything here computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cues.errors import CueTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

__all__ = ["bytes_of_pcm16", "float_of_pcm16", "pcm16_of_float"]

_FULL_SCALE = np.float32(32768.0)
_FORMATS = frozenset(order + kind for order in ("", "<", "=", "@") for kind in "bBch")
"""What a buffer of samples may hold, as `struct` writes it: single bytes, or int16 of this (little-endian) machine."""


def bytes_of_pcm16(data: Any) -> bytes:
    """The bytes of a buffer that holds bytes or int16; itself if it is `bytes`.

    Raises
    ------
    CueTypeError : for something without a buffer, or one of floats, which would be read as noise, twice as long.
    """
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


def float_of_pcm16(data: bytes) -> Samples:
    """Samples of int16 little-endian bytes as float32, full scale ±1.0."""
    samples: Samples = np.frombuffer(data, dtype="<i2").astype(np.float32) * (1 / _FULL_SCALE)
    return samples


def pcm16_of_float(samples: Samples) -> bytes:
    """Int16 little-endian bytes of float32 within ±1.0, rounded to the nearest (ties to even)."""
    whole = np.rint(samples * _FULL_SCALE)
    data: bytes = np.clip(whole, -32768.0, 32767.0).astype("<i2").tobytes()
    return data
