"""`cues live --pipeline fastrtc`: a page's sound over WebRTC, through FastRTC and its adapter."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio, which fastrtc imports

from cues.adapters.fastrtc import with_cues

# isort: split
from fastrtc import AsyncStreamHandler, Stream  # after the adapter, which reports a missing package

from cues.cli.live.browser.conversation import Conversation, Setup
from cues.cli.live.browser.line import Line, rms
from cues.errors import CueError
from stream.events import StreamFailed, TextDelta
from stream.session.record import Heard, TurnRecord
from stream.session.transcript import CueSpan, Transcript
from stream.speech.speaker import SAMPLE_RATE
from stream.word_chunks import words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from numpy.typing import NDArray
    from pydantic import BaseModel

    from cues import Mixer
    from cues.adapters.fastrtc import CuedHandler
    from cues.library.bank import Bank
    from stream.events import Event
    from stream.routing.router import Played
    from stream.speech.speaker import Speaker

    Samples = NDArray[np.float32]

__all__ = ["Peers", "RtcConversation"]

_SILENCE: Samples = np.zeros(0, dtype=np.float32)
_DEAD_S = 5.0
"""FastRTC asks for sound ten times a second while it is connected."""


class _Talker(AsyncStreamHandler):  # type: ignore[misc]  # the package may be absent where types are checked
    """FastRTC's handler of one page: emits the speech that it gets, and ignores the microphone."""

    def __init__(self) -> None:
        super().__init__(output_sample_rate=SAMPLE_RATE)
        self.speech: asyncio.Queue[Samples] = asyncio.Queue()
        self.n_taken = 0

    def copy(self) -> _Talker:
        return _Talker()

    async def receive(self, frame: object) -> None:
        pass

    async def emit(self) -> tuple[int, Samples]:
        samples = await self.speech.get()
        self.n_taken += len(samples)
        return SAMPLE_RATE, samples.reshape(1, -1)


class Peers:
    """FastRTC's `Stream`, which all pages share; `bank` returns the cues, and is asked for each connection."""

    def __init__(self, bank: Callable[[], Bank], most: int) -> None:
        self._bank = bank
        self._stream = Stream(
            with_cues(_Talker()),
            modality="audio",
            mode="send-receive",
            concurrency_limit=most,
            server_rtc_configuration={"iceServers": []},
            verbose=False,
        )

    async def answer(self, name: str, sdp: str) -> tuple[str, CuedHandler]:
        """The answer to a page's offer, and the handler of the connection `name`."""
        self._stream.event_handler = with_cues(_Talker(), bank=self._bank())  # FastRTC copies it
        offer = {"sdp": sdp, "type": "offer", "webrtc_id": name}
        answer = await self._stream.handle_offer(offer, self._stream.set_additional_outputs(name))
        if not isinstance(answer, dict):
            raise CueError("too many pages are open")
        return answer["sdp"], self._stream.handlers[name]

    async def close(self, name: str) -> None:
        """End a connection."""
        if (peer := self._stream.pcs.get(name)) is not None:
            await peer.close()


