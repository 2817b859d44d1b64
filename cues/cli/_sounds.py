"""Sounds named on the command line: a cue, an audio file, or standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cues.cli._records import cue_of
from cues.cue import Cue
from cues.errors import AudioFileError
from cues.library.audiofile import (
    ENDINGS,
    MAX_FILE_BYTES,
    MAX_RECORDING_BYTES,
    Recording,
    decoded,
    read_audio,
    read_recording,
)
from cues.meters.loudness import measure

if TYPE_CHECKING:
    from cues.library.bank import Bank

__all__ = ["STANDARD", "recording_of", "sound_of"]

STANDARD = "-"
"""Name of standard input and output."""
_INPUT = "standard input"


def sound_of(bank: Bank, name: str) -> Cue:
    """The cue of a name; `-` is an audio file on standard input, and a name such as `x.wav` a file.

    Such a sound keeps its level, and gets the bank's sample rate.
    """
    if name == STANDARD:
        name, sound = _INPUT, decoded(_standard_input(MAX_FILE_BYTES), _INPUT)
    elif name not in bank and Path(name).suffix.lower() in ENDINGS:
        sound = read_audio(Path(name))
    else:
        return cue_of(bank, name)
    from cues.signal.resample import resample

    samples = resample(*sound, bank.sample_rate)
    return Cue(name=name, samples=samples, sample_rate=bank.sample_rate, measured=measure(samples, bank.sample_rate))


def recording_of(path: Path) -> Recording:
    """The recording in a file, or on standard input if the path is `-`."""
    if str(path) != STANDARD:
        return read_recording(path)
    return read_recording(io.BytesIO(_standard_input(MAX_RECORDING_BYTES)), _INPUT)


def _standard_input(most_bytes: int) -> bytes:
    """All of standard input; `AudioFileError` if it is a terminal, or longer than `most_bytes`."""
    if sys.stdin is None or sys.stdin.isatty():
        raise AudioFileError(f"{_INPUT}: is a terminal; it must be an audio file, as in `cat x.wav | cues …`")
    data = sys.stdin.buffer.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise AudioFileError(f"{_INPUT}: has more than {most_bytes} bytes")
    return data
