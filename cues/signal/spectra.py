"""Power spectra, for pictures and meters."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["CENTERS_HZ", "octave_levels_db", "short_time_power"]

CENTERS_HZ = (63, 125, 250, 500, 1000, 2000, 4000, 8000)
"""Nominal centers of the octave bands (IEC 61260-1), Hz."""
_FLOOR_DB = -90.0


def short_time_power(
    samples: NDArray[np.floating], centers: NDArray[np.integer], length: int, n_fft: int
) -> NDArray[np.float64]:
    """Power spectra of Hann windows around `centers`; the sound is padded with silence."""
    # A center is a sample, 0 … `n_samples + length // 2`; bin `k` is at `k · sample_rate / n_fft` Hz, `n_fft` ≥
    # `length`.
    padded = np.pad(samples, (length // 2, length))
    windows = np.lib.stride_tricks.sliding_window_view(padded, length)[centers]
    power: NDArray[np.float64] = np.abs(np.fft.rfft(windows * np.hanning(length), n_fft)) ** 2
    return power


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
