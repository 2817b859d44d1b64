"""The machine's loudspeakers, through miniaudio or by a program of the system."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.errors import CueError
from cues.extras import needed
from cues.library.audiofile import write_audio

__all__ = ["device_names", "installed_players", "play", "play_by_device"]

# Null devices: miniaudio's, and ALSA's `null`.
_NO_DEVICES = ("NULL Playback Device", "Discard all samples")
_BUFFER_MS = 200
_TAIL_S = 0.2
"""Sound that the device may still hold after the last callback."""
_PROGRAM_S = 20.0
"""Longest time of a program beyond the sound's own."""
# In order of preference: those of a sound server first. ffplay is not among them: without a device it exits with 0.
_PLAYERS = (("pw-play",), ("paplay",), ("afplay",), ("aplay", "-q"), ("play", "-q"))


@contextlib.contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Suppress direct output of the system's sound libraries to standard error."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # no standard error at all
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  (devnull is no path to speak of)
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _miniaudio() -> Any:
    return needed("miniaudio", "play", "playing needs miniaudio")


def device_names() -> list[str]:
    """Names of the playback devices; `MissingFeatureError` without miniaudio."""
    miniaudio = _miniaudio()
    try:
        with _quiet_libraries():
            found = [str(device["name"]) for device in miniaudio.Devices().get_playbacks()]
    except miniaudio.MiniaudioError:
        return []
    return [name for name in found if not name.startswith(_NO_DEVICES)]


def installed_players() -> dict[str, list[str]]:
    """The programs that `play` would try, and the beginnings of their command lines."""
    if sys.platform == "win32":
        return {}
    return {name: [program, *options] for name, *options in _PLAYERS if (program := shutil.which(name))}


def play(samples: NDArray[np.float32], sample_rate: int) -> str | None:
    """Play `samples` to the end; the name of the program that did, or `None` if the sound device did."""
    try:
        play_by_device(samples, sample_rate)
    except CueError:
        if (program := _play_by_program(samples, sample_rate)) is None:
            raise
        return program
    return None


def play_by_device(samples: NDArray[np.float32], sample_rate: int, backends: Sequence[Any] | None = None) -> None:
    """Play `samples` to the end; `CueError` if there is no sound device, or it cannot be opened."""
    miniaudio, instead, heard = _miniaudio(), "`cues mix` and `cues export` write files instead", threading.Event()
    if backends is None and not device_names():
        raise CueError(f"no sound device to play on; {instead}")
    blocks = _blocks(np.pad(samples, (0, round(_TAIL_S * sample_rate))), heard)
    next(blocks)
    settings = {"output_format": miniaudio.SampleFormat.FLOAT32, "nchannels": 1, "sample_rate": sample_rate}
    try:
        with _quiet_libraries():
            device = miniaudio.PlaybackDevice(
                **settings, buffersize_msec=_BUFFER_MS, backends=backends, app_name="cues"
            )
    except miniaudio.MiniaudioError as error:
        raise CueError(f"the sound device cannot be opened: {error}; {instead}") from error
    with contextlib.closing(device):
        device.start(blocks)
        heard.wait(len(samples) / sample_rate + 2.0)


def _blocks(samples: NDArray[np.float32], heard: threading.Event) -> Generator[bytes | NDArray[np.float32], int, None]:
    """As many samples as the device's thread asks for, with zeros after the last one; then `heard` is set."""
    at, wanted = 0, (yield b"")
    while at < len(samples):
        block = samples[at : at + wanted]
        at += wanted
        wanted = yield np.pad(block, (0, wanted - len(block)))
    heard.set()


def _play_by_program(samples: NDArray[np.float32], sample_rate: int) -> str | None:
    """The name of the program that played `samples`, `None` if none could."""
    quiet = subprocess.DEVNULL
    with tempfile.TemporaryDirectory(prefix="cues-") as folder:
        path = Path(folder) / "cues.wav"
        write_audio(path, samples, sample_rate, "wav", "16")
        longest_s = len(samples) / sample_rate + _PROGRAM_S
        for name, command in installed_players().items():
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(  # noqa: S603  (a program of the table above, a file written here)
                    [*command, str(path)], stdin=quiet, stdout=quiet, stderr=quiet, timeout=longest_s, check=True
                )
                return name
    return None
