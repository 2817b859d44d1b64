"""Notes of a sound, from its spectrum."""

from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from cues.signal.spectra import short_time_power
from cues.synthesis.note_names import name_of_step, step_of

__all__ = ["heard_notes"]

_MAX_NOTES = 6
_WINDOW_S, _HOP_S = 0.040, 0.010
_BAND_HZ = (60.0, 6000.0)
_HEARD_DB = -25.0
# A glide: adjacent steps, each of at most 5 moments, at most 2 semitones apart, at least 3 of them.
_GLIDE_MOMENTS, _GLIDE_STEP, _GLIDE_NOTES = 5, 2, 3


def heard_notes(samples: NDArray[np.floating], sample_rate: int) -> tuple[str, ...]:
    """Notes of a sound, by the strongest frequency of each 10 ms: at most six names in order of time.

    A glide is its first and last note, such as `A4>D4`. A note after a gap counts again. Empty for silence; not
    meaningful for noise.
    """
    steps = [step_of(hz) if hz else None for hz in _strongest_hz(np.asarray(samples, dtype=np.float64), sample_rate)]
    names: list[str] = []
    for sounding, moments in groupby(steps, key=lambda step: step is not None):
        if sounding:
            names += _notes_of([step for step in moments if step is not None])
    if not names:
        names = [name_of_step(step) for step in steps if step is not None][:1]
    return tuple(names[:_MAX_NOTES])


def _notes_of(steps: list[int]) -> list[str]:
    """Notes of a stretch without a gap."""
    runs = [(step, len(list(moments))) for step, moments in groupby(steps)]
    names: list[str] = []
    while runs:
        length = _glide_length(runs)
        first, moments = runs[0]
        if length >= _GLIDE_NOTES:
            names.append(f"{name_of_step(first)}>{name_of_step(runs[length - 1][0])}")
        # A single moment is the edge between two notes, or noise.
        elif moments > 1 and names[-1:] != [name_of_step(first)]:
            names.append(name_of_step(first))
        runs = runs[length if length >= _GLIDE_NOTES else 1 :]
    return names


def _glide_length(runs: list[tuple[int, int]]) -> int:
    """Number of runs at the start that only rise, or only fall."""
    length, direction = 1, 0
    for (step, moments), (following, moments_following) in pairwise(runs):
        leap = following - step
        if abs(leap) > _GLIDE_STEP or leap * direction < 0 or max(moments, moments_following) > _GLIDE_MOMENTS:
            break
        length, direction = length + 1, leap
    return length


def _strongest_hz(samples: NDArray[np.float64], sample_rate: int) -> list[float]:
    """Strongest frequency (Hz) of each 10 ms, 0.0 if it is 25 dB or more below the sound's loudest."""
    length, hop = round(_WINDOW_S * sample_rate), round(_HOP_S * sample_rate)
    n_fft = 4 * length
    power = short_time_power(samples, np.arange(0, len(samples) + length // 2 + 1, hop), length, n_fft)
    hz = np.fft.rfftfreq(n_fft, 1.0 / sample_rate)
    band = power[:, (hz >= _BAND_HZ[0]) & (hz <= _BAND_HZ[1])]
    first = int(np.argmax(hz >= _BAND_HZ[0]))
    loudest = band.max(axis=1)
    if not loudest.max() > 0.0:
        return []
    heard = loudest > loudest.max() * 10.0 ** (_HEARD_DB / 10.0)
    return [float(hz[first + int(row.argmax())]) if audible else 0.0 for row, audible in zip(band, heard, strict=True)]
