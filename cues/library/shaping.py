"""Recorded sounds made fit to be cues: trimmed, edges faded, loops closed."""

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
"""Length of the crossfade that closes a loop (ms)."""
_TRIM_DB = -60.0
_ROUNDING = 2.0 / 32768.0  # what dithered 16-bit samples add to a ramp


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The part of a sound that repeats.

    Parameters
    ----------
    start_ms, end_ms : its bounds, ms from the sound's start; `end_ms` None is the sound's end.
    period_ms : silence is added up to this length, ms; None adds none.
    """

    start_ms: float = 0.0
    end_ms: float | None = None
    period_ms: float | None = None


def trimmed(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` without the parts at both ends that stay 60 dB below its peak; 5 ms of them are kept for the fades."""
    magnitude = np.abs(samples)
    loud = np.flatnonzero(magnitude > magnitude.max() * 10.0 ** (_TRIM_DB / 20.0))
    if not len(loud):
        return samples
    margin = ms_to_samples(MIN_FADE_MS, sample_rate)
    return samples[max(0, loud[0] - margin) : loud[-1] + 1 + margin]


def with_soft_edges(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """`samples` with edges no harder than a 5 ms raised cosine (shorter where the sound is) and 0.0 at both ends.

    An edge that stays under that ramp already is left alone, so that a cue that was exported comes back as it was.
    """
    soft = samples.copy()
    ramp, hard = _edges(soft, sample_rate)
    for side in hard:
        np.multiply(side, ramp, out=side)
    soft[0] = soft[-1] = 0.0
    return soft


def _edges(samples: NDArray[np.float32], sample_rate: int) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
    """The softest ramp that an edge needs, and views of those edges that rise above it, read from the end inwards."""
    edge = max(1, min(ms_to_samples(MIN_FADE_MS, sample_rate), len(samples) // 2))
    ramp = raised_cosine(edge).astype(np.float32)
    ceiling = ramp * np.abs(samples).max() + _ROUNDING
    sides = [samples[:edge], samples[::-1][:edge]]
    return ramp, [side for side in sides if (np.abs(side) > ceiling).any()]


def padded(samples: NDArray[np.float32], sample_rate: int, period_ms: float) -> NDArray[np.float32]:
    """`samples` followed by silence up to `period_ms`."""
    missing = ms_to_samples(period_ms, sample_rate) - len(samples)
    return np.pad(samples, (0, max(0, missing)))


def looped(samples: NDArray[np.float32], sample_rate: int, loop: Loop) -> NDArray[np.float32]:
    """The period of a loop, made so that its end runs into its start.

    With a period to fill, the sound gets soft edges and silence after it. Else the last 20 ms fade over, at equal gain,
    into what comes before the start; where that is too short, the loop begins so much later. A sound that rises from
    silence and falls back to it by itself, as an exported cue does, is a period as it stands.

    Raises
    ------
    CueValueError : for bounds that lie outside of the sound or leave less than 20 ms.
    """
    start = ms_to_samples(loop.start_ms, sample_rate)
    end = len(samples) if loop.end_ms is None else ms_to_samples(loop.end_ms, sample_rate)
    seam = ms_to_samples(SEAM_MS, sample_rate)
    if not (start >= 0 and start + seam <= end <= len(samples)):
        raise CueValueError(
            f"the loop runs from {1000 * start / sample_rate:.1f} to {1000 * end / sample_rate:.1f} ms; "
            f"it must lie inside of the "
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
