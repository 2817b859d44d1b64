"""Interpolation filters for the true-peak meters and the limiter."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["phases"]


@lru_cache(maxsize=16)
def phases(oversampling: int, taps: int, band: float, ridge: float = 1e-13) -> NDArray[np.float64]:
    """Impulse responses that interpolate at `1/oversampling, 2/oversampling, …` between the two middle samples.

    Each is the least-squares fit of the ideal fractional delay `d`: `∫ |Σ h[k]·e^(−jωk) − e^(−jωd)|² dω` over the band
    is least for `R·h = r`, with sinc values in `R` and `r`.

    Parameters
    ----------
    oversampling : int
        ≥ 2.
    taps : int
        Even, ≥ 2.
    band : float
        Upper edge of the fitted band, 0 … 0.5 of the sample rate.
    ridge : float
        Added to the diagonal: with many taps, the smallest eigenvalues lie below the rounding of float64.

    Returns
    -------
    float64, shape `(oversampling − 1, taps)`
        Read-only; for correlation with the signal, not reversed.
    """
    k = np.arange(taps)
    distance = 2.0 * band * (k[:, None] - k[None, :])
    delays = taps // 2 - 1 + np.arange(1, oversampling) / oversampling
    system = np.sinc(distance) + ridge * np.eye(taps)
    responses: NDArray[np.float64] = np.linalg.solve(system, np.sinc(2.0 * band * (k[:, None] - delays[None, :]))).T
    responses.flags.writeable = False
    return responses
