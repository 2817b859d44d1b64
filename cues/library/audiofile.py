"""Audio files: cues and recordings, checked when read, dithered when written with 16 bits."""

import hashlib
import io
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cues.errors import AudioFileError, CueValueError, reason_of
from cues.library.completeness import missing_bytes
from cues.meters.levels import Measurement
from cues.signal.pcm import dithered_int16, float_of_int16

__all__ = [
    "ENDINGS",
    "FORMATS",
    "MAX_FILE_BYTES",
    "MAX_FILE_S",
    "MAX_RECORDING_BYTES",
    "WRITABLE",
    "Recording",
    "averaged",
    "check_format",
    "decoded",
    "default_subtype",
    "digest_of",
    "encoded",
    "file_bytes",
    "in_memory",
    "is_exported",
    "json_object",
    "measure_file",
    "rate_and_channels",
    "read_audio",
    "read_channels",
    "read_recording",
    "write_audio",
]

MAX_FILE_S = 10.0
"""Longest file (s)."""
MAX_FILE_BYTES = 64 * 2**20
"""Largest file: 10 s of eight 32-bit channels at 192 kHz are 61 MB."""
MAX_RECORDING_BYTES = 2 * 2**30
"""Largest recording, all channels as float32: 3.1 hours of mono at 48 kHz."""
ENDINGS = (".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff", ".w64", ".au", ".opus")
"""File name extensions of audio files that can be read."""
WRITABLE = (".wav", ".flac", ".ogg")
"""File name extensions of audio files that can be written."""
_ALLOWED = "WAV, FLAC, OGG, MP3, AIFF or AU"
_MAX_PEAK = 1000.0  # +60 dBFS: above it, the file holds integers that were not divided by full scale
_CANCELLED = 1e-3  # peak of the mean against the loudest channel: −60 dB
_RATES_HZ = (1_000, 768_000)
_MOST_FRAMES = 1 << 48  # libsndfile has 2⁶³ − 1 where it does not know
_MAX_OGG_HZ = 200_000  # the encoder of libvorbis crashes above it
_WRITTEN_AT_ONCE = 65_536  # frames: libvorbis keeps what it gets in one call on the stack

FORMATS = {
    "wav": {"16": "PCM_16", "24": "PCM_24", "float": "FLOAT"},
    "flac": {"16": "PCM_16", "24": "PCM_24"},
    "ogg": {"vorbis": "VORBIS"},
}
"""File format → subtype → libsndfile's name of the subtype."""


def read_audio(path: Path, name: str = "") -> tuple[NDArray[np.float32], int]:
    """Mono samples (float32, ±1.0, finite, channels averaged) of an audio file, and its sample rate, Hz.

    It has at most 10 s and 64 MB, 1 … 768 kHz, any number of channels, and a peak of ±1000 in float. Errors call it
    `name` (by default its path), and are `AudioFileError` also where the channels cancel each other.
    """
    return decoded(file_bytes(path, name), name or str(path))


def decoded(data: bytes, name: str) -> tuple[NDArray[np.float32], int]:
    """Samples and rate as in `read_audio`, from the bytes of the file `name`."""
    channels, sample_rate, _ = read_channels(io.BytesIO(data), name, _check_cue)
    peak = float(np.abs(channels).max())
    if peak > _MAX_PEAK:
        raise AudioFileError(
            f"{name}: has a peak of {peak:g}; at most {_MAX_PEAK:g} is allowed, and full scale is 1",
            fix="divide its samples by full scale, or export it as 24-bit WAV",
        )
    mono = averaged(channels)
    if float(np.abs(mono).max()) < _CANCELLED * peak:
        raise AudioFileError(
            f"{name}: its channels cancel each other; it must be mono, or have channels in phase",
            fix="export it as mono, or invert the phase of one channel",
        )
    return mono, sample_rate


