"""Names of notes in equal temperament at A4 = 440 Hz."""

import math
import re

__all__ = ["name_of_step", "note_hz", "step_of"]

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_A4_HZ, _A4_STEP = 440.0, 57
_NOTE = re.compile(r"([A-Ga-g])([#♯b♭]?)([0-9]|10)")
_SHIFT = {"": 0, "#": 1, "♯": 1, "b": -1, "♭": -1}


def note_hz(name: str) -> float | None:
    """Frequency of a note, Hz; None if `name` is not a note."""
    # A name is a letter, `#` or `b` if it has one, and the octave, such as `"C5"`, `"A#4"` or `"Bb4"`; C4 is middle C.
    found = _NOTE.fullmatch(name.strip())
    if found is None:
        return None
    letter, sign, octave = found.groups()
    step = _NAMES.index(letter.upper()) + _SHIFT[sign] + 12 * int(octave)
    return _A4_HZ * float(2.0 ** ((step - _A4_STEP) / 12.0))


def step_of(hz: float) -> int:
    """Semitones from C0 to the nearest note."""
    return round(12.0 * math.log2(hz / _A4_HZ)) + _A4_STEP


def name_of_step(step: int) -> str:
    """Name of the note `step` semitones above C0."""
    return f"{_NAMES[step % 12]}{step // 12}"
