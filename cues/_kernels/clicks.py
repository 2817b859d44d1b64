"""Loop of the click detector: what a linear predictor of order 12 could not foresee, frame by frame.

Its twin in plain numpy is `cues.clicks.residual`.
"""

# ruff: noqa: ANN001, ANN202  (numba infers the types; the callers in cues/ state them)
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from cues._kernels.compiling import kernel

__all__ = ["CORRECTION", "ORDER", "prediction_errors"]

ORDER = 12
CORRECTION = 1e-9
"""White noise that is added to the autocorrelation, relative: −90 dB keep the recursion from dividing by zero."""


@kernel
def prediction_errors(padded, window, hop, errors):
    """Store the prediction error of each sample of a signal.

    padded : float32, the signal between zeros: `len(window)/2 − hop/2 + ORDER` before it, as many as the last window
    needs after it; window : float64 (a multiple of 16,); hop : samples of a frame; errors : float32, whole hops.
    """
    length = len(window)
    half = length // 2
    before = (length - hop) // 2
    weighted = np.zeros(length + ORDER)
    products = np.zeros(half)
    r = np.zeros(ORDER + 1)
    a = np.zeros(ORDER)
    swap = np.zeros(ORDER)
    for start in range(0, len(errors), hop):
        for i in range(length):
            weighted[i] = padded[start + ORDER + i] * window[i]
        for k in range(ORDER + 1):
            # A sum into one number cannot be vectorized; products that are folded onto each other can.
            for i in range(half):
                products[i] = weighted[i] * weighted[i + k] + weighted[i + half] * weighted[i + half + k]
            size = half
            while size % 2 == 0:
                size //= 2
                for i in range(size):
                    products[i] += products[i + size]
            total = 0.0
            for i in range(size):
                total += products[i]
            r[k] = total
        _durbin(r, a, swap)
        a0, a1, a2, a3, a4, a5 = a[0], a[1], a[2], a[3], a[4], a[5]
        a6, a7, a8, a9, a10, a11 = a[6], a[7], a[8], a[9], a[10], a[11]
        at = start + before + ORDER
        for i in range(hop):
            p = at + i
            near = a0 * padded[p - 1] + a1 * padded[p - 2] + a2 * padded[p - 3] + a3 * padded[p - 4]
            middle = a4 * padded[p - 5] + a5 * padded[p - 6] + a6 * padded[p - 7] + a7 * padded[p - 8]
            far = a8 * padded[p - 9] + a9 * padded[p - 10] + a10 * padded[p - 11] + a11 * padded[p - 12]
            errors[start + i] = padded[p] - (near + middle + far)


@kernel
def _durbin(r, a, swap):
    """Predictor of an autocorrelation (Levinson and Durbin's recursion); all zero for silence."""
    a[:] = 0.0
    error = r[0] * (1.0 + CORRECTION)
    for m in range(ORDER):
        if error <= 0.0:
            return
        reflected = r[m + 1]
        for i in range(m):
            reflected -= a[i] * r[m - i]
        reflected /= error
        for i in range(m):
            swap[i] = a[i] - reflected * a[m - 1 - i]
        for i in range(m):
            a[i] = swap[i]
        a[m] = reflected
        error *= 1.0 - reflected * reflected