def _check_cue(name: str, file: Any) -> None:
    if not _RATES_HZ[0] <= file.samplerate <= _RATES_HZ[1]:
        raise AudioFileError(
            f"{name}: has a sample rate of {file.samplerate} Hz; it must be from {_RATES_HZ[0]} to {_RATES_HZ[1]} Hz",
            fix="export it at 48000 Hz",
        )
    if file.frames > MAX_FILE_S * file.samplerate:
        length_s = file.frames / file.samplerate
        raise AudioFileError(f"{name}: lasts {length_s:.1f} s; at most {MAX_FILE_S:g} s are allowed", fix="shorten it")


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A recording: `channels` (float32, shape `(n_samples, n_channels)`, full scale ±1.0, finite), and its rate, Hz."""

    channels: NDArray[np.float32]
    sample_rate: int

    @property
    def samples(self) -> NDArray[np.float32]:
        """The average of the channels."""
        return averaged(self.channels)


def rate_and_channels(path: Path) -> dict[str, int]:
    """Sample rate, Hz, and number of channels of an audio file."""
    import soundfile

    found = soundfile.info(os.fsencode(path))
    return {"sample_rate": found.samplerate, "channels": found.channels}


def read_recording(source: Path | IO[bytes], name: str = "") -> Recording:
    """A recording of at most 2 GB, read from a file of any format that libsndfile reads, called `name` in errors."""
    channels, sample_rate, _ = read_channels(source, name or str(source), _check_recording)
    return Recording(channels, sample_rate)


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
    from cues.meters.loudness import measure

    samples, sample_rate, _ = read_channels(Path(path), str(path), _check_recording)
    try:
        return measure(samples, sample_rate, dual_mono)
    except CueValueError as error:
        raise error.within(f"{path}: ") from None


def _check_recording(name: str, file: Any) -> None:
    n_bytes = 4 * file.frames * file.channels
    if n_bytes > MAX_RECORDING_BYTES:
        raise AudioFileError(
            f"{name}: lasts {file.frames / file.samplerate:.0f} s, {n_bytes // 2**20} MB of samples; "
            f"at most {MAX_RECORDING_BYTES // 2**20} MB are allowed"
        )


def averaged(channels: NDArray[np.float32]) -> NDArray[np.float32]:
    """The average of channels, shape `(n_samples,)`; samples of that shape stay."""
    if channels.ndim == 1:
        return channels
    return channels[:, 0] if channels.shape[1] == 1 else channels.mean(axis=1, dtype=np.float64).astype(np.float32)


def read_channels(
    source: Path | IO[bytes],
    name: str,
    check: Callable[[str, Any], None] = lambda _name, _file: None,
    dtype: str = "float32",
) -> tuple[NDArray[Any], int, str]:
    """Samples of an audio file (`dtype`, shape `(n, n_channels)`, finite), its rate (Hz) and its libsndfile subtype.

    `check` gets `name` and the open `soundfile.SoundFile`, and raises to reject the file; so does a file that is
    missing, not audio, truncated, empty or not finite, as an `AudioFileError`.
    """
    import soundfile

    try:
        _check_complete(source, name)
        # soundfile encodes a path strictly, and a file's name may be any bytes.
        with soundfile.SoundFile(os.fsencode(source) if isinstance(source, Path) else source) as file:
            _check_length_is_known(name, file.frames)
            check(name, file)
            sample_rate, subtype = int(file.samplerate), str(file.subtype)
            if subtype == "PCM_16" and dtype == "float32":
                # Three times as fast as libsndfile's conversion, with equal values.
                channels = float_of_int16(file.read(dtype="int16", always_2d=True))
            else:
                channels = file.read(
                    file.frames, dtype=dtype, always_2d=True
                )  # a codec that cannot seek needs the number
    except AudioFileError:
        raise
    except (RuntimeError, OSError, TypeError, ValueError, MemoryError) as error:
        # libsndfile reports a missing file as "System error."
        missing = isinstance(source, Path) and not source.exists()
        reason = "there is no such file" if missing else f"{reason_of(error).rstrip('.')}; it must be {_ALLOWED}"
        raise AudioFileError(
            f"{name}: cannot be read as audio: {reason}", fix="export it again as WAV, FLAC, OGG or MP3"
        ) from error
    if not len(channels):
        raise AudioFileError(f"{name}: holds no samples; at least 1 is needed", fix="export it again, with its sound")
    if not np.isfinite(channels).all():
        raise AudioFileError(
            f"{name}: holds NaN or infinity; every sample must be finite", fix="export it again as 24-bit WAV"
        )
    return channels, sample_rate, subtype


def _check_length_is_known(name: str, n_frames: int) -> None:
    if n_frames > _MOST_FRAMES:
        raise AudioFileError(
            f"{name}: its header does not say how long it is, as of a writer to a pipe",
            fix="write it to a file, or export it again as WAV",
        )


def file_bytes(path: Path, name: str = "") -> bytes:
    """Contents of a regular file of at most 64 MB, called `name` in errors; the size is checked before reading."""
    name = name or str(path)
    try:
        status = path.stat()
        regular = stat.S_ISREG(status.st_mode)
        if regular and status.st_size <= MAX_FILE_BYTES:
            return path.read_bytes()
    except (OSError, ValueError) as error:
        fix = "put a file there that you may read, or correct the name"
        raise AudioFileError(f"{name}: cannot be read: {reason_of(error)}", fix=fix) from error
    if not regular:
        raise AudioFileError(f"{name}: is not a regular file", fix="put a file in its place")
    message = f"{name}: has {status.st_size} bytes; at most {MAX_FILE_BYTES} are allowed"
    raise AudioFileError(message, fix="shorten it, or export it with fewer channels")


def digest_of(data: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; `{}` if the file has none, cannot be read, or is larger than 64 MB."""
    try:
        found = json.loads(file_bytes(path))
    except (AudioFileError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_exported(path: Path, data: bytes) -> bool:
    """Whether `data`, of the audio file at `path`, is as an export wrote it: by the digest in the JSON beside it."""
    return json_object(path.with_suffix(".json")).get("sha256") == digest_of(data)


def _check_complete(source: Path | IO[bytes], name: str) -> None:
    """Raise if a file is shorter than its header says; libsndfile would read the rest without an error."""
    if isinstance(source, Path):
        if not source.exists() or source.is_file():  # a pipe can be read only once
            with source.open("rb") as file:
                _check_complete(file, name)
        return
    promised, there = missing_bytes(source)
    source.seek(0)
    if promised > there:
        raise AudioFileError(
            f"{name}: is cut off: its header promises {promised} bytes of samples, and {there} are there; "
            f"it must be complete",
            fix="export it again: the file is shorter than its header says",
        )


def default_subtype(file_format: str) -> str:
    """Default subtype of a file format: 24 bits, or Vorbis for OGG."""
    return "vorbis" if file_format == "ogg" else "24"


def check_format(file_format: str, subtype: str) -> None:
    """Raise `CueValueError` unless `FORMATS` has the pair."""
    if file_format not in FORMATS:
        raise CueValueError(f"format is {file_format!r}; it must be one of {', '.join(FORMATS)}")
    if subtype not in FORMATS[file_format]:
        allowed = ", ".join(FORMATS[file_format])
        raise CueValueError(f"subtype of a {file_format} file is {subtype!r}; it must be one of {allowed}")


def encoded(samples: NDArray[np.float32], sample_rate: int, file_format: str, subtype: str) -> bytes:
    """Bytes of an audio file in a format and a subtype of `FORMATS`; 16 bits get deterministic dither."""
    check_format(file_format, subtype)
    data = dithered_int16(samples) if subtype == "16" else samples
    return in_memory(data, sample_rate, file_format.upper(), FORMATS[file_format][subtype])


def in_memory(samples: NDArray[Any], sample_rate: int, file_format: str, subtype: str) -> bytes:
    """Bytes of an audio file; format and subtype have libsndfile's names."""
    import soundfile

    if file_format == "OGG" and sample_rate > _MAX_OGG_HZ:
        raise AudioFileError(
            f"sample_rate is {sample_rate} Hz; an OGG file has at most {_MAX_OGG_HZ}: WAV and FLAC have more"
        )
    buffer = io.BytesIO()  # libsndfile reports every disk error as "System error"; Python writes the file instead
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    with soundfile.SoundFile(buffer, "w", sample_rate, channels, subtype, format=file_format) as file:
        for start in range(0, len(samples), _WRITTEN_AT_ONCE):
            file.write(samples[start : start + _WRITTEN_AT_ONCE])
    return buffer.getvalue()


def write_audio(path: Path, samples: NDArray[np.float32], sample_rate: int, file_format: str, subtype: str) -> None:
    """Write `samples` to `path` as `encoded` does; an existing file is replaced."""
    try:
        path.write_bytes(encoded(samples, sample_rate, file_format, subtype))
    except (RuntimeError, OSError) as error:
        raise AudioFileError(f"{path}: cannot be written: {reason_of(error)}") from error
