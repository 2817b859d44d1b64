"""Interpolation filters for the true-peak meters and the limiter."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["phases"]


@lru_cache(maxsize=16)
def phases(oversampling: int, taps: int, band: float, ridge: float = 1e-13) -> NDArray[np.float64]:
    """Impulse responses that interpolate at `1/oversampling, 2/oversampling, …` between the two middle samples."""
    # Each is the least-squares fit of the ideal fractional delay `d`: `∫ |Σ h[k]·e^(−jωk) − e^(−jωd)|² dω` over the
    # band (0 … `band` of the sample rate) is least for `R·h = r`, with sinc values in `R` and `r`. `ridge` is added to
    # the diagonal: with many taps, the smallest eigenvalues lie below the rounding of float64.
    # Read-only, shape `(oversampling − 1, taps)`, `taps` even; for correlation with the signal, not reversed.
    k = np.arange(taps)
    distance = 2.0 * band * (k[:, None] - k[None, :])
    delays = taps // 2 - 1 + np.arange(1, oversampling) / oversampling
    system = np.sinc(distance) + ridge * np.eye(taps)
    responses: NDArray[np.float64] = np.linalg.solve(system, np.sinc(2.0 * band * (k[:, None] - delays[None, :]))).T
    responses.flags.writeable = False
    return responses
