"""Cues in a telephone call over a WebSocket: Twilio Media Streams, and the same shape at Telnyx and Plivo.

The far end buffers what it is sent and plays it in order. So speech is queued here, before the mixer, and frames of
20 ms leave a short lead ahead of playback. The WebSocket is yours: messages go in by `PhoneLine.feed` and out by its
`send`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from cues.adapters._paced import FRAME_MS, PacedCues, PacedLine, PacedOptions
from cues.adapters._telephony_messages import (
    PROVIDERS,
    CallerAudio,
    Digit,
    LineEvent,
    Marked,
    Started,
    Stopped,
    read_message,
)
from cues.errors import CueValueError
from cues.signal.fades import raised_cosine
from cues.signal.g711 import Law, bytes_of_samples
from cues.signal.pcm import pcm16_of_float

__all__ = ["CallerAudio", "Digit", "LineEvent", "Marked", "PacedOptions", "PhoneLine", "Started", "Stopped"]

_FADE_MS = 20.0
RATE = 8000
_CODECS: dict[str, Law] = {"PCMU": "mulaw", "PCMA": "alaw"}


class PhoneLine(PacedLine):
    """One call: speech in, cues mixed into it, 20 ms messages out.

    All methods belong to the thread of the event loop; `router` may be called from any thread.

    Parameters
    ----------
    send : async callable
        Sends one text message over the WebSocket, such as `websocket.send_text`.
    provider : {"twilio", "telnyx", "plivo"}
        The form of the messages; several other servers speak Twilio's.
    codec : {"PCMU", "PCMA"}
        For Telnyx: the `stream_bidirectional_codec` of your command, by default PCMU. The caller's audio may have
        another codec. The other providers use one codec in both directions, and ignore this.
    **options
        `bank`, `rules`, `tools`, `limits` and `clock`, as in `PacedOptions`, and `lead_ms`: how far ahead of playback
        frames are sent, milliseconds, 20 or more, by default 80. It covers the network's jitter, and delays a cue over
        speech by as much.

    Raises
    ------
    CueValueError
        If the provider or the codec is unknown, or the lead is shorter.
    """

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        *,
        provider: str = "twilio",
        codec: str = "PCMU",
        **options: Unpack[PacedOptions],
    ) -> None:
        if provider not in PROVIDERS:
            raise CueValueError(f"provider is {provider!r}; it must be one of {', '.join(PROVIDERS)}")
        if codec not in _CODECS:
            raise CueValueError(f"codec is {codec!r}; it must be one of {', '.join(_CODECS)}")
        self._messages = PROVIDERS[provider]
        self._telnyx_plays = _CODECS[codec] if provider == "telnyx" else None
        self._send = send
        self._paced = PacedCues(options, sample_rate=RATE, is_constant=True)
        self._started: Started | None = None
        self._outbox: deque[str] = deque()
        self._due: deque[NDArray[np.float32]] = deque()
        self._sent: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._has_sent = False  # since the last barge-in
        self._n_marks = 0
        self._marks: dict[str, asyncio.Event] = {}
        self._is_over = False
        self._go = asyncio.Event()

    # From the caller.

    def feed(self, message: str | bytes) -> LineEvent | None:
        """The event of a message; None for an unknown one.

        Raises
        ------
        CueValueError
            If the call's encoding is not µ-law, A-law or 16-bit samples, or is Telnyx's L16, whose byte order is
            uncertain. Start the stream again with another codec.
        """
        event = read_message(message, self._started)
        match event:
            case Started(law=None) if self._telnyx_plays:
                raise CueValueError("the call's audio is Telnyx's L16; its stream_codec must be PCMU or PCMA")
            case Started():
                self._started = event
                self._paced.retune(event.sample_rate)
                self._go.set()
            case Marked(name) if name in self._marks:
                self._marks[name].set()
            case Stopped():
                self.close()
        return event

    # To the caller.

    def barge_in(self) -> None:
        """Silence the line within 40 ms: what the far end still holds is dropped, and a short fade is sent instead."""
        n_unheard = max(self._paced.pacer.unheard_samples - sum(len(frame) for frame in self._due), 0)
        self._due.clear()
        if n_unheard and self._has_sent and self._started is not None:
            fade = np.zeros(round(_FADE_MS * self._paced.sample_rate / 1000.0), dtype=np.float32)
            rest = self._sent[-n_unheard:][: len(fade)]
            fade[: len(rest)] = rest * raised_cosine(len(rest))[::-1]
            self._outbox += self._messages.clear(self._started.stream_id), self._message(fade)
            self._sent, n_unheard = fade, len(fade)
        self._has_sent = False  # Nothing but a fade is there for another one to end.
        self._paced.pacer.recall(n_unheard)
        self._paced.interrupt()
        self._paced.last_frames()
        self._pass_marks()  # Plivo returns those of what was heard alone.
        self._paced.wake()

    async def played(self) -> None:
        """Return when all that was pushed, and each cue that has begun or waits for a pause, was played or dropped."""
        await self._all_sent()
        await self._paced.cues_end(lambda: self._is_over)
        await self._all_sent()
        if self._started is None or self._is_over:
            return
        self._n_marks += 1
        name = f"cues-{self._n_marks}"
        mark = self._marks[name] = asyncio.Event()
        self._outbox.append(self._messages.mark(self._started.stream_id, name))
        self._paced.wake()
        try:
            await mark.wait()
        finally:
            del self._marks[name]

    async def _all_sent(self) -> None:
        while not self._is_over and (self._paced.pacer.queued_samples or self._due or self._outbox):
            await self._paced.clock.sleep(FRAME_MS / 1000.0)

    async def run(self) -> None:
        """Send what is due, from the call's start until `close`, a `Stopped`, a failure or a cancellation."""
        try:
            await self._go.wait()
            while not self._is_over:
                self._due.extend(self._paced.frames())
                while self._outbox or self._due:
                    await self._send(self._outbox.popleft() if self._outbox else self._next_message())
                await self._paced.wait()
        finally:
            self.close()

    def _next_message(self) -> str:
        mixed, self._has_sent = self._due.popleft(), True
        n_kept = round((self._paced.lead_ms + FRAME_MS) * self._paced.sample_rate / 1000.0)
        self._sent = np.concatenate([self._sent, mixed])[-n_kept:]
        return self._message(mixed)

    def close(self) -> None:
        """End `run` and whatever waits for `played`."""
        self._is_over = True
        self._go.set()
        self._pass_marks()
        self._paced.close()

    def _pass_marks(self) -> None:
        for mark in self._marks.values():
            mark.set()

    def _message(self, samples: NDArray[np.float32]) -> str:
        assert self._started is not None
        law = self._telnyx_plays or self._started.law
        data = pcm16_of_float(samples) if law is None else bytes_of_samples(samples, law)
        return self._messages.media(self._started, data)
