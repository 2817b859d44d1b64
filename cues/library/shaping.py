"""Processing of recorded sounds: trimming, edge fades, seamless loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cues.errors import CueValueError
from cues.signal.fades import MIN_FADE_MS, raised_cosine
from cues.units import ms_to_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Loop", "looped", "padded", "trimmed", "with_soft_edges"]

SEAM_MS = 20.0
"""Length of a loop's crossfade (ms)."""
_TRIM_DB = -60.0
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
    """`samples` without leading and trailing parts below −60 dB of the peak; 5 ms are kept at each end for fades."""
    magnitude = np.abs(samples)
    loud = np.flatnonzero(magnitude > magnitude.max() * 10.0 ** (_TRIM_DB / 20.0))
    if not len(loud):
        return samples
    margin = ms_to_samples(MIN_FADE_MS, sample_rate)
    return samples[max(0, loud[0] - margin) : loud[-1] + 1 + margin]


def with_soft_edges(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` with 5 ms raised-cosine fades (shorter for a short sound) and 0.0 at both ends.

    An edge that is already below the ramp gets no fade: an exported cue comes back unchanged.
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
    ceiling = ramp * np.abs(samples).max() + _ROUNDING
    sides = [samples[:edge], samples[::-1][:edge]]
    return ramp, [side for side in sides if (np.abs(side) > ceiling).any()]


def padded(samples: NDArray[np.float32], sample_rate: int, period_ms: float) -> NDArray[np.float32]:
    """`samples`, padded with silence to `period_ms`."""
    missing = ms_to_samples(period_ms, sample_rate) - len(samples)
    return np.pad(samples, (0, max(0, missing)))


def looped(samples: NDArray[np.float32], sample_rate: int, loop: Loop) -> NDArray[np.float32]:
    """One period of a seamless loop; raises if the bounds are outside the sound or less than 20 ms apart.

    With `period_ms`, the sound gets soft edges and silence after it. Otherwise the last 20 ms crossfade, at equal gain,
    into the samples before the start; if there are too few of them, the loop starts later. A sound with soft edges at
    both ends, such as an exported cue, stays as it is.
    """
    start = ms_to_samples(loop.start_ms, sample_rate)
    end = len(samples) if loop.end_ms is None else ms_to_samples(loop.end_ms, sample_rate)
    seam = ms_to_samples(SEAM_MS, sample_rate)
    if not (start >= 0 and start + seam <= end <= len(samples)):
        raise CueValueError(
            f"the loop runs from {1000 * start / sample_rate:.1f} to {1000 * end / sample_rate:.1f} ms; "
            f"it must lie inside the "
            f"sound's {1000 * len(samples) / sample_rate:.1f} ms and be at least {SEAM_MS:g} ms long"
        )
    if loop.period_ms is not None:
        return padded(with_soft_edges(samples[start:end], sample_rate), sample_rate, loop.period_ms)
    _, hard = _edges(samples[start:end], sample_rate)
    if not hard:
        return samples[start:end]
    return _closed(samples, start, end, min(seam, (end - start) // 4))


def _closed(samples: NDArray[np.float32], start: int, end: int, seam: int) -> NDArray[np.float32]:
    if start < seam:
        start += seam
    before, body = samples[start - seam : start], samples[start:end].copy()
    rise = raised_cosine(seam).astype(np.float32)
    body[-seam:] += rise * (before - body[-seam:])
    return body
