"""Audio files: read with every doubt settled before a sample is used, written with dither where bits are few."""

from __future__ import annotations

import io
import stat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from cues.errors import AudioFileError, CueValueError, reason_of
from cues.signal.pcm import dithered_int16, float_of_int16

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "ENDINGS",
    "FORMATS",
    "MAX_FILE_BYTES",
    "MAX_FILE_S",
    "check_complete",
    "check_format",
    "decoded",
    "default_subtype",
    "encoded",
    "file_bytes",
    "in_memory",
    "read_audio",
    "read_channels",
    "write_audio",
]

MAX_FILE_S = 10.0
"""No file may last longer (s)."""
MAX_FILE_BYTES = 64 * 2**20
"""No file may be larger: 10 s of eight channels at 192 kHz in 32 bits are 61 MB."""
ENDINGS = (".wav", ".flac", ".ogg")
"""What an audio file's name ends in."""
_MAX_PEAK = 1000.0  # +60 dBFS: more is no float audio, but whole numbers that were not divided by their full scale
_CANCELLED = 1e-3  # of the loudest channel is left of the mean: −60 dB
_READABLE = ("WAV", "WAVEX", "RF64", "FLAC", "OGG")
_RATES_HZ = (1_000, 768_000)
_UNKNOWN_BYTES = (0xFFFFFFFF, 0x7FFFF000)

FORMATS = {
    "wav": {"16": "PCM_16", "24": "PCM_24", "float": "FLOAT"},
    "flac": {"16": "PCM_16", "24": "PCM_24"},
    "ogg": {"vorbis": "VORBIS"},
}
"""File format → name of a sample format → libsndfile's name for it."""


def read_audio(path: Path) -> tuple[NDArray[np.float32], int]:
    """Samples of an audio file, its channels averaged, and its sample rate.

    Parameters
    ----------
    path : a WAV, FLAC or OGG file of at most 10 s and 64 MB; any rate from 1 kHz to 768 kHz, any number of channels.

    Returns
    -------
    samples : float32, shape `(n_samples,)`, full scale ±1.0 (a float file may go up to ±1000), finite.
    sample_rate : Hz.

    Raises
    ------
    AudioFileError : for a file that is missing, unreadable, no audio, cut off, empty, too long, too large, not finite,
        or whose channels cancel each other.
    """
    return decoded(file_bytes(path), path)


def decoded(data: bytes, path: Path) -> tuple[NDArray[np.float32], int]:
    """As `read_audio`, for a file whose bytes are here already; `path` is what the errors name."""
    allowed = "; it must be a WAV, FLAC or OGG file"
    channels, sample_rate, _ = read_channels(io.BytesIO(data), str(path), check=_check_header, allowed=allowed)
    peak = float(np.abs(channels).max())
    if peak > _MAX_PEAK:
        raise AudioFileError(f"{path}: has a peak of {peak:g}; at most {_MAX_PEAK:g} is allowed, and full scale is 1")
    mono = channels.mean(axis=1, dtype=np.float64).astype(np.float32)
    if float(np.abs(mono).max()) < _CANCELLED * peak:
        raise AudioFileError(
            f"{path}: its channels cancel each other; it must be mono, or have channels in phase",
            fix="export it as mono, or turn the phase of one channel",
        )
    return mono, sample_rate


def read_channels(
    source: Path | IO[bytes],
    name: str,
    *,
    check: Callable[[str, Any], None] = lambda _name, _file: None,
    allowed: str = "",
) -> tuple[NDArray[np.float32], int, str]:
    """All samples of an audio file, its sample rate (Hz) and libsndfile's name for its sample format.

    Parameters
    ----------
    source : a file, or an open one, in any format that libsndfile reads.
    name : what errors call it.
    check : is called with the name and the open `soundfile.SoundFile`, and may refuse it.
    allowed : the end of the error about a file that is no audio.

    Returns
    -------
    Samples are float32, shape `(n_samples, n_channels)`, full scale ±1.0, finite.

    Raises
    ------
    AudioFileError : for a file that is missing, unreadable, no audio, cut off, empty or not finite.
    """
    import soundfile

    try:
        check_complete(source, name)
        with soundfile.SoundFile(source) as file:
            check(name, file)
            channels = _samples(file)
            sample_rate, subtype = int(file.samplerate), str(file.subtype)
    except AudioFileError:
        raise
    except (RuntimeError, OSError, TypeError, ValueError, MemoryError) as error:
        # Of a file that is not there, libsndfile says "System error."
        missing = isinstance(source, Path) and not source.exists()
        reason = "there is no such file" if missing else reason_of(error).rstrip(".")
        raise AudioFileError(
            f"{name}: cannot be read as audio: {reason}{allowed}", fix="export it again as WAV, FLAC or OGG"
        ) from error
    if not len(channels):
        raise AudioFileError(f"{name}: holds no samples; at least 1 is needed")
    # The sum of squares is finite if every sample is, or overflows and is looked at again.
    flat = channels.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        energy = np.dot(flat, flat)
    if not np.isfinite(energy) and not np.isfinite(flat).all():
        raise AudioFileError(f"{name}: holds NaN or infinity; every sample must be finite")
    return channels, sample_rate, subtype


def _samples(file: Any) -> NDArray[np.float32]:
    """All samples: the same values as libsndfile's own conversion, which takes three times as long for 16 bits."""
    if file.subtype == "PCM_16":
        return float_of_int16(file.read(dtype="int16", always_2d=True))
    samples: NDArray[np.float32] = file.read(dtype="float32", always_2d=True)
    return samples


