"""Click detection by linear prediction.

A linear predictor follows speech and tones, but not a cut, a gain jump or a lost buffer. A click is a single prediction
error far above the errors before and after it.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cues._kernels.object_file import load_kernels
from cues.arrays import mono_float32
from cues.signal.prediction import predictors
from cues.units import checked_sample_rate, db_to_gain

__all__ = ["ORDER", "THRESHOLD_DB", "find_clicks", "residual"]

ORDER = 12
THRESHOLD_DB = 24.0  # of a click's error above the errors around it

_FRAME_S, _WINDOW_S = 0.040, 0.060
_BLOCK_S = 0.001
_NEAR_BLOCKS, _FAR_BLOCKS, _ROW_BLOCKS = 2, 9, 25
_SILENT_LEVEL = 3.2e-5
_SMALLEST = 1e-3  # error of a click: −60 dBFS
_ALONE = 1.4  # least ratio to the peaks around it; excludes glottal pulses, which come in rows
_APART_S = 0.005
_MARGIN = 0.8  # for candidates: an error depends this much on the position of its frame and block
_CENTERINGS = 3
# Shorter sounds do not repay the loading of the compiled loop.
_LONG_SAMPLES = 200_000


def find_clicks(samples: NDArray[np.floating], sample_rate: int = 24000) -> NDArray[np.int64]:
    """Positions of the clicks in a sound, including hard edges at its ends: int64, 0 … `n_samples`, ascending.

    A prediction error is a click if it is 24 dB above the RMS of the errors from 2 to 9 ms before and after it, above
    −60 dBFS, and 3 dB above all but one of the errors within 25 ms. So consonant onsets and glottal pulses are not
    clicks: the errors after an onset are as large, and pulses come in rows. Of clicks closer than 5 ms, only the
    strongest counts.

    Results do not depend on the position in the file, except that a click near the thresholds may rarely be missed.

    Examples
    --------
    >>> import numpy as np
    >>> tone = 0.3 * np.sin(2 * np.pi * 440 * np.arange(12000) / 24000 + 1.0)
    >>> tone[5000:] *= -1.0
    >>> find_clicks(tone).tolist()
    [0, 5000, 12000]
    """
    sample_rate = checked_sample_rate(sample_rate)
    mono = mono_float32(samples)
    block = max(8, round(_BLOCK_S * sample_rate))
    compiled = len(mono) >= _LONG_SAMPLES
    errors = _errors(mono, sample_rate, compiled)
    clicks: dict[int, float] = {}
    blocks = errors[: len(errors) // block * block].reshape(-1, block)
    peaks = _peaks(blocks)
    for b in np.flatnonzero(peaks > _MARGIN * _thresholds(blocks)).tolist():
        if _alone(peaks, b, _MARGIN * _ALONE):
            at, error = _click_near(mono, b * block + int(blocks[b].argmax()), sample_rate, block, compiled)
            if error and at <= len(mono):
                clicks[at] = error
    return _apart(clicks, round(_APART_S * sample_rate))


def residual(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """Prediction errors of `samples`, in numpy: the twin of the compiled loop."""
    # Each 40 ms frame has a predictor of order 12, from the Hann-windowed 60 ms around it (autocorrelation method).
    hop, window = _frame(sample_rate)
    length = len(window)
    padded = _padded(samples, hop, length)
    n_frames = _n_frames(len(samples), hop)
    frames = np.lib.stride_tricks.sliding_window_view(padded[ORDER:], length)[::hop][:n_frames] * window
    r = np.stack([(frames[:, : length - k] * frames[:, k:]).sum(axis=1) for k in range(ORDER + 1)], axis=1)
    errors = np.empty((n_frames, hop))
    for frame, predictor in enumerate(predictors(r)):
        start = frame * hop + (length - hop) // 2
        past = np.lib.stride_tricks.sliding_window_view(padded[start : start + hop + ORDER - 1], ORDER)[:, ::-1]
        errors[frame] = padded[start + ORDER : start + ORDER + hop] - past @ predictor
    return errors.reshape(-1).astype(np.float32)


def _click_near(
    samples: NDArray[np.float32], at: int, sample_rate: int, block: int, compiled: bool
) -> tuple[int, float]:
    """Position and error of the click within the millisecond around `at`; error 0 without a click."""
    # Frames and blocks are centered on the candidate, so results do not depend on the position in the file. It must be
    # a click in one of three layouts, and its error must also exceed the threshold in the centered one: at the end of a
    # frame the predictor misses even soft onsets (a tone with a 10 ms raised cosine after faded noise was a false click
    # at 17 of 300 positions). The centered layout alone would miss a tenth of the cuts in speech.
    hop, _ = _frame(sample_rate)
    for _ in range(_CENTERINGS):
        blocks = _errors_around(samples, at, sample_rate, block, compiled)
        moved = int(blocks[_ROW_BLOCKS].argmax()) - block // 2
        if not moved:
            break
        at += moved
    error = float(blocks[_ROW_BLOCKS].max())
    for shift in (0, -hop // 4, hop // 4):
        if shift:
            blocks = _errors_around(samples, at, sample_rate, block, compiled, shift)
        peaks, threshold = _peaks(blocks), _thresholds(blocks)[_ROW_BLOCKS]
        if min(error, peaks[_ROW_BLOCKS]) > threshold and _alone(peaks, _ROW_BLOCKS, _ALONE):
            return at, error
        if error <= _MARGIN * threshold or not _alone(peaks, _ROW_BLOCKS, _MARGIN * _ALONE):
            break  # most candidates fail here; the other layouts would cost twice as much again
    return at, 0.0


def _errors_around(  # noqa: PLR0917  (a helper of the function above)
    samples: NDArray[np.float32], at: int, sample_rate: int, block: int, compiled: bool, shift: int = 0
) -> NDArray[np.float32]:
    """Errors in the blocks around `at`; the middle block is centered on it, a frame `shift` samples after it."""
    hop, _ = _frame(sample_rate)
    around = np.zeros(5 * hop, dtype=np.float32)  # the outer frames have truncated windows and are not used
    first = at + shift - len(around) // 2
    part = samples[max(first, 0) : max(first + len(around), 0)]
    around[max(-first, 0) :][: len(part)] = part
    start = at - first - block // 2 - _ROW_BLOCKS * block
    n_blocks = 2 * _ROW_BLOCKS + 1
    return _errors(around, sample_rate, compiled)[start : start + n_blocks * block].reshape(n_blocks, block)


def _errors(samples: NDArray[np.float32], sample_rate: int, compiled: bool) -> NDArray[np.float32]:
    """Magnitudes of the prediction errors."""
    kernels = load_kernels() if compiled else None
    if kernels is None:
        return np.abs(residual(samples, sample_rate))
    hop, window = _frame(sample_rate)
    errors = np.empty(_n_frames(len(samples), hop) * hop, dtype=np.float32)
    padded, scratch = _padded(samples, hop, len(window)), np.empty(2 * len(window) + hop + 2 * ORDER)
    signal, shape, work, out = (array.ctypes.data for array in (padded, window, scratch, errors))
    kernels.prediction_errors(signal, shape, len(window), hop, work, out, len(errors))
    return np.abs(errors, out=errors)


@lru_cache(maxsize=8)
def _frame(sample_rate: int) -> tuple[int, NDArray[np.float64]]:
    """Hop and window of the frames; both lengths are multiples of a power of 2."""
    step = 1 << (sample_rate // 80).bit_length() - 1
    hop, length = (max(1, round(duration_s * sample_rate / step)) * step for duration_s in (_FRAME_S, _WINDOW_S))
    return hop, np.hanning(length + 1)[:length]


def _n_frames(n_samples: int, hop: int) -> int:
    return (n_samples + ORDER) // hop + 1


def _padded(samples: NDArray[np.float32], hop: int, length: int) -> NDArray[np.float32]:
    before = (length - hop) // 2 + ORDER
    padded = np.zeros(_n_frames(len(samples), hop) * hop + length + ORDER, dtype=np.float32)
    padded[before : before + len(samples)] = samples
    return padded


def _thresholds(blocks: NDArray[np.float32]) -> NDArray[np.float64]:
    """Threshold of the errors in each block, from the RMS of the blocks before and after, without the nearest ones."""
    energy = np.pad(np.einsum("ij,ij->i", blocks, blocks).astype(np.float64), _FAR_BLOCKS)
    total = np.concatenate([np.zeros(1), np.cumsum(energy)])
    n_blocks, n_samples = blocks.shape
    reach = _FAR_BLOCKS - _NEAR_BLOCKS + 1
    before, after = (
        total[start + reach : start + reach + n_blocks] - total[start : start + n_blocks]
        for start in (0, _FAR_BLOCKS + _NEAR_BLOCKS)
    )
    levels = np.maximum(np.sqrt(np.maximum(before + after, 0.0) / (2 * reach * n_samples)), _SILENT_LEVEL)
    thresholds: NDArray[np.float64] = np.maximum(levels * db_to_gain(THRESHOLD_DB), _SMALLEST)
    return thresholds


def _peaks(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Largest error of each block; numpy reduces the first axis four times faster than a short last axis."""
    peaks: NDArray[np.float32] = np.ascontiguousarray(blocks.T).max(axis=0)
    return peaks


def _alone(peaks: NDArray[np.float32], block: int, factor: float) -> bool:
    """Whether the error in a block is `factor` times all but one of those within 25 ms."""
    # A lost buffer makes two clicks, and one must not hide the other.
    before = peaks[max(0, block - _ROW_BLOCKS) : max(0, block - _NEAR_BLOCKS + 1)]
    after = peaks[block + _NEAR_BLOCKS : block + _ROW_BLOCKS + 1]
    around = np.concatenate([before, after])
    return len(around) < 2 or bool(peaks[block] > factor * np.partition(around, -2)[-2])


def _apart(clicks: dict[int, float], apart: int) -> NDArray[np.int64]:
    """Positions, with only the largest error of each group closer than `apart`."""
    found = np.array(sorted(clicks), dtype=np.int64)
    if not len(found):
        return found
    groups = np.split(found, np.flatnonzero(np.diff(found) >= apart) + 1)
    return np.array([max(group.tolist(), key=clicks.__getitem__) for group in groups], dtype=np.int64)
