"""Energy of a sound in octave bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CENTERS_HZ", "octave_levels_db"]

CENTERS_HZ = (63, 125, 250, 500, 1000, 2000, 4000, 8000)
"""Nominal centers of the octave bands (IEC 61260-1), Hz."""
_FLOOR_DB = -90.0


def octave_levels_db(samples: NDArray[np.floating], sample_rate: int) -> tuple[float, ...]:
    """Share of a sound's energy in each octave band, dB, −90 … 0; 0 is all of it."""
    power = np.abs(np.fft.rfft(samples.astype(np.float64))) ** 2
    hz = np.fft.rfftfreq(len(samples), 1.0 / sample_rate)
    total = max(float(power.sum()), 1e-30)
    levels = []
    for center in CENTERS_HZ:
        band = (hz >= center / 2**0.5) & (hz < center * 2**0.5)
        share = float(power[band].sum()) / total
        levels.append(10.0 * float(np.log10(max(share, 10.0 ** (_FLOOR_DB / 10.0)))))
    return tuple(levels)
