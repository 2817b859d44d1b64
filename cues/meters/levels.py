"""Levels from energies: ITU-R BS.1770-5, EBU Tech 3341 and 3342 on slots of 1 ms.

Slot `k` holds the K-weighted energy (sum of squares) of the samples `k·rate // 1000 … (k + 1)·rate // 1000`. Every
window is a whole number of slots, so one pass over the signal gives all levels.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cues.units import gain_to_db

__all__ = [
    "HOP_SLOTS",
    "OFFSET_LU",
    "Measurement",
    "hop_energies",
    "integrated",
    "measurement",
    "silence_after",
    "slot_start",
    "whole_slots",
]

M100_SLOTS = 100
MOMENTARY_SLOTS = 400
SHORT_TERM_SLOTS = 3000
HOP_SLOTS = 100
"""Gating blocks start every 100 ms: 75 % overlap (BS.1770-5, annex 1)."""

OFFSET_LU = -0.691
"""A full-scale sine of 997 Hz in one channel reads −3.01 LUFS (BS.1770-5, equation 2)."""
_ABSOLUTE_GATE = 10.0 ** ((-70.0 - OFFSET_LU) / 10.0)
_INTEGRATED_GATE = 10.0 ** (-10.0 / 10.0)
_RANGE_GATE = 10.0 ** (-20.0 / 10.0)
_RANGE_PERCENTILES = (0.10, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Levels of one sound. A level is None if the sound is shorter than its window, minus infinity for silence.

    Parameters
    ----------
    integrated_lufs : float or None
        Gated loudness (BS.1770-5); needs 400 ms.
    momentary_max_lufs : float or None
        Loudest 400 ms.
    short_term_max_lufs : float or None
        Loudest 3 s.
    m100_max_lufs : float
        Loudest 100 ms, ungated, with silence around the sound: the loudness of a cue of any length.
    loudness_range_lu : float or None
        Loudness range (EBU Tech 3342); needs 3 s.
    true_peak_dbtp : float
        True peak at 16 times the rate, at least the sample peak.
    sample_peak_dbfs : float
        Largest sample.
    dc : float
        Mean of the samples, full scale ±1.0.
    missed_lu : float or None
        For a cue that is leveled to a target: `m100_max_lufs` minus the target. Below −0.05 neither 20 dB of gain nor
        the true-peak ceiling let it reach the target. It is no level, and plays no part in comparisons.
    """

    integrated_lufs: float | None
    momentary_max_lufs: float | None
    short_term_max_lufs: float | None
    m100_max_lufs: float
    loudness_range_lu: float | None
    true_peak_dbtp: float
    sample_peak_dbfs: float
    dc: float
    missed_lu: float | None = field(default=None, compare=False)


def slot_start(slot: int, sample_rate: int) -> int:
    """First sample of a slot; also the number of samples in `slot` slots."""
    return slot * sample_rate // 1000


def whole_slots(n_samples: int, sample_rate: int) -> int:
    """Number of slots that end within the first `n_samples`."""
    return ((n_samples + 1) * 1000 - 1) // sample_rate


def lufs(mean_square: float) -> float:
    """Loudness of a K-weighted mean square, summed over the weighted channels (BS.1770-5, equation 2)."""
    return OFFSET_LU + 10.0 * math.log10(mean_square) if mean_square > 0.0 else -math.inf


def window_mean_squares(
    energies: NDArray[np.float64], sample_rate: int, window_slots: int, *, first_slot: int = 0, hop_slots: int = 1
) -> NDArray[np.float64]:
    """Mean squares of all windows of `window_slots` inside `energies` (of slots), `hop_slots` apart."""
    # `first_slot` is the number of the first slot: unless the rate is a multiple of 1000 Hz, window lengths depend on
    # it.
    n_windows = len(energies) - window_slots + 1
    if n_windows < 1:
        return np.zeros(0)
    total = np.concatenate([np.zeros(1), np.cumsum(energies)])
    starts = np.arange(0, n_windows, hop_slots)
    bounds = first_slot + starts
    held = (bounds + window_slots) * sample_rate // 1000 - bounds * sample_rate // 1000
    # In a silent window, rounding can make the difference of the sums negative.
    mean_squares: NDArray[np.float64] = np.maximum(total[starts + window_slots] - total[starts], 0.0) / held
    return mean_squares


