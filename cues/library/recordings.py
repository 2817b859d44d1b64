"""Recordings of any length: speech to hear a cue in, and the files that a batch goes through."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from cues.errors import AudioFileError, CueValueError, reason_of
from cues.library.audiofile import check_complete
from cues.meters.loudness import measure
from cues.signal.pcm import float_of_int16

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.meters.levels import Measurement

__all__ = ["MAX_RECORDING_BYTES", "Recording", "measure_file", "read_recording"]

MAX_RECORDING_BYTES = 2 * 2**30
"""No recording may need more memory than this, all channels as float32: 3.1 hours of mono at 48 kHz."""


class Recording:
    """A recording that was read.

    Attributes
    ----------
    samples : float32, shape `(n_samples,)`, its channels averaged, full scale ±1.0, finite.
    sample_rate : Hz.
    channels : how many there were.
    """

    __slots__ = ("channels", "sample_rate", "samples")

    def __init__(self, samples: NDArray[np.float32], sample_rate: int, channels: int) -> None:
        self.samples, self.sample_rate, self.channels = samples, sample_rate, channels


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
    data, sample_rate = _read(source, name or str(source))
    channels = 1 if data.ndim == 1 else data.shape[1]
    mono = data if data.ndim == 1 else data.mean(axis=1, dtype=np.float64).astype(np.float32)
    # The sum of squares is finite if every sample is, or overflows and is looked at again.
    if not np.isfinite(np.dot(mono, mono)) and not np.isfinite(mono).all():
        raise AudioFileError(f"{name or source}: holds NaN or infinity; every sample must be finite")
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
    data, sample_rate = _read(Path(path), str(path))
    if not np.isfinite(data).all():
        raise AudioFileError(f"{path}: holds NaN or infinity; every sample must be finite")
    try:
        return measure(data, sample_rate, dual_mono)
    except CueValueError as error:
        raise CueValueError(f"{path}: {error}") from None


def _read(source: Path | IO[bytes], name: str) -> tuple[NDArray[np.float32], int]:
    """All samples of a file, shape `(n_samples,)` or `(n_samples, n_channels)`, and their rate."""
    import soundfile

    try:
        check_complete(source, name)
        with soundfile.SoundFile(source) as file:
            _check_size(name, 4 * file.frames * file.channels, file.frames / file.samplerate)
            data = _samples(file)
            sample_rate = int(file.samplerate)
    except AudioFileError:
        raise
    except (RuntimeError, OSError, TypeError, ValueError, MemoryError) as error:
        # Of a file that is not there, libsndfile says "System error."
        missing = isinstance(source, Path) and not source.exists()
        reason = "there is no such file" if missing else reason_of(error)
        raise AudioFileError(f"{name}: cannot be read as audio: {reason}") from error
    if not len(data):
        raise AudioFileError(f"{name}: holds no samples")
    return data, sample_rate


def _samples(file: Any) -> NDArray[np.float32]:
    """All samples: the same values as libsndfile's own conversion, which takes three times as long for 16 bits."""
    if file.subtype == "PCM_16":
        return float_of_int16(file.read(dtype="int16"))
    samples: NDArray[np.float32] = file.read(dtype="float32")
    return samples


def _check_size(name: str, n_bytes: int, length_s: float) -> None:
    if n_bytes > MAX_RECORDING_BYTES:
        raise AudioFileError(
            f"{name}: lasts {length_s:.0f} s, {n_bytes // 2**20} MB of samples; "
            f"at most {MAX_RECORDING_BYTES // 2**20} MB are allowed"
        )