def file_bytes(path: Path) -> bytes:
    """What a file holds, if it is a regular file of at most 64 MB; its size is looked at before it is read."""
    try:
        status = path.stat()
        fit = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES
        data = path.read_bytes() if fit else None
    except (OSError, ValueError) as error:
        raise AudioFileError(f"{path}: cannot be read: {reason_of(error)}") from error
    if data is not None:
        return data
    if not stat.S_ISREG(status.st_mode):
        raise AudioFileError(f"{path}: is no regular file")
    raise AudioFileError(f"{path}: has {status.st_size} bytes; at most {MAX_FILE_BYTES} are allowed")


def check_complete(source: Path | IO[bytes], name: str) -> None:
    """Raise for a WAV file that ends before its header says so: libsndfile would play what is left of it.

    A length of 2³² − 1 bytes, or of the whole frames in 2³¹ − 4096, says that it was not known when the header was
    written, as in a pipe.

    Parameters
    ----------
    source : a file, or an open one, which is left at its start; what is no regular file is not looked at.
    name : what the error calls it.

    Raises
    ------
    AudioFileError : it is cut off.
    OSError : it cannot be read.
    """
    if isinstance(source, Path):
        if source.exists() and not source.is_file():  # a pipe can be read only once
            return
        with source.open("rb") as file:
            check_complete(file, name)
        return
    size = source.seek(0, io.SEEK_END)
    source.seek(0)
    cut = _cut_off(source, size)
    source.seek(0)
    if cut is not None:
        promised, there = cut
        raise AudioFileError(
            f"{name}: is cut off: its header promises {promised} bytes of samples, and {there} are there; "
            f"it must be whole",
            fix="export it again: the file ends before its header says so",
        )


def _cut_off(file: IO[bytes], size: int) -> tuple[int, int] | None:
    """Bytes of samples that a WAV file's header promises, and those that are there, if a frame is missing."""
    head = file.read(12)
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return None
    start, frame_bytes = 12, 1
    while start + 8 <= size:
        file.seek(start)
        kind, length = file.read(4), int.from_bytes(file.read(4), "little")
        start += 8
        if kind == b"fmt ":
            frame_bytes = max(1, int.from_bytes(file.read(16)[12:14], "little"))
        if kind == b"data":
            there = size - start
            known = all(not 0 <= unknown - length < frame_bytes for unknown in _UNKNOWN_BYTES)
            return (length, there) if known and length - there >= frame_bytes else None
        start += length + length % 2
    return None


def _check_header(path: str, file: Any) -> None:
    if file.format not in _READABLE:
        raise AudioFileError(f"{path}: is a {file.format} file; it must be WAV, FLAC or OGG")
    if not _RATES_HZ[0] <= file.samplerate <= _RATES_HZ[1]:
        raise AudioFileError(
            f"{path}: has a sample rate of {file.samplerate} Hz; it must be from {_RATES_HZ[0]} to {_RATES_HZ[1]} Hz",
            fix="export it at 48000 Hz",
        )
    if file.frames > MAX_FILE_S * file.samplerate:
        raise AudioFileError(
            f"{path}: lasts {file.frames / file.samplerate:.1f} s; at most {MAX_FILE_S:g} s are allowed",
            fix="shorten it",
        )


def default_subtype(file_format: str) -> str:
    """The sample format that a file format is written in if none is asked for: 24 bits, or Vorbis."""
    return "vorbis" if file_format == "ogg" else "24"


def check_format(file_format: str, subtype: str) -> None:
    """Raise a `CueValueError` unless `FORMATS` holds the pair."""
    if file_format not in FORMATS:
        raise CueValueError(f"format is {file_format!r}; it must be one of {', '.join(FORMATS)}")
    if subtype not in FORMATS[file_format]:
        allowed = ", ".join(FORMATS[file_format])
        raise CueValueError(f"subtype of a {file_format} file is {subtype!r}; it must be one of {allowed}")


def encoded(samples: NDArray[np.float32], sample_rate: int, file_format: str, subtype: str) -> bytes:
    """An audio file's bytes; 16 bits are dithered, the same way for the same samples.

    Parameters
    ----------
    samples : float32, shape `(n_samples,)`, full scale ±1.0.
    sample_rate : Hz.
    file_format, subtype : a pair of `FORMATS`.

    Raises
    ------
    CueValueError : for a pair that `FORMATS` does not hold.
    """
    check_format(file_format, subtype)
    data = dithered_int16(samples) if subtype == "16" else samples
    return in_memory(data, sample_rate, file_format.upper(), FORMATS[file_format][subtype])


def in_memory(samples: NDArray[Any], sample_rate: int, file_format: str, subtype: str) -> bytes:
    """An audio file's bytes, format and subtype by libsndfile's names.

    Not written by libsndfile itself, which calls every fault of the disk a "System error".
    """
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, samples, sample_rate, subtype, format=file_format)
    return buffer.getvalue()


def write_audio(path: Path, samples: NDArray[np.float32], sample_rate: int, file_format: str, subtype: str) -> None:
    """Write `samples` to `path`, as `encoded` has them; an existing file is replaced.

    Raises
    ------
    CueValueError : for a pair that `FORMATS` does not hold.
    AudioFileError : if the file cannot be written.
    """
    try:
        path.write_bytes(encoded(samples, sample_rate, file_format, subtype))
    except (RuntimeError, OSError) as error:
        raise AudioFileError(f"{path}: cannot be written: {reason_of(error)}") from error
