"""Loop of the click detector: what a linear predictor of order 12 could not foresee, frame by frame.

Its twin in plain numpy is `cues.meters.clicks.residual`.
"""

# ruff: noqa: ANN001, ANN202  (numba infers the types; the callers in cues/ state them)
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from cues._kernels.compiling import meter_kernel

__all__ = ["CORRECTION", "ORDER", "prediction_errors"]

ORDER = 12
CORRECTION = 1e-9
"""White noise that is added to the autocorrelation, relative: −90 dB keep the recursion from dividing by zero."""


@meter_kernel
def prediction_errors(padded, window, hop, errors):
    """Store the prediction error of each sample of a signal, in whole hops.

    `padded` is the signal between zeros: `len(window)/2 − hop/2 + ORDER` before it, as many as the last window needs
    after it. `window` has a multiple of 16 samples.
    """
    length = len(window)
    eighth = length // 8
    e2, e3, e4, e5, e6, e7 = 2 * eighth, 3 * eighth, 4 * eighth, 5 * eighth, 6 * eighth, 7 * eighth
    before = (length - hop) // 2
    weighted = np.zeros(length + ORDER)
    products = np.zeros(eighth)
    x = np.zeros(hop + ORDER)
    frame = np.zeros(hop, np.float32)
    r = np.zeros(ORDER + 1)
    a = np.zeros(ORDER)
    swap = np.zeros(ORDER)
    for start in range(0, len(errors), hop):
        for i in range(length):
            weighted[i] = padded[start + ORDER + i] * window[i]
        for k in range(ORDER + 1):
            # A sum into one number cannot be vectorized; products that are folded onto each other can.
            for i in range(eighth):
                j = i + k
                first = weighted[i] * weighted[j] + weighted[i + eighth] * weighted[j + eighth]
                second = weighted[i + e2] * weighted[j + e2] + weighted[i + e3] * weighted[j + e3]
                third = weighted[i + e4] * weighted[j + e4] + weighted[i + e5] * weighted[j + e5]
                fourth = weighted[i + e6] * weighted[j + e6] + weighted[i + e7] * weighted[j + e7]
                products[i] = (first + second) + (third + fourth)
            size = eighth
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
        # Indices that are a loop's own number, or more, need no check for being negative; with one, nothing vectorizes.
        x[:] = padded[start + before : start + before + hop + ORDER]
        for i in range(hop):
            near = a0 * x[i + 11] + a1 * x[i + 10] + a2 * x[i + 9] + a3 * x[i + 8]
            middle = a4 * x[i + 7] + a5 * x[i + 6] + a6 * x[i + 5] + a7 * x[i + 4]
            far = a8 * x[i + 3] + a9 * x[i + 2] + a10 * x[i + 1] + a11 * x[i]
            frame[i] = x[i + 12] - (near + middle + far)
        errors[start : start + hop] = frame


@meter_kernel
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