class RtcConversation(Conversation):
    """A `Conversation` whose sound goes through FastRTC: the handler of `with_cues` mixes and paces.

    The handler releases nothing in silence, so times for the page are those of a clock: `_lag_s` is the clock's time
    less the samples released.
    """

    def __init__(self, peers: Peers, setup: Setup) -> None:
        super().__init__(setup)
        self.line = _RtcLine(self._mixer, self._now_s)
        self._peers, self._name, self._start_s = peers, "", time.monotonic()
        self._handler: CuedHandler | None = None
        self._transcript = Transcript(self._relay)
        self._spoken = _SILENCE  # speech that was not released yet
        self._words: deque[tuple[int, str]] = deque()  # with their place in all speech, samples
        self._n_released = self._n_out = 0
        self._lag_s = 0.0
        self._is_quiet = True
        self._was_asked = asyncio.Event()
        self._record = TurnRecord(SAMPLE_RATE)
        self._offers: set[asyncio.Task[None]] = set()
        self._speaking: list[asyncio.Task[None]] = []

    async def __aexit__(self, *error: object) -> None:
        await self._peers.close(self._name)
        await super().__aexit__(*error)

    def offer(self, sdp: str) -> None:
        """Answer the page's offer of a connection, as an event."""
        task = asyncio.create_task(self._connect(sdp))
        self._offers.add(task)
        task.add_done_callback(self._offers.discard)

    async def _connect(self, sdp: str) -> None:
        await self._peers.close(self._name)
        self._name = uuid.uuid4().hex
        try:
            answer, handler = await self._peers.answer(self._name, sdp)
        except Exception as error:  # noqa: BLE001  (an offer may hold anything)
            self.line.tell("error", message=f"no WebRTC connection: {error}", code="webrtc")
            return
        emit, self._handler = handler.emit, handler

        async def watched() -> Any:
            self._take(item := await emit())
            return item

        handler.emit = watched  # type: ignore[method-assign]
        self._start_s = time.monotonic()
        handler.router.spans.subscribe(self._transcript.cue)
        self.line.tell("live.answer", sdp=answer)

    def interrupt(self) -> None:
        """Barge in, as FastRTC's `clear_queue` does."""
        super().interrupt()
        self._record.interrupted = True
        if self._handler is not None:
            self._handler.interrupt()
            self._drop()
        for task in self._speaking:
            task.cancel()

    async def _answer(self, number: int, text: str, script: int) -> TurnRecord | None:
        source, speaker = await self._open(script)
        if self._handler is None:
            raise CueError("the page has no WebRTC connection")
        if number != self._number:
            return None
        self._history.add("user", text)
        self._record = record = TurnRecord(SAMPLE_RATE)
        self._drop()
        self._is_quiet = False
        router = self._handler.router
        router.tell(on_played=self._played)
        router.begin_turn()
        events: Any = self._events(source, script)
        self._speaking = [
            asyncio.create_task(self._listen(words(events), speaker)),
            asyncio.create_task(self._say(speaker)),
        ]
        results = await asyncio.gather(*self._speaking, return_exceptions=True)
        await self._silence()
        for error in results:
            if isinstance(error, Exception):
                raise error
        record.output_samples = self._n_out
        record.heard_text = "".join(heard.text for heard in record.heard) if record.interrupted else record.spoken_text
        self._history.add("assistant", record.heard_text)
        self._transcript.done(record)
        if record.interrupted:
            await self._drop_speaker()  # It may have more of the old answer.
        return record

    async def _listen(self, events: AsyncIterator[Event], speaker: Speaker) -> None:
        """Hand every event to the router, and text to the speaker."""
        assert self._handler is not None
        async for event in events:
            self._record.add(event, None, self._now_s())
            self._handler.router.handle(event)
            self._transcript.event(event)
            if isinstance(event, TextDelta):
                self._record.spoken_text += event.text
                await speaker.send(event.text)
            else:
                await speaker.flush()
            if isinstance(event, StreamFailed):
                self._record.failure = event.message
        self._handler.router.end_stream()
        await speaker.finish()

    async def _say(self, speaker: Speaker) -> None:
        """Hand speech to FastRTC's handler as soon as it is there."""
        assert self._handler is not None
        async for speech in speaker:
            n_said = self._n_released + len(self._spoken)
            self._words += [(n_said + word.start_samples, word.text) for word in speech.words]
            self._spoken = np.concatenate([self._spoken, speech.samples])
            self._handler.inner.speech.put_nowait(speech.samples)

    async def _silence(self) -> None:
        """Wait until nothing sounds and nothing is queued."""
        while not self._is_quiet or len(self._spoken):
            self._was_asked.clear()
            try:
                async with asyncio.timeout(_DEAD_S):
                    await self._was_asked.wait()
            except TimeoutError:
                raise CueError("the WebRTC connection is down; load the page anew") from None

    def _drop(self) -> None:
        """Forget the speech that will not be released."""
        assert self._handler is not None
        talker = self._handler.inner
        while not talker.speech.empty():
            talker.speech.get_nowait()
        self._n_released = talker.n_taken = 0
        self._words.clear()
        self._spoken = _SILENCE

    # Times and levels of what is released.

    def _take(self, item: Any) -> None:
        """Note one result of the handler: a frame, or None after 100 ms of silence."""
        self._is_quiet = item is None
        self._was_asked.set()
        if not isinstance(item, tuple):
            return
        assert self._handler is not None
        frame = item[1].reshape(-1)
        begin = self._n_out
        self._n_out += len(frame)
        self._lag_s = max(self._lag_s, self._now_s() - begin / SAMPLE_RATE)
        n_left = self._handler.inner.n_taken - self._handler.pacer.queued_samples
        n_new = min(max(n_left - self._n_released, 0), len(frame), len(self._spoken))
        speech, self._spoken = self._spoken[:n_new], self._spoken[n_new:]
        n_released = self._n_released + n_new
        while self._words and self._words[0][0] < n_released:
            place, text = self._words.popleft()
            at_s = (begin + max(place - self._n_released, 0)) / SAMPLE_RATE + self._lag_s
            self._record.heard.append(Heard(text, round(at_s * SAMPLE_RATE)))
            self._transcript.word(text, at_s)
        self._n_released = n_released
        self.line.tell(
            "live.level",
            at_s=begin / SAMPLE_RATE + self._lag_s,
            length_s=len(frame) / SAMPLE_RATE,
            mixed=rms(frame),
            speech=rms(speech),
        )

    def _now_s(self) -> float:
        return time.monotonic() - self._start_s

    def _shown_s(self, output_s: float) -> float:
        """Time for the page of a place in the output that is released now or later."""
        return output_s + max(self._lag_s, self._now_s() - self._n_out / SAMPLE_RATE)

    def _played(self, played: Played) -> None:
        self._record.add_cue(played)
        if self._record.sounded and self._record.sounded[-1].onset_samples == played.onset_samples:
            last = self._record.sounded[-1]
            self._record.sounded[-1] = replace(last, onset_s=self._shown_s(last.onset_s))

    def _relay(self, event: BaseModel) -> None:
        if isinstance(event, CueSpan):
            lag_s = self._shown_s(0.0)
            end_s = None if event.end_s is None else event.end_s + lag_s
            event = event.model_copy(update={"start_s": event.start_s + lag_s, "end_s": end_s})
        super()._relay(event)


class _RtcLine(Line):
    """Events alone; their time is that of a clock."""

    def __init__(self, mixer: Mixer, now_s: Callable[[], float]) -> None:
        super().__init__(mixer)
        self._now_s = now_s

    def tell(self, kind: str, **fields: Any) -> None:
        super().tell(kind, **{"at_s": self._now_s(), **fields})

    def end_turn(self) -> None:
        """Nothing: the sound has its own way."""
