"""Recordings of any length: speech to hear a cue in, and the files that a batch goes through."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from cues.errors import AudioFileError, CueValueError
from cues.library.audiofile import read_channels
from cues.meters.loudness import measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.meters.levels import Measurement

__all__ = ["MAX_RECORDING_BYTES", "Recording", "measure_file", "read_recording"]

MAX_RECORDING_BYTES = 2 * 2**30
"""No recording may need more memory than this, all channels as float32: 3.1 hours of mono at 48 kHz."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A recording that was read.

    Attributes
    ----------
    samples : float32, shape `(n_samples,)`, its channels averaged, full scale ±1.0, finite.
    sample_rate : Hz.
    channels : how many there were.
    """

    samples: NDArray[np.float32]
    sample_rate: int
    channels: int


def read_recording(source: Path | IO[bytes], name: str = "") -> Recording:
    """A recording from a file, or from an open one.

    Parameters
    ----------
    source : whatever libsndfile reads (WAV, FLAC, OGG, MP3, AIFF and more).
    name : what errors call it; a path's is the path.

    Raises
    ------
    AudioFileError : for a file that is missing, unreadable, no audio, cut off, empty, too large or not finite.
    """
    samples, sample_rate, _ = read_channels(source, name or str(source), check=_check_size)
    channels = samples.shape[1]
    mono = samples[:, 0] if channels == 1 else samples.mean(axis=1, dtype=np.float64).astype(np.float32)
    return Recording(mono, sample_rate, channels)


def measure_file(path: Path | str, *, dual_mono: bool = False) -> Measurement:
    """All levels of an audio file, of all its channels together.

    Parameters
    ----------
    path : a file that libsndfile reads (WAV, FLAC, OGG, MP3, AIFF and more), 1 … 8 channels, 8000 … 192,000 Hz.
    dual_mono : measure a file of one channel as if two loudspeakers played it, +3.01 LU.

    Returns
    -------
    Measurement, as `cues.measure` gives it.

    Raises
    ------
    AudioFileError : if the file is missing, unreadable, not audio, cut off, empty, too large or not finite.
    CueValueError : if it has more channels or another rate, or `dual_mono` is asked for several channels.
    """
    samples, sample_rate, _ = read_channels(Path(path), str(path), check=_check_size)
    try:
        return measure(samples, sample_rate, dual_mono)
    except CueValueError as error:
        raise error.within(f"{path}: ") from None


def _check_size(name: str, file: Any) -> None:
    n_bytes = 4 * file.frames * file.channels
    if n_bytes > MAX_RECORDING_BYTES:
        raise AudioFileError(
            f"{name}: lasts {file.frames / file.samplerate:.0f} s, {n_bytes // 2**20} MB of samples; "
            f"at most {MAX_RECORDING_BYTES // 2**20} MB are allowed"
        )
