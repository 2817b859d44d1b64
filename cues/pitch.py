"""Which notes a sound plays: read from its spec, or heard in its spectrum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.cue import Cue
    from cues.spec import Note

__all__ = ["heard_notes", "main_notes", "note_name"]

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_A4_HZ, _A4_STEP = 440.0, 57
_MAX_NOTES = 6
_WINDOW_S, _HOP_S = 0.040, 0.010
_BAND_HZ = (60.0, 6000.0)
_HEARD_DB = -25.0
_GLIDE = 1.06
"""A note whose pitch moves by more than a semitone is written as where it begins and where it ends."""


def note_name(hz: float) -> str:
    """Name of the nearest note of the equal temperament at A4 = 440 Hz.

    Parameters
    ----------
    hz : frequency, Hz, above 0.

    Examples
    --------
    >>> note_name(440.0), note_name(523.25), note_name(880.0)
    ('A4', 'C5', 'A5')
    """
    step = round(12.0 * math.log2(hz / _A4_HZ)) + _A4_STEP
    return f"{_NAMES[step % 12]}{step // 12}"


def main_notes(cue: Cue) -> tuple[str, ...]:
    """Notes of a cue in order of time; a glide is written `A4>C#4`. At most six of them."""
    if cue.spec is not None:
        notes = sorted(cue.spec.notes, key=lambda note: note.start_ms)
        return tuple(_written(note) for note in notes[:_MAX_NOTES])
    return heard_notes(cue.samples, cue.sample_rate)


def _written(note: Note) -> str:
    end_hz = note.hz * math.exp(note.sweep_per_s * note.length_ms / 1000.0)
    first, last = note_name(note.hz), note_name(max(end_hz, 1.0))
    return f"{first}>{last}" if first != last else first


def heard_notes(samples: NDArray[np.floating], sample_rate: int) -> tuple[str, ...]:
    """Notes of a sound: the strongest frequency of each moment, moments on the same note taken together.

    Parameters
    ----------
    samples : float, shape `(n_samples,)`, full scale ±1.0.
    sample_rate : Hz.

    Returns
    -------
    Names in order of time, at most six; empty for silence. For noise they mean little.
    """
    frequencies = _strongest_hz(np.asarray(samples, dtype=np.float64), sample_rate)
    names: list[str] = []
    last, held = "", 0
    for hz in frequencies:
        name = note_name(hz) if hz else ""
        held = held + 1 if name == last else 1
        last = name
        # One moment alone is the edge between two notes, or noise.
        if name and held == 2 and (not names or names[-1] != name):
            names.append(name)
    if not names:
        names = [note_name(hz) for hz in frequencies if hz][:1]
    return tuple(names[:_MAX_NOTES])


def _strongest_hz(samples: NDArray[np.float64], sample_rate: int) -> list[float]:
    """For each 10 ms the frequency (Hz) of the strongest line, 0.0 where the sound is 25 dB below its loudest."""
    length, hop = round(_WINDOW_S * sample_rate), round(_HOP_S * sample_rate)
    padded = np.pad(samples, (length // 2, length))
    windows = np.lib.stride_tricks.sliding_window_view(padded, length)[::hop] * np.hanning(length)
    size = 4 * length
    power = np.abs(np.fft.rfft(windows, size)) ** 2
    hz = np.fft.rfftfreq(size, 1.0 / sample_rate)
    band = power[:, (hz >= _BAND_HZ[0]) & (hz <= _BAND_HZ[1])]
    first = int(np.argmax(hz >= _BAND_HZ[0]))
    loudest = band.max(axis=1)
    if not loudest.max() > 0.0:
        return []
    heard = loudest > loudest.max() * 10.0 ** (_HEARD_DB / 10.0)
    return [float(hz[first + int(row.argmax())]) if audible else 0.0 for row, audible in zip(band, heard, strict=True)]
