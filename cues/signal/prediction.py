"""Linear prediction: predictors of a signal, and its continuation for a few milliseconds.

The autocorrelation method, whose filters are stable: J. Makhoul, "Linear prediction: a tutorial review", Proc. IEEE 63
(1975), section II.
"""

import numpy as np
from numpy.typing import NDArray

from cues.signal.fades import raised_cosine
from cues.units import ms_to_samples

__all__ = ["faded_continuation", "is_seamless", "predictors"]

_CORRECTION = 1e-9  # white noise at −90 dB keeps the recursion regular for pure tones
_ORDER = 24  # two per formant up to 12 kHz, and some for the pitch
_SEAM_ORDER = 32  # a chord with its partials
_NEAR_SEAM_MS, _AROUND_SEAM_MS = 5.0, 100.0
_SILENT_BEND, _SILENT_ERROR, _DECAYED = 1e-4, 3e-4, 1e-3  # of full scale: −80, −70 and −60 dBFS


def predictors(lags: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predictors by the Levinson-Durbin recursion, that of the last sample first; all zero for silence."""
    # `lags` are autocorrelations from lag 0 on: shape `(n_frames, order + 1)`.
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


def _predictor(windowed: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    lags = [windowed[: len(windowed) - lag] @ windowed[lag:] for lag in range(order + 1)]
    predictor: NDArray[np.float64] = predictors(np.array([lags]))[0]
    return predictor


def faded_continuation(past: NDArray[np.float32], n_samples: int) -> NDArray[np.float32]:
    """Predicted continuation of `past`, faded out: `n_samples` that end in exactly 0.0."""
    # Speech that stops between two samples clicks. Its continuation can be predicted for some milliseconds, enough for
    # a fade-out. `past` is the last 20 ms or more; less context predicts worse.
    x = np.asarray(past, dtype=np.float64)
    order = min(_ORDER, len(x) - 1)
    fade = np.append(1.0 - raised_cosine(n_samples)[1:], 0.0)
    if order < 1 or not np.any(x):
        return np.zeros(n_samples, dtype=np.float32)
    # A square-root sine window keeps more of the end of the past, which the continuation must fit.
    windowed = x * np.sin(np.pi * (np.arange(len(x)) + 0.5) / len(x)) ** 0.5
    oldest_first = _predictor(windowed, order)[::-1].copy()
    buffer = np.concatenate([x[-order:], np.zeros(n_samples)])
    for k in range(n_samples):
        buffer[order + k] = oldest_first @ buffer[k : order + k]
    continuation: NDArray[np.float32] = np.clip(buffer[order:] * fade, -1.0, 1.0).astype(np.float32)
    return continuation


def is_seamless(samples: NDArray[np.floating], sample_rate: int) -> bool:
    """Whether a loop of `samples` is no rougher at its seam than around it, by its bends and to a linear predictor.

    High partials bend more than a jump of their phase, which a predictor does not expect. Nor does it expect a beat,
    with which a loop may begin after its end has decayed.
    """
    near, n = (min(ms_to_samples(ms, sample_rate), len(samples)) for ms in (_NEAR_SEAM_MS, _AROUND_SEAM_MS))
    around = np.concatenate([samples[len(samples) - n :], samples[:n]]).astype(np.float64)
    bends = np.abs(np.diff(around[n - near : n + near], 2))
    if bends[max(near - 2, 0) : near].max(initial=0.0) > 2.0 * _elsewhere(bends, near - 2, near) + _SILENT_BEND:
        return False
    if np.abs(around[n - near : n]).max(initial=0.0) < _DECAYED:
        return True
    order = max(1, min(_SEAM_ORDER, n // 8))
    past = np.lib.stride_tricks.sliding_window_view(around[:-1], order)[:, ::-1]
    errors = np.abs(around[order:] - past @ _predictor(around * np.hanning(len(around)), order))
    at_seam = errors[n - order : n + 1].max(initial=0.0)
    return bool(at_seam <= 2.0 * _elsewhere(errors, n - 2 * order, n + order) + _SILENT_ERROR)


def _elsewhere(values: NDArray[np.float64], start: int, stop: int) -> float:
    return float(np.concatenate([values[: max(start, 0)], values[stop:]]).max(initial=0.0))
