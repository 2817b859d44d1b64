"""The way to one page: 20 ms frames and events, in order."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.websockets import WebSocket

    from cues import Mixer

__all__ = ["Line", "rms"]

_HEADER = struct.Struct("<IIff")
"""Number of the turn, position of the first sample, RMS of the mix and of the speech; `worker.js` reads it."""

_MOST_WAITING = 500
"""Messages that wait for a page: 10 s of sound."""


class Line:
    """Takes the frames of a session (a `Sink`) and events, and delivers them in order.

    The mixer gives the position of each frame, `turn` the turn that the next frames belong to. `overflowed` is set when
    10 s of sound wait: the page does not read. Everything after is dropped.
    """

    def __init__(self, mixer: Mixer) -> None:
        self.turn = 0
        self.overflowed = asyncio.Event()
        self._mixer = mixer
        self._waiting: asyncio.Queue[bytes | str] = asyncio.Queue(_MOST_WAITING)

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Take one frame."""
        header = self._header(self._mixer.position - len(mixed), rms(mixed), rms(speech))
        self._put(header + mixed.astype("<f4", copy=False).tobytes())

    def end_turn(self) -> None:
        """Mark the end of the turn's sound: a frame without samples."""
        self._put(self._header(self._mixer.position, 0.0, 0.0))

    def tell(self, kind: str, **fields: Any) -> None:
        """Take an event; `at_s` is the present position of the output, seconds, unless it is given."""
        at_s = self._mixer.position / self._mixer.sample_rate
        self._put(json.dumps({"type": kind, "turn": self.turn, "at_s": at_s, **fields}))

    async def deliver(self, socket: WebSocket) -> None:
        """Send what waits, until cancelled."""
        while True:
            message = await self._waiting.get()
            await (socket.send_text(message) if isinstance(message, str) else socket.send_bytes(message))

    def _header(self, position: int, mixed_rms: float, speech_rms: float) -> bytes:
        return _HEADER.pack(self.turn, position & 0xFFFFFFFF, mixed_rms, speech_rms)

    def _put(self, message: bytes | str) -> None:
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            self.overflowed.set()


def rms(samples: NDArray[np.float32]) -> float:
    """Root mean square; 0 for no samples."""
    return float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
