"""Processing of sounds: trimming, edge fades, seamless loops, and loudness normalization by one gain."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cues.errors import CueValueError
from cues.meters.levels import Measurement
from cues.signal.fades import MIN_FADE_MS, raised_cosine
from cues.units import db_to_gain, ms_to_samples

__all__ = [
    "AT_CEILING_DB",
    "CEILING_DBTP",
    "LOOP_PERIOD_MS",
    "MAX_GAIN_DB",
    "SILENCE_LUFS",
    "Loop",
    "leveled",
    "looped",
    "trimmed",
    "with_soft_edges",
]

CEILING_DBTP = -3.0
"""Highest true peak of a cue (dBTP)."""
AT_CEILING_DB = 0.1
"""A true peak less than this below the ceiling has been kept there by it."""
MAX_GAIN_DB = 20.0
"""Largest gain towards the target (dB): more would raise noise. Attenuation has no limit."""
SILENCE_LUFS = -70.0
LOOP_PERIOD_MS = 2000.0
"""Shortest period of a waiting sound that has no settings of a loop."""
_METER_ERROR_DB = 0.05  # worst case of 16-times oversampling, which reads low
_SEAM_MS = 20.0  # a loop's crossfade
_DECAYED = 1e-3  # of the peak: −60 dB
_TRIM_DB = -60.0
_BEGUN = 0.05  # of an edge's peak
_STEEP = 0.4  # of the shortest fade; a raised cosine of 2 ms is at a tenth after a fifth of it
_ROUNDING = 2.0 / 32768.0  # dither and rounding of 16-bit samples, on top of a ramp


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The part of a sound that repeats: its bounds, ms (`end_ms` None is the sound's end).

    `period_ms` is the length of one period, filled up with silence; None adds no silence.
    """

    start_ms: float = 0.0
    end_ms: float | None = None
    period_ms: float | None = None


def trimmed(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` without leading and trailing parts below −60 dB of the peak; 5 ms are kept at each end for fades.

    An edge behind silence that is harder than a 2 ms raised cosine gets one of 5 ms: it would click.
    """
    magnitude = np.abs(samples)
    loud = np.flatnonzero(magnitude > magnitude.max() * 10.0 ** (_TRIM_DB / 20.0))
    if not len(loud):
        return samples
    margin = ms_to_samples(MIN_FADE_MS, sample_rate)
    first, last = max(0, loud[0] - margin), loud[-1] + 1 + margin
    kept = samples[first:last].copy()
    _soften(kept, loud[0] - first, margin)
    _soften(kept[::-1], min(last, len(samples)) - loud[-1] - 1, margin)
    return kept


def _soften(samples: NDArray[np.float32], first: int, margin: int) -> None:
    """Fade in what begins at `first`, in place, if it is hard."""
    edge = np.abs(samples[first : first + margin])
    start = first + int(np.argmax(edge > _BEGUN * edge.max()))  # after the ripple that a conversion of the rate leaves
    edge = np.abs(samples[start : start + margin])
    steepest = raised_cosine(round(_STEEP * margin))[round(_STEEP * 0.2 * margin) :][: len(edge)]
    if (edge[: len(steepest)] > edge.max() * steepest).any():
        samples[:start] = 0.0
        samples[start : start + margin] *= raised_cosine(margin)[: len(edge)].astype(np.float32)


def with_soft_edges(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` with 5 ms raised-cosine fades (shorter for a short sound) and 0.0 at both ends.

    An edge below twice the ramp gets no fade: an exported cue comes back unchanged, also one that decays from its edge.
    """
    soft = samples.copy()
    ramp, hard = _edges(soft, sample_rate)
    for side in hard:
        np.multiply(side, ramp, out=side)
    soft[0] = soft[-1] = 0.0
    return soft


def _edges(samples: NDArray[np.float32], sample_rate: int) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
    """The edge ramp, and views (from the end inwards) of the edges that exceed it."""
    edge = max(1, min(ms_to_samples(MIN_FADE_MS, sample_rate), len(samples) // 2))
    ramp = raised_cosine(edge).astype(np.float32)
    ceiling = 2.0 * ramp * np.abs(samples).max() + _ROUNDING
    sides = [samples[:edge], samples[::-1][:edge]]
    return ramp, [side for side in sides if (np.abs(side) > ceiling).any()]


def looped(samples: NDArray[np.float32], sample_rate: int, loop: Loop) -> NDArray[np.float32]:
    """One period of a seamless loop; raises if the bounds are outside the sound or less than 20 ms apart.

    With `period_ms`, the sound gets soft edges and silence after it. Otherwise the last 20 ms crossfade, at equal gain,
    into the samples before the start; if there are too few of them, the loop starts later. A sound with soft edges at
    both ends stays as it is; one whose end has decayed, such as a bar of drums, keeps its length and gets soft edges.
    """
    start = ms_to_samples(loop.start_ms, sample_rate)
    end = len(samples) if loop.end_ms is None else ms_to_samples(loop.end_ms, sample_rate)
    seam = ms_to_samples(_SEAM_MS, sample_rate)
    if not (start >= 0 and start + seam <= end <= len(samples)):
        raise CueValueError(
            f"the loop runs from {1000 * start / sample_rate:.1f} to {1000 * end / sample_rate:.1f} ms; "
            f"it must lie inside the "
            f"sound's {1000 * len(samples) / sample_rate:.1f} ms and be at least {_SEAM_MS:g} ms long"
        )
    if loop.period_ms is not None:
        missing = ms_to_samples(loop.period_ms, sample_rate) - (end - start)
        return np.pad(with_soft_edges(samples[start:end], sample_rate), (0, max(0, missing)))
    _, hard = _edges(samples[start:end], sample_rate)
    if not hard:
        return samples[start:end]
    if np.abs(samples[end - seam : end]).max() < _DECAYED * np.abs(samples).max():
        return with_soft_edges(samples[start:end], sample_rate)
    seam = min(seam, (end - start) // 4)
    start += seam if start < seam else 0
    before, body = samples[start - seam : start], samples[start:end].copy()
    body[-seam:] += raised_cosine(seam).astype(np.float32) * (before - body[-seam:])
    return body


def leveled(
    samples: NDArray[np.float32], sample_rate: int, *, target_lufs: float | None, gain_db: float = 0.0
) -> tuple[NDArray[np.float32], Measurement]:
    """`samples` (float32) times one gain, true peak ≤ −3 dBTP, and its levels; raises for silence (below −70 LUFS).

    The gain brings `m100_max` to `target_lufs` (None keeps the loudness), by 20 dB at most, and adds `gain_db`.
    `missed_lu` of the result is against both.
    """
    from cues.meters.loudness import measure  # a bank from the cache needs no meter

    before = measure(samples, sample_rate)
    if before.m100_max_lufs < SILENCE_LUFS:
        raise CueValueError(
            f"the sound is silent: its loudest 100 ms have {before.m100_max_lufs:.1f} LUFS; "
            f"more than {SILENCE_LUFS:g} LUFS are needed",
            fix="replace the file with an audible sound",
        )
    total_db = gain_db
    if target_lufs is not None:
        total_db += min(MAX_GAIN_DB, target_lufs - before.m100_max_lufs)
    total_db = min(total_db, CEILING_DBTP - _METER_ERROR_DB - before.true_peak_dbtp)
    result = samples * np.float32(db_to_gain(total_db))
    after = measure(result, sample_rate)
    assert math.isfinite(after.m100_max_lufs)
    if target_lufs is None:
        return result, after
    return result, replace(after, missed_lu=after.m100_max_lufs - target_lufs - gain_db)
