"""Motifs: distinct cues derived from tool names, for tools without a rule."""

import hashlib

from cues.errors import CueTypeError
from cues.synthesis.spec import Envelope, LowPass, Note, Spec, Timbre

__all__ = ["motif"]

# C major pentatonic around the family's notes: C5 D5 E5 G5 A5 C6.
_SCALE_HZ = (523.25, 587.33, 659.26, 783.99, 880.0, 1046.5)
# Onsets of the notes, ms: even, long-short, short-long for three notes; for two notes a wide and a narrow step.
_RHYTHMS_MS = ((0.0, 130.0), (0.0, 85.0), (0.0, 85.0, 170.0), (0.0, 120.0, 200.0), (0.0, 80.0, 200.0))
_LAST_NOTE_MS = 110.0
_RING_MS = 60.0


def motif(tool_name: str) -> Spec:
    """Spec of 2 or 3 pentatonic notes for `tool_name`, the same on every machine, low-passed.

    A digest of the name selects rhythm, first note and steps. Unlike in `attention`, adjacent notes differ. There are
    510 motifs.

    Parameters
    ----------
    tool_name : str
        Any text.

    Raises
    ------
    CueTypeError
        If `tool_name` is not a string.

    Examples
    --------
    >>> len(motif("read_file").notes)
    2
    """
    if not isinstance(tool_name, str):
        raise CueTypeError(f"tool_name is {tool_name!r}; it must be text")
    choice = int.from_bytes(hashlib.sha256(tool_name.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    choice, rhythm = divmod(choice, len(_RHYTHMS_MS))
    choice, degree = divmod(choice, len(_SCALE_HZ))
    onsets = _RHYTHMS_MS[rhythm]
    notes = []
    for start_ms, next_ms in zip(onsets, (*onsets[1:], None), strict=True):
        length_ms = _LAST_NOTE_MS if next_ms is None else next_ms - start_ms + _RING_MS
        notes.append(Note(hz=_SCALE_HZ[degree], start_ms=start_ms, length_ms=length_ms))
        choice, step = divmod(choice, len(_SCALE_HZ) - 1)
        degree = (degree + 1 + step) % len(_SCALE_HZ)
    return Spec(
        notes=tuple(notes),
        timbre=Timbre(partials=(1.0, 0.25, 0.08), damping=0.8),
        envelope=Envelope(attack_ms=10.0, decay_per_s=12.0, release_ms=55.0),
        low_pass=LowPass(cutoff_hz=2400.0, order=2.0),
    )
