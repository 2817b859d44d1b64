"""From energies to levels: the arithmetic of ITU-R BS.1770-5, EBU Tech 3341 and 3342 on slots of one millisecond.

A slot holds the K-weighted energy (sum of squares) of the samples `k·rate // 1000 … (k + 1)·rate // 1000`. Every window
of a meter is a whole number of slots, so that all of them come from one pass over the signal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "HOP_SLOTS",
    "M100_SLOTS",
    "MOMENTARY_SLOTS",
    "OFFSET_LU",
    "SHORT_TERM_SLOTS",
    "Measurement",
    "gated_mean_square",
    "loudness_range_lu",
    "lufs",
    "slot_start",
    "whole_slots",
    "window_mean_squares",
]

M100_SLOTS = 100
MOMENTARY_SLOTS = 400
SHORT_TERM_SLOTS = 3000
HOP_SLOTS = 100
"""Gating blocks begin every 100 ms: they overlap by 75 % (BS.1770-5, annex 1)."""

OFFSET_LU = -0.691
"""Makes a full-scale sine of 997 Hz in one channel read −3.01 LUFS (BS.1770-5, equation 2)."""
_ABSOLUTE_GATE = 10.0 ** ((-70.0 - OFFSET_LU) / 10.0)
_INTEGRATED_GATE = 10.0 ** (-10.0 / 10.0)
_RANGE_GATE = 10.0 ** (-20.0 / 10.0)
_RANGE_PERCENTILES = (0.10, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Levels of one sound. `None` stands where the sound is shorter than the window; silence is minus infinity.

    Parameters
    ----------
    integrated_lufs : gated loudness (BS.1770-5), from 400 ms on.
    momentary_max_lufs : loudest 400 ms, from 400 ms on.
    short_term_max_lufs : loudest 3 s, from 3 s on.
    m100_max_lufs : loudest 100 ms, ungated, with silence on both sides: the loudness of a cue, of any length.
    loudness_range_lu : EBU Tech 3342, from 3 s on.
    true_peak_dbtp : peak between the samples, at 16 times the rate, never below the sample peak.
    sample_peak_dbfs : largest sample.
    dc : mean of the samples, full scale ±1.0.
    """

    integrated_lufs: float | None
    momentary_max_lufs: float | None
    short_term_max_lufs: float | None
    m100_max_lufs: float
    loudness_range_lu: float | None
    true_peak_dbtp: float
    sample_peak_dbfs: float
    dc: float


def slot_start(slot: int, sample_rate: int) -> int:
    """First sample of a slot, or, as the number of slots, the samples that they hold."""
    return slot * sample_rate // 1000


def whole_slots(n_samples: int, sample_rate: int) -> int:
    """Slots that end within the first `n_samples`."""
    return ((n_samples + 1) * 1000 - 1) // sample_rate


def lufs(mean_square: float) -> float:
    """Loudness of a K-weighted mean square summed over the weighted channels (BS.1770-5, equation 2)."""
    return OFFSET_LU + 10.0 * math.log10(mean_square) if mean_square > 0.0 else -math.inf


def window_mean_squares(
    energies: NDArray[np.float64], sample_rate: int, window_slots: int, *, first_slot: int = 0, hop_slots: int = 1
) -> NDArray[np.float64]:
    """Mean squares of all windows of `window_slots` that lie inside `energies`, one every `hop_slots`.

    Parameters
    ----------
    energies : float64, shape `(n_slots,)`.
    sample_rate : Hz.
    window_slots : length of a window, slots (ms).
    first_slot : the absolute number of the first of `energies`: at rates that are no multiple of 1000 Hz it decides how
        many samples a window holds.
    hop_slots : from one window's start to the next, slots.
    """
    n_windows = len(energies) - window_slots + 1
    if n_windows < 1:
        return np.zeros(0)
    total = np.concatenate([np.zeros(1), np.cumsum(energies)])
    starts = np.arange(0, n_windows, hop_slots)
    bounds = first_slot + starts
    held = (bounds + window_slots) * sample_rate // 1000 - bounds * sample_rate // 1000
    # A difference of sums can come out below zero by their rounding, where the window is silent.
    mean_squares: NDArray[np.float64] = np.maximum(total[starts + window_slots] - total[starts], 0.0) / held
    return mean_squares


def gated_mean_square(blocks: NDArray[np.float64]) -> float:
    """Mean of the blocks above both gates (BS.1770-5, equations 5 to 7); 0.0 where none is."""
    loud = blocks[blocks > _ABSOLUTE_GATE]
    if not len(loud):
        return 0.0
    return float(loud[loud > _INTEGRATED_GATE * loud.mean()].mean())


def loudness_range_lu(short_term: NDArray[np.float64]) -> float:
    """From the 10th to the 95th percentile of the gated short-term loudness (EBU Tech 3342); 0.0 for silence."""
    loud = short_term[short_term >= _ABSOLUTE_GATE]
    if not len(loud):
        return 0.0
    loud = np.sort(loud[loud >= _RANGE_GATE * loud.mean()])
    low, high = (loud[round((len(loud) - 1) * percentile)] for percentile in _RANGE_PERCENTILES)
    return lufs(float(high)) - lufs(float(low))
