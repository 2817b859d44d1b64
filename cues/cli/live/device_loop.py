"""A session's sound on the machine's loudspeakers while it is made, through miniaudio."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cues.cli.live.sound_device import device_names
from cues.errors import CueError, MissingFeatureError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from numpy.typing import NDArray

    from stream.session import Sink

__all__ = ["LEAD_MS", "LiveDevice", "Sinks"]

LEAD_MS = 60.0
"""How far a session has to run ahead of a device that asks for 20 ms at a time and is served by a busy loop."""

_PERIOD_MS = 40
_LATEST_S = 0.25  # More than this is not kept: after a stall, silence is dropped until the sound is on time again.
_TAIL_S = 0.1


class LiveDevice:
    """Plays frames as they are written; leaving the block waits until all were heard.

    Parameters
    ----------
    sample_rate : Hz.
    backends : of miniaudio, instead of those that the system has.

    Raises
    ------
    MissingFeatureError : miniaudio is not installed.
    CueError : there is no device, or it cannot be opened.
    """

    def __init__(self, sample_rate: int, backends: Sequence[Any] | None = None) -> None:
        try:
            import miniaudio
        except ImportError as error:
            raise MissingFeatureError("playing needs miniaudio: pip install 'cue-engine[play]'") from error
        if backends is None and not device_names():
            raise CueError("no sound device to play on; without --play the answer goes into files alone")
        self._sample_rate = sample_rate
        self._frames: deque[NDArray[np.float32]] = deque()
        self._queued = 0
        self._ending = False
        self._heard = threading.Event()
        try:
            self._device = miniaudio.PlaybackDevice(
                output_format=miniaudio.SampleFormat.FLOAT32,
                nchannels=1,
                sample_rate=sample_rate,
                buffersize_msec=_PERIOD_MS,
                backends=backends,
                app_name="cues",
            )
        except miniaudio.MiniaudioError as error:
            raise CueError(f"the sound device cannot be opened: {error}") from error

    def __enter__(self) -> Self:
        source = self._source()
        next(source)
        self._device.start(source)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.write(np.zeros(round(_TAIL_S * self._sample_rate), dtype=np.float32))
        self._ending = True
        if kind is None:
            self._heard.wait(timeout=_TAIL_S + self._queued / self._sample_rate + 2.0)
        self._device.close()

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32] | None = None) -> None:  # noqa: ARG002
        """Play a frame after those before it (a `Sink`)."""
        late = self._queued > _LATEST_S * self._sample_rate
        if late and not mixed.any():
            return
        self._queued += len(mixed)
        self._frames.append(np.array(mixed, dtype=np.float32))

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
            self._queued -= len(block)
            wanted = yield np.pad(block, (0, wanted - len(block)))
        self._heard.set()


class Sinks:
    """Several sinks under one name."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Hand a frame to each."""
        for sink in self._sinks:
            sink.write(mixed, speech)
