"""Short-time power spectra, for pictures and meters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["short_time_power"]


def short_time_power(
    samples: NDArray[np.floating], centers: NDArray[np.integer], length: int, n_fft: int
) -> NDArray[np.float64]:
    """Power spectra of Hann windows around `centers`; the sound is padded with silence.

    A center is a sample, 0 … `n_samples + length // 2`; bin `k` is at `k · sample_rate / n_fft` Hz, `n_fft` ≥ `length`.
    """
    padded = np.pad(samples, (length // 2, length))
    windows = np.lib.stride_tricks.sliding_window_view(padded, length)[centers]
    power: NDArray[np.float64] = np.abs(np.fft.rfft(windows * np.hanning(length), n_fft)) ** 2
    return power
