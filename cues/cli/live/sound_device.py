"""The machine's loudspeakers: a finished sound or the live sound of a session, through miniaudio or by a program."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cues.errors import CueError
from cues.extras import needed
from cues.library.audiofile import write_audio

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["LEAD_MS", "SoundDevice", "device_names", "installed_players", "play", "play_with_a_program"]

LEAD_MS = 60.0
"""Lead of a session over a device that requests 20 ms at a time, with a busy event loop."""

# Null devices: miniaudio's, and ALSA's `null`.
_NO_DEVICES = ("NULL Playback Device", "Discard all samples")
_BUFFER_MS, _BUFFER_OF_PLAY_MS = 40, 200
_LATEST_S = 0.25  # After a stall, silence beyond this is dropped until the sound is on time.
_TAIL_S = 0.2
"""Sound that the device may still hold after the last callback."""
_PROGRAM_S = 20.0
"""Longest time of a program beyond the sound's own."""
# In order of preference: those of a sound server first. ffplay is not among them: without a device it exits with 0.
_PLAYERS = (("pw-play",), ("paplay",), ("afplay",), ("aplay", "-q"), ("play", "-q"))


def _miniaudio() -> Any:
    return needed("miniaudio", "play", "playing needs miniaudio")


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


def device_names() -> list[str]:
    """Names of the playback devices; `MissingFeatureError` without miniaudio."""
    miniaudio = _miniaudio()
    try:
        with _quiet_libraries():
            found = [str(device["name"]) for device in miniaudio.Devices().get_playbacks()]
    except miniaudio.MiniaudioError:
        return []
    return [name for name in found if not name.startswith(_NO_DEVICES)]


class SoundDevice:
    """Playback device for frames; leaving `with` waits until all are played. `instead` is advice if it cannot open."""

    def __init__(
        self, sample_rate: int, instead: str, *, backends: Sequence[Any] | None = None, buffer_ms: int = _BUFFER_MS
    ) -> None:
        miniaudio = _miniaudio()
        if backends is None and not device_names():
            raise CueError(f"no sound device to play on; {instead}")
        self._sample_rate = sample_rate
        self._frames: deque[NDArray[np.float32]] = deque()
        self._n_written = self._n_played = 0  # one counter for each thread
        self._ending = False
        self._heard = threading.Event()
        try:
            with _quiet_libraries():
                self._device = miniaudio.PlaybackDevice(
                    output_format=miniaudio.SampleFormat.FLOAT32,
                    nchannels=1,
                    sample_rate=sample_rate,
                    buffersize_msec=buffer_ms,
                    backends=backends,
                    app_name="cues",
                )
        except miniaudio.MiniaudioError as error:
            raise CueError(f"the sound device cannot be opened: {error}; {instead}") from error

    def __enter__(self) -> Self:
        source = self._source()
        next(source)
        self._device.start(source)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._n_written += (n_tail := round(_TAIL_S * self._sample_rate))
        self._frames.append(np.zeros(n_tail, dtype=np.float32))
        self._ending = True
        try:
            if kind is None:
                self._heard.wait(timeout=self.queued_samples / self._sample_rate + 2.0)
        finally:
            self._device.close()

    @property
    def queued_samples(self) -> int:
        """Samples that wait for the device."""
        return self._n_written - self._n_played

    def write(self, frame: NDArray[np.float32]) -> None:
        """Queue a frame for playback; do not change it afterwards."""
        if self.queued_samples <= _LATEST_S * self._sample_rate or frame.any():
            self._n_written += len(frame)
            self._frames.append(frame)

    def _source(self) -> Generator[bytes | NDArray[np.float32], int, None]:
        """Feed the device from its callback thread: the requested samples, zeros on underrun."""
        rest = np.zeros(0, dtype=np.float32)
        wanted = yield b""
        while not (self._ending and not self._frames and not len(rest)):
            pieces, missing = [rest[:wanted]], wanted - len(rest)
            rest = rest[wanted:]
            while missing > 0 and self._frames:
                frame = self._frames.popleft()
                pieces.append(frame[:missing])
                rest = frame[missing:]
                missing -= len(frame)
            block = np.concatenate(pieces)
            self._n_played += len(block)
            wanted = yield np.pad(block, (0, wanted - len(block)))
        self._heard.set()


def play(samples: NDArray[np.float32], sample_rate: int, backends: Sequence[Any] | None = None) -> None:
    """Play `samples` to the end; errors as in `SoundDevice`."""
    instead = "`cues mix` and `cues export` write files instead"
    device = SoundDevice(sample_rate, instead, backends=backends, buffer_ms=_BUFFER_OF_PLAY_MS)
    device.write(samples)
    with device:
        pass  # the exit waits until all samples are played


def installed_players() -> dict[str, list[str]]:
    """The programs that `play_with_a_program` would try, and the beginnings of their command lines."""
    if sys.platform == "win32":
        return {}
    return {name: [program, *options] for name, *options in _PLAYERS if (program := shutil.which(name))}


def play_with_a_program(samples: NDArray[np.float32], sample_rate: int) -> str | None:
    """Play `samples` to the end; the name of the program that did, or None if no program could."""
    with tempfile.TemporaryDirectory(prefix="cues-") as folder:
        path = Path(folder) / "cues.wav"
        write_audio(path, samples, sample_rate, "wav", "16")
        longest_s = len(samples) / sample_rate + _PROGRAM_S
        for name, command in installed_players().items():
            if _succeeds([*command, str(path)], longest_s):
                return name
    return None


def _succeeds(command: list[str], longest_s: float) -> bool:
    quiet = subprocess.DEVNULL
    try:
        ended = subprocess.run(  # noqa: S603  (a program of the table above, a file written here)
            command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=longest_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
