"""Cues in a call from Asterisk: AudioSocket, a stream of short messages over TCP.

Asterisk is the client, plays each frame as it comes and has no way to take one back. So frames leave two of them ahead
of playback. The socket is yours: bytes go in by `AudioSocketLine.feed` and out by its `write`.
"""

import math
from collections.abc import Callable
from typing import Any, Unpack
from uuid import UUID

from cues.adapters._paced import PacedLine, PacedOptions, PacedWriter
from cues.adapters._telephony_messages import CallerAudio, Digit, LineEvent, Started, Stopped
from cues.arrays import Samples
from cues.signal.pcm import float_of_pcm16, pcm16_of_float

__all__ = ["AudioSocketLine", "CallerAudio", "Digit", "LineEvent", "PacedOptions", "Started", "Stopped"]

_HANGUP, _UUID, _DIGIT, _AUDIO, _ERROR = 0x00, 0x01, 0x03, 0x10, 0xFF
# Kinds of audio from `_AUDIO` on; older versions of Asterisk have the first alone.
_RATES = (8000, 12000, 16000, 24000, 32000, 44100, 48000, 96000, 192000)
_HEADER = 3  # one byte of kind, two of length, big endian
_FADE_MS = 20.0
_SAME_RATE_S = 1.0  # A new mixer is work: a peer that changes its rate all the time must not hold other calls up.


class AudioSocketLine(PacedWriter, PacedLine):
    """One call: speech in, cues mixed into it, messages of 20 ms out.

    All methods belong to the thread of the event loop; `router` may be called from any thread. `await run()` beside
    the loop that reads the socket.

    Parameters
    ----------
    write : callable
        Sends bytes to Asterisk, such as the `write` of an `asyncio.StreamWriter`.
    **options
        `bank`, `rules`, `tools`, `limits`, `lead_ms` and `clock`, as in `PacedOptions`.
    """

    def __init__(self, write: Callable[[bytes], Any], **options: Unpack[PacedOptions]) -> None:
        super().__init__(self._send, sample_rate=_RATES[0], **options)
        self._to_asterisk = write
        self._received = bytearray()
        self._retuned_s = -math.inf

    def feed(self, data: bytes) -> list[LineEvent]:
        """The events in bytes that are cut anywhere: `Started` with the call's UUID, then those of `LineEvent`."""
        self._received += data
        events = []
        while len(self._received) >= _HEADER:
            end = _HEADER + int.from_bytes(self._received[1:_HEADER], "big")
            if len(self._received) < end:
                break
            kind, payload = self._received[0], bytes(self._received[_HEADER:end])
            del self._received[:end]
            if (event := self._read(kind, payload)) is not None:
                events.append(event)
        return events

    def _read(self, kind: int, payload: bytes) -> LineEvent | None:
        if kind == _UUID and len(payload) == 16:
            return Started(stream_id=str(UUID(bytes=payload)), law=None)
        if kind == _DIGIT and payload:
            return Digit(payload[:1].decode("latin-1"))
        if _AUDIO <= kind < _AUDIO + len(_RATES):
            self._answer_at(_RATES[kind - _AUDIO])
            return CallerAudio(float_of_pcm16(payload[: len(payload) // 2 * 2]))
        if kind in (_HANGUP, _ERROR):
            self.close()
            return Stopped()
        return None

    def _answer_at(self, rate: int) -> None:
        """Go on at the caller's rate: Asterisk takes any rate at any time."""
        now_s = self._paced.clock.now()
        if rate != self._paced.sample_rate and now_s >= self._retuned_s + _SAME_RATE_S and self._paced.pacer.is_silent:
            self._retuned_s = now_s
            self._paced.retune(rate)

    def barge_in(self) -> None:
        """Silence the line within 80 ms: the frames that were sent, and a short fade."""
        self._paced.interrupt(_FADE_MS)

    def _send(self, samples: Samples) -> None:
        payload = pcm16_of_float(samples)
        kind = _AUDIO + _RATES.index(self._paced.sample_rate)
        self._to_asterisk(bytes([kind]) + len(payload).to_bytes(2, "big") + payload)