def gated_mean_square(blocks: NDArray[np.float64]) -> float:
    """Mean of the blocks above both gates (BS.1770-5, equations 5 to 7); 0.0 if no block is."""
    loud = blocks[blocks > _ABSOLUTE_GATE]
    if not len(loud):
        return 0.0
    return float(loud[loud > _INTEGRATED_GATE * loud.mean()].mean())


def loudness_range_lu(short_term: NDArray[np.float64]) -> float:
    """Range from the 10th to the 95th percentile of the gated short-term loudness (EBU Tech 3342); 0.0 for silence."""
    loud = short_term[short_term >= _ABSOLUTE_GATE]
    if not len(loud):
        return 0.0
    loud = np.sort(loud[loud >= _RANGE_GATE * loud.mean()])
    low, high = (loud[round((len(loud) - 1) * percentile)] for percentile in _RANGE_PERCENTILES)
    return lufs(float(high)) - lufs(float(low))


def hop_energies(energies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Energies of the whole hops of 100 ms."""
    n_hops = len(energies) // HOP_SLOTS
    hops: NDArray[np.float64] = energies[: n_hops * HOP_SLOTS].reshape(n_hops, HOP_SLOTS).sum(axis=1)
    return hops


def integrated(hops: NDArray[np.float64], sample_rate: int) -> float | None:
    """Gated loudness, LUFS, from the energies of hops."""
    per_block = MOMENTARY_SLOTS // HOP_SLOTS
    n_blocks = len(hops) - per_block + 1
    if n_blocks < 1:
        return None
    sums = hops[:n_blocks].copy()
    for i in range(1, per_block):
        sums += hops[i : i + n_blocks]
    if sample_rate * HOP_SLOTS % 1000:
        starts = np.arange(n_blocks) * HOP_SLOTS
        sums /= (starts + MOMENTARY_SLOTS) * sample_rate // 1000 - starts * sample_rate // 1000
    else:
        sums /= slot_start(MOMENTARY_SLOTS, sample_rate)
    return lufs(gated_mean_square(sums))


def silence_after(sample_rate: int) -> NDArray[np.float32]:
    """The silence after a sound that `measurement` needs the energies of."""
    return np.zeros(slot_start(M100_SLOTS + 1, sample_rate), dtype=np.float32)


def measurement(  # noqa: PLR0917  (what two meters have measured)
    energies: NDArray[np.float64], n_samples: int, sample_rate: int, sample_peak: float, true_peak: float, dc: float
) -> Measurement:
    """All levels of `n_samples`; `energies` are those of their slots, and of `silence_after` them."""
    inside = energies[: whole_slots(n_samples, sample_rate)]

    def loudest(window: int) -> float | None:
        windows = window_mean_squares(inside, sample_rate, window)
        return lufs(float(windows.max())) if len(windows) else None

    around = np.concatenate([np.zeros(M100_SLOTS), energies])
    m100 = window_mean_squares(around, sample_rate, M100_SLOTS, first_slot=-M100_SLOTS)
    short_term = window_mean_squares(inside, sample_rate, SHORT_TERM_SLOTS, hop_slots=HOP_SLOTS)
    return Measurement(
        integrated_lufs=integrated(hop_energies(inside), sample_rate),
        momentary_max_lufs=loudest(MOMENTARY_SLOTS),
        short_term_max_lufs=loudest(SHORT_TERM_SLOTS),
        m100_max_lufs=lufs(float(m100.max())),
        loudness_range_lu=loudness_range_lu(short_term) if len(short_term) else None,
        true_peak_dbtp=gain_to_db(true_peak),
        sample_peak_dbfs=gain_to_db(sample_peak),
        dc=dc,
    )
