"""The end that was cut off: a continuation of speech for the few milliseconds in which it fades.

A transport that drops its queue at a barge-in ends the speech between two samples, which clicks. What would have come
is gone; but speech can be foretold for some milliseconds, and that is all a fade needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues.signal.fades import raised_cosine

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["faded_continuation"]

_ORDER = 24  # Two per formant up to 12 kHz and some for the melody.


def faded_continuation(past: NDArray[np.float32], n_samples: int) -> NDArray[np.float32]:
    """How `past` could have gone on, fading to silence.

    Linear prediction by the autocorrelation method, whose filter is stable (J. Makhoul, "Linear prediction: a tutorial
    review", Proc. IEEE 63 (1975), section II), run on without an input.

    Parameters
    ----------
    past : float32, shape `(n,)`, full scale ±1.0: the last 20 ms or more; a shorter past is a worse prophet.
    n_samples : length of the continuation, samples, ≥ 1.

    Returns
    -------
    float32, shape `(n_samples,)`, full scale ±1.0; ends in exactly 0.0.

    Examples
    --------
    >>> tone = np.sin(np.arange(960) * 0.1).astype(np.float32)
    >>> after = faded_continuation(tone, 240)
    >>> bool(abs(after[0] - np.sin(96.0)) < 0.05), float(after[-1])
    (True, 0.0)
    """
    x = np.asarray(past, dtype=np.float64)
    order = min(_ORDER, len(x) - 1)
    fade = np.append(1.0 - raised_cosine(n_samples)[1:], 0.0)
    if order < 1 or not np.any(x):
        return np.zeros(n_samples, dtype=np.float32)
    # The window leans on the end of the past, because that is where the continuation must fit.
    windowed = x * np.sin(np.pi * (np.arange(len(x)) + 0.5) / len(x)) ** 0.5
    lags = np.array([windowed[: len(x) - lag] @ windowed[lag:] for lag in range(order + 1)])
    lags[0] *= 1.0 + 1e-9  # White noise 90 dB down keeps the equations regular where the past is a pure tone.
    matrix = lags[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
    coefficients = np.linalg.solve(matrix, lags[1:])
    buffer = np.concatenate([x[-order:], np.zeros(n_samples)])
    for k in range(n_samples):
        buffer[order + k] = coefficients @ buffer[k : order + k][::-1]
    continuation: NDArray[np.float32] = np.clip(buffer[order:] * fade, -1.0, 1.0).astype(np.float32)
    return continuation
