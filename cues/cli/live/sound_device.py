"""The machine's loudspeakers, through miniaudio: a finished sound, or a session's sound while it is made."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cues.errors import CueError
from cues.extras import needed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from stream.session import Sink

__all__ = ["LEAD_MS", "Sinks", "SoundDevice", "device_names", "play"]

LEAD_MS = 60.0
"""How far a session has to run ahead of a device that asks for 20 ms at a time and is served by a busy loop."""

# What swallows sound where there is no device: miniaudio's own, and ALSA's `null`.
_NO_DEVICES = ("NULL Playback Device", "Discard all samples")
_BUFFER_MS, _BUFFER_OF_PLAY_MS = 40, 200
_LATEST_S = 0.25  # More than this is not kept: after a stall, silence is dropped until the sound is on time again.
_TAIL_S = 0.2
"""What a device may still hold when the last samples were handed over."""


def _miniaudio() -> Any:
    return needed("miniaudio", "play", "playing needs miniaudio")


@contextlib.contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep what the system's sound libraries print straight to standard error to themselves."""
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
    """Names of the devices that can play; empty where there are none.

    Raises
    ------
    MissingFeatureError : miniaudio is not installed.
    """
    miniaudio = _miniaudio()
    try:
        with _quiet_libraries():
            found = [str(device["name"]) for device in miniaudio.Devices().get_playbacks()]
    except miniaudio.MiniaudioError:
        return []
    return [name for name in found if not name.startswith(_NO_DEVICES)]


class SoundDevice:
    """Plays frames as they are written; leaving the block waits until all were heard.

    Parameters
    ----------
    sample_rate : Hz.
    instead : what the error says to do where nothing can be played.
    backends : of miniaudio, instead of those that the system has.
    buffer_ms : what the device asks for ahead, ms.

    Raises
    ------
    MissingFeatureError : miniaudio is not installed.
    CueError : there is no device, or it cannot be opened.
    """

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
        self._queue(np.zeros(round(_TAIL_S * self._sample_rate), dtype=np.float32))
        self._ending = True
        try:
            if kind is None:
                self._heard.wait(timeout=self.queued_samples / self._sample_rate + 2.0)
        finally:
            self._device.close()

    @property
    def queued_samples(self) -> int:
        """What the device has not been given yet, samples."""
        return self._n_written - self._n_played

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32] | None = None) -> None:  # noqa: ARG002
        """Play a frame after those before it (a `Sink`); it must not change afterwards."""
        late = self.queued_samples > _LATEST_S * self._sample_rate
        if not late or mixed.any():
            self._queue(mixed)

    def _queue(self, frame: NDArray[np.float32]) -> None:
        self._n_written += len(frame)
        self._frames.append(frame)

    def _source(self) -> Generator[bytes | NDArray[np.float32], int, None]:
        """What the device asks for, in its own thread: so many samples each time, zeros where there are none yet."""
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
    """Play `samples` and return when they were heard; parameters and errors are those of `SoundDevice`.

    Parameters
    ----------
    samples : float32, shape `(n_samples,)`, full scale ±1.0.
    """
    instead = "`cues mix` and `cues export` write files instead"
    device = SoundDevice(sample_rate, instead, backends=backends, buffer_ms=_BUFFER_OF_PLAY_MS)
    device.write(samples)
    with device:
        pass  # leaving it waits until all was heard


class Sinks:
    """Several sinks under one name."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Hand a frame to each."""
        for sink in self._sinks:
            sink.write(mixed, speech)
