"""Similarity of two cues for a listener without absolute pitch: rhythm and shape of the melody."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.signal.resample import resample
from cues.signal.spectra import short_time_power

__all__ = ["CONFUSABLE", "similarity"]

CONFUSABLE = 0.9
"""Similarity from which two cues are hard to tell apart; `bench/similarity.py` lists the built-in cues."""

_RATE_HZ = 24000
_WINDOW, _HOP = 1024, 240
_LOWEST_HZ, _BANDS_PER_OCTAVE, _N_BANDS = 125.0, 12, 68
_HEARING_DB = 40.0
_MAX_SHIFT_HOPS, _MAX_SHIFT_BANDS = 3, 12


def similarity(first: Any, second: Any) -> float:
    """Similarity of two cues, 0 (nothing in common) to 1 (equal except for pitch and level).

    It is the best correlation of the spectrograms (10 ms, semitones, 40 dB) over shifts of up to 30 ms and an octave.
    """
    patterns = _pattern(first), _pattern(second)
    silent = [not len(pattern) for pattern in patterns]
    return float(all(silent)) if any(silent) else _best_match(*patterns)


def _pattern(cue: Any) -> NDArray[np.float64]:
    """Spectrogram in semitone bands, dB above −40 dB of the loudest: shape `(n_hops, n_bands)`; no hop of silence."""
    samples = resample(cue.samples, cue.sample_rate, _RATE_HZ)
    power = short_time_power(samples, np.arange(0, len(samples) + _WINDOW // 2 + 1, _HOP), _WINDOW, 4 * _WINDOW)
    hz = np.fft.rfftfreq(4 * _WINDOW, 1.0 / _RATE_HZ)
    edges_hz = _LOWEST_HZ * 2.0 ** (np.arange(_N_BANDS + 1) / _BANDS_PER_OCTAVE)
    edges = np.searchsorted(hz, edges_hz)
    total = np.concatenate([np.zeros((len(power), 1)), np.cumsum(power, axis=1)], axis=1)
    bands = total[:, edges[1:]] - total[:, edges[:-1]]
    if not bands.max() > 0.0:
        return np.zeros((0, _N_BANDS))
    level_db = 10.0 * np.log10(np.maximum(bands / bands.max(), 1e-12))
    pattern: NDArray[np.float64] = np.maximum(level_db + _HEARING_DB, 0.0)
    sounding = np.flatnonzero(pattern.any(axis=1))
    return pattern[sounding[0] : sounding[-1] + 1]


def _best_match(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    n_hops = max(len(first), len(second)) + 2 * _MAX_SHIFT_HOPS
    laid = _laid(first, n_hops)
    other = _laid(second, n_hops)
    return max(
        float((laid * np.roll(other, (hops, bands), axis=(0, 1))).sum())
        for hops in range(-_MAX_SHIFT_HOPS, _MAX_SHIFT_HOPS + 1)
        for bands in range(-_MAX_SHIFT_BANDS, _MAX_SHIFT_BANDS + 1)
    )


def _laid(pattern: NDArray[np.float64], n_hops: int) -> NDArray[np.float64]:
    """A pattern, padded for the shifts and scaled to an energy of 1."""
    frame = np.zeros((n_hops, _N_BANDS + 2 * _MAX_SHIFT_BANDS))
    frame[_MAX_SHIFT_HOPS : _MAX_SHIFT_HOPS + len(pattern), _MAX_SHIFT_BANDS:-_MAX_SHIFT_BANDS] = pattern
    laid: NDArray[np.float64] = frame / np.sqrt((frame**2).sum())
    return laid
