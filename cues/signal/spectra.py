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
    """Power spectra of Hann windows; the sound is padded with silence.

    Parameters
    ----------
    samples : float, shape `(n_samples,)`
        The sound.
    centers : int, shape `(n_windows,)`
        Middle sample of each window, 0 … `n_samples + length // 2`.
    length : int
        Length of a window, samples, ≥ 1.
    n_fft : int
        FFT length, ≥ `length`; bin `k` is at `k · sample_rate / n_fft` Hz.

    Returns
    -------
    float64, shape `(n_windows, n_fft // 2 + 1)`.
    """
    padded = np.pad(samples, (length // 2, length))
    windows = np.lib.stride_tricks.sliding_window_view(padded, length)[centers]
    power: NDArray[np.float64] = np.abs(np.fft.rfft(windows * np.hanning(length), n_fft)) ** 2
    return power
