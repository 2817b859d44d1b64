"""Recordings of any length: speech for a preview, and the files of a batch."""

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
"""Largest recording, all channels as float32: 3.1 hours of mono at 48 kHz."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Samples of a recording, float32, the average of its `channels`, full scale ±1.0, finite."""

    samples: NDArray[np.float32]
    sample_rate: int
    channels: int


def read_recording(source: Path | IO[bytes], name: str = "") -> Recording:
    """A recording of at most 2 GB, read from a file of any format that libsndfile reads, called `name` in errors."""
    samples, sample_rate, _ = read_channels(source, name or str(source), check=_check_size)
    channels = samples.shape[1]
    mono = samples[:, 0] if channels == 1 else samples.mean(axis=1, dtype=np.float64).astype(np.float32)
    return Recording(mono, sample_rate, channels)


def measure_file(path: Path | str, *, dual_mono: bool = False) -> Measurement:
    """All levels of an audio file, over all its channels, as `cues.measure` gives them.

    Parameters
    ----------
    path : Path or str
        Any format that libsndfile reads (WAV, FLAC, OGG, MP3, AIFF and more), 1 … 8 channels, 8000 … 192,000 Hz.
    dual_mono : bool
        Measure a mono file as if two loudspeakers played it, +3.01 LU.

    Raises
    ------
    AudioFileError
        If the file is missing, unreadable, not audio, truncated, empty, too large or not finite.
    CueValueError
        If the channels or the rate are out of range, or `dual_mono` is set for several channels.
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
