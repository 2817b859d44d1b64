"""Telephone simulation: 300 to 3400 Hz at 8 kHz, in the 8-bit µ-law of ITU-T G.711."""

import numpy as np
from numpy.typing import NDArray

from cues.arrays import mono_float32
from cues.signal.g711 import bytes_of_samples, samples_of_bytes
from cues.signal.resample import resample, resample_loop

__all__ = ["BAND_HZ", "RATE_HZ", "over_telephone"]

RATE_HZ = 8000
BAND_HZ = (300.0, 3400.0)
_EDGE_HZ = (100.0, 300.0)  # widths of the transitions below and above the band, to the ends of the mask in G.712


def over_telephone(samples: NDArray[np.floating], sample_rate: int, *, loop: bool = False) -> NDArray[np.float32]:
    """`samples` over a telephone, at `RATE_HZ`, by the 300–3400 Hz band of ITU-T G.712 (11/2001), with zero phase.

    A period of a `loop` is filtered as if its own end and beginning were around it.
    """
    narrow = (resample_loop if loop else resample)(mono_float32(samples), sample_rate, RATE_HZ)
    size = len(narrow) + (0 if loop else RATE_HZ // 10)  # padding prevents wrap-around
    hz = np.fft.rfftfreq(size, 1.0 / RATE_HZ)
    rise = np.clip((hz - (BAND_HZ[0] - _EDGE_HZ[0])) / _EDGE_HZ[0], 0.0, 1.0)
    fall = np.clip((BAND_HZ[1] + _EDGE_HZ[1] - hz) / _EDGE_HZ[1], 0.0, 1.0)
    gain = 0.25 * (1.0 - np.cos(np.pi * rise)) * (1.0 - np.cos(np.pi * fall))
    passed = np.fft.irfft(np.fft.rfft(narrow, size) * gain, size)[: len(narrow)]
    return samples_of_bytes(bytes_of_samples(passed.astype(np.float32)))
