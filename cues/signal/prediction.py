"""Linear prediction: filters that foresee a signal from its last samples, and the few milliseconds that they foresee.

J. Makhoul, "Linear prediction: a tutorial review", Proc. IEEE 63 (1975), section II: the autocorrelation method, whose
filters are stable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues.signal.fades import raised_cosine

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["faded_continuation", "predictors"]

_CORRECTION = 1e-9  # white noise 90 dB down keeps the recursion regular for pure tones
_ORDER = 24  # two per formant up to 12 kHz and some for the melody


def predictors(lags: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predictors of autocorrelations, by Levinson and Durbin's recursion; all zero for silence.

    Parameters
    ----------
    lags : float64, shape `(n_frames, order + 1)`: autocorrelations from lag 0 on.

    Returns
    -------
    float64, shape `(n_frames, order)`: the factor of the last sample first.
    """
    order = lags.shape[1] - 1
    a = np.zeros((len(lags), order))
    error = lags[:, 0] * (1.0 + _CORRECTION)
    for m in range(order):
        alive = error > 0.0
        reflected = lags[:, m + 1] - (a[:, :m] * lags[:, m:0:-1]).sum(axis=1)
        reflected = np.where(alive, reflected / np.where(alive, error, 1.0), 0.0)
        a[:, :m] -= reflected[:, None] * a[:, :m][:, ::-1]
        a[:, m] = reflected
        error = error * (1.0 - reflected**2)
    return a


def faded_continuation(past: NDArray[np.float32], n_samples: int) -> NDArray[np.float32]:
    """How `past` could have gone on, fading to silence: its predictor, run on without an input.

    A transport that drops its queue at a barge-in ends the speech between two samples, which clicks. The samples that
    would have followed are gone, but speech can be foretold for some milliseconds, and a fade needs no more.

    Parameters
    ----------
    past : float32, shape `(n,)`, full scale ±1.0: the last 20 ms or more; less context predicts worse.
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
    oldest_first = predictors(lags[None])[0, ::-1].copy()
    buffer = np.concatenate([x[-order:], np.zeros(n_samples)])
    for k in range(n_samples):
        buffer[order + k] = oldest_first @ buffer[k : order + k]
    continuation: NDArray[np.float32] = np.clip(buffer[order:] * fade, -1.0, 1.0).astype(np.float32)
    return continuation
