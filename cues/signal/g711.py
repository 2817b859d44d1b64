"""µ-law and A-law of ITU-T G.711, as tables: one look-up a sample."""

from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cues.arrays import Samples
from cues.errors import CueValueError
from cues.signal.pcm import float_of_int16, int16_of_float

__all__ = ["Law", "bytes_of_samples", "samples_of_bytes"]

Law: TypeAlias = Literal["mulaw", "alaw"]

_BIAS, _LARGEST = 33, 0x1FFF
"""Bias of µ-law and its largest biased magnitude, on the law's own scale of 14 bits."""


def bytes_of_samples(samples: Samples, law: Law = "mulaw") -> bytes:
    """`samples` (float32, clipped at ±1.0) in G.711: a byte each.

    References
    ----------
    ITU-T G.711 (11/88), tables 1 and 2; decision values as in ITU-T G.191, `g711.c`.
    """
    _, codes = _tables(law)
    return codes[int16_of_float(samples).view(np.uint16)].tobytes()


def samples_of_bytes(data: bytes, law: Law = "mulaw") -> Samples:
    """The samples of G.711 bytes: float32, shape `(len(data),)`, within ±0.98; errors as in `bytes_of_samples`."""
    levels, _ = _tables(law)
    return float_of_int16(levels[np.frombuffer(data, dtype=np.uint8)])


@cache
def _tables(law: Law) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """The int16 level of each code, and the code of each int16 sample, by the sample's 16 bits."""
    makers = {"mulaw": (_mulaw_levels, _mulaw_codes), "alaw": (_alaw_levels, _alaw_codes)}
    if law not in makers:
        raise CueValueError(f"law is {law!r}; it must be one of {', '.join(makers)}")
    levels, codes = makers[law]
    samples = np.arange(1 << 16, dtype=np.uint16).view(np.int16).astype(np.int32)
    # A negative sample has the magnitude of its complement: both signs have the same decision values.
    magnitudes = np.where(samples < 0, ~samples, samples)
    signs = np.where(samples < 0, 0x00, 0x80)
    return levels(np.arange(256)).astype(np.int16), codes(magnitudes, signs).astype(np.uint8)


def _mulaw_levels(codes: NDArray[np.int_]) -> NDArray[np.int_]:
    inverted = ~codes & 0xFF
    segment, step = (inverted >> 4) & 0x07, inverted & 0x0F
    magnitude = (((2 * step + _BIAS) << segment) - _BIAS) * 4
    levels: NDArray[np.int_] = np.where(inverted & 0x80, -magnitude, magnitude)
    return levels


def _mulaw_codes(magnitudes: NDArray[np.int32], signs: NDArray[np.int_]) -> NDArray[np.int_]:
    biased = np.minimum((magnitudes >> 2) + _BIAS, _LARGEST)
    segment = _highest_bit(biased) - 5
    step = (biased >> (segment + 1)) & 0x0F
    inverted = (signs ^ 0x80) | (segment << 4) | step
    codes: NDArray[np.int_] = ~inverted & 0xFF
    return codes


def _alaw_levels(codes: NDArray[np.int_]) -> NDArray[np.int_]:
    plain = codes ^ 0x55
    segment, step = (plain >> 4) & 0x07, plain & 0x0F
    magnitude = np.where(segment == 0, 2 * step + 1, (2 * step + 33) << np.maximum(segment - 1, 0)) * 8
    levels: NDArray[np.int_] = np.where(plain & 0x80, magnitude, -magnitude)
    return levels


def _alaw_codes(magnitudes: NDArray[np.int32], signs: NDArray[np.int_]) -> NDArray[np.int_]:
    steps = magnitudes >> 4
    segment = np.maximum(_highest_bit(np.maximum(steps, 1)) - 3, 0)
    step = (steps >> np.maximum(segment - 1, 0)) & 0x0F
    codes: NDArray[np.int_] = (signs | (segment << 4) | step) ^ 0x55
    return codes


def _highest_bit(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """The position of the highest bit of positive numbers."""
    return np.frexp(numbers.astype(np.float64))[1] - 1
