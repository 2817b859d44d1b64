"""The conversation of one page: a question, the model's stream, a session that speaks it, frames and events."""

import asyncio
import json
import logging
import struct
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from starlette.websockets import WebSocket

import stream
from cues import Mixer
from cues.cli._page_server import Watched
from cues.cli.live.turn import Arrival, Target, cause_of, told_of
from cues.library.bank import Bank
from stream.clock import WallClock
from stream.events import ServiceEvent, ToolCallStart, ToolsLeftOut
from stream.services.source import ChatSource
from stream.session import ChatHistory, VoiceSession
from stream.session.turn_record import TurnRecord
from stream.speech import choose_speaker
from stream.speech.speaker import SAMPLE_RATE, Speaker

__all__ = ["Conversation", "ConversationOptions", "Line"]

_FRAME_SAMPLES, _FRAME_MS = 480, 20.0
_HEADER = struct.Struct("<IIff")
"""Number of the turn, position of the first sample, RMS of the mix and of the speech; `worker.js` reads it."""

_MOST_WAITING = 500
"""Messages that wait for a page: 10 s of sound."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOptions:
    """Shared by the conversations of all pages: a model for each script, the cues, the speaker, the system prompt."""

    targets: Sequence[Target]
    bank: Watched[Bank]
    speaker: str = "auto"
    system: str = ""


class Conversation:
    """Answers a page's questions with one `VoiceSession`; leave the context to end it.

    A new question interrupts the answer under way, and takes the place of a question that waits. The cues are looked up
    for each answer, so that a changed pack is heard in the next one.
    """

    def __init__(self, options: ConversationOptions, clock: WallClock | None = None) -> None:
        self._options, self._clock = options, clock or WallClock()
        self._mixer = Mixer(SAMPLE_RATE)
        self.line = Line(self._mixer)
        self._history = ChatHistory(options.system)
        self._arrival = Arrival(self._clock)
        self._resources = AsyncExitStack()
        self._sources: dict[int, ChatSource] = {}
        self._bank: Bank
        self._router: stream.CueRouter
        self._speaker: Speaker | None = None
        self._session: VoiceSession | None = None
        self._number = 0
        self._left_out: ToolsLeftOut | None = None  # that the page was told of
        self._waiting: tuple[str, int] | None = None  # the newest question, and its script
        self._answering: asyncio.Task[None]
        self._openings: set[asyncio.Task[tuple[ChatSource, VoiceSession]]] = set()
        self._one_opens = asyncio.Lock()
        self._interruption: asyncio.Future[None] | None = None  # while a question waits for its model

    async def __aenter__(self) -> Self:
        self._start_opening(0)  # While the user reads the page. The first turn tries again, and reports what fails.
        self._answering = asyncio.create_task(self._answer_what_waits())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = self._answering, *self._openings
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._drop_session()
        await self._resources.aclose()
        self._mixer.close()

    def ask(self, text: str, script: int = 0) -> None:
        """Answer a question after the answer under way has faded out; `ValueError` for an unknown script."""
        if not 0 <= script < len(self._options.targets):
            raise ValueError(f"script is {script}; there are {len(self._options.targets)}, from 0 on")
        self.interrupt()
        self._waiting = text, script
        if self._answering.done():
            self._answering = asyncio.create_task(self._answer_what_waits())

    def interrupt(self) -> None:
        """Barge in: the answer under way fades out, and a question that waits is dropped."""
        self._number += 1
        self._waiting = None
        if self._interruption is not None and not self._interruption.done():
            self._interruption.set_result(None)
        if self._session is not None:
            self._session.barge_in()

    async def answered(self) -> None:
        """Wait until no question waits or is being answered."""
        await asyncio.wait([self._answering, *self._openings])

    async def _answer_what_waits(self) -> None:
        while self._waiting is not None:
            (text, script), self._waiting = self._waiting, None
            await self._turn(self._number, text, script)

    async def _turn(self, number: int, text: str, script: int) -> None:
        self.line.turn = number
        self.line.tell("live.turn", text=text)
        record: TurnRecord | None = None
        failure: str | None = None
        try:
            opened = await self._opened(script)
            if opened is not None:
                source, session = opened
                self._history.add("user", text)
                record = await session.run(self._events(source, script), bytes_s=lambda: self._arrival.last_s)
                failure = record.failure
        except Exception as error:
            logger.exception("turn %d failed", number)
            failure = f"{type(error).__name__}: {error}"
        finally:
            self._tell_end(record, failure)
        if failure is not None:
            await self._drop_session()  # The next turn starts another speaker.

    async def _opened(self, script: int) -> tuple[ChatSource, VoiceSession] | None:
        """The model and the session, once they are ready; None if the question is interrupted before."""
        opening = self._start_opening(script)
        self._interruption = asyncio.get_running_loop().create_future()
        either: list[asyncio.Future[Any]] = [opening, self._interruption]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return None if self._interruption.done() else opening.result()

    def _start_opening(self, script: int) -> asyncio.Task[tuple[ChatSource, VoiceSession]]:
        """It goes on when its question is interrupted, for the next one."""
        opening = asyncio.create_task(self._open_alone(script))
        self._openings.add(opening)
        opening.add_done_callback(self._end_opening)
        return opening

    def _end_opening(self, opening: asyncio.Task[tuple[ChatSource, VoiceSession]]) -> None:
        self._openings.discard(opening)
        if not opening.cancelled():
            opening.exception()  # A turn that waits for it reports it; else nobody does.

    async def _open_alone(self, script: int) -> tuple[ChatSource, VoiceSession]:
        async with self._one_opens:
            return await self._open(script)

    async def _open(self, script: int) -> tuple[ChatSource, VoiceSession]:
        bank = await asyncio.to_thread(self._options.bank.value)
        if self._session is None:
            self._speaker = await choose_speaker(self._options.speaker)
            self._router = stream.CueRouter(bank, self._mixer)
            self._session = VoiceSession(
                mixer=self._mixer,
                router=self._router,
                speaker=self._speaker,
                sink=self.line,
                clock=self._clock,
                frame_samples=_FRAME_SAMPLES,
                lead_ms=_FRAME_MS,
                history=self._history,
                on_event=self._relay,
            )
        elif bank is not self._bank:
            self._router.use_mixer(self._mixer, bank)
        self._bank = bank
        if script not in self._sources:
            opened = self._options.targets[script].opened(self._arrival.mark)
            self._sources[script] = await self._resources.enter_async_context(opened)
        return self._sources[script], self._session

    async def _drop_session(self) -> None:
        self._session, speaker, self._speaker = None, self._speaker, None
        if speaker is not None:
            await speaker.aclose()

    # Events for the page.

    async def _events(self, source: ChatSource, script: int) -> AsyncGenerator[ServiceEvent, None]:
        """Events of the answer, with messages to the page of what the session does not report."""
        tools = self._options.targets[script].tools or None
        async with aclosing(source.chat(list(self._history.messages), tools=tools)) as events:
            async for event in events:
                if isinstance(event, ToolCallStart):
                    self.line.tell("live.call", tool_name=event.tool_name)
                elif isinstance(event, ToolsLeftOut) and self._left_out != event:
                    self._left_out = event
                    self.line.tell("live.note", text=f"tools {told_of(event)}")
                yield event

    def _relay(self, event: dict[str, Any]) -> None:
        fields = dict(event)
        self.line.tell(fields.pop("type"), **fields)

    def _tell_end(self, record: TurnRecord | None, failure: str | None) -> None:
        self.line.end_turn()
        sounded = [] if record is None else record.sounded
        self.line.tell(
            "live.end",
            failure=failure,
            interrupted=record is None or record.interrupted,
            cues=[
                {"cue": each.cue, "onset_s": each.onset_s, "delay_ms": each.delay_ms, "cause": cause_of(each)}
                for each in sounded
            ],
        )


class Line:
    """Delivers the frames of a session (a `Sink`) and events to a page in order, each with its `turn` and position.

    `overflowed` is set when 10 s of sound wait: the page does not read. Everything after is dropped.
    """

    def __init__(self, mixer: Mixer) -> None:
        self.turn = 0
        self.overflowed = asyncio.Event()
        self._mixer = mixer
        self._waiting: asyncio.Queue[bytes | str] = asyncio.Queue(_MOST_WAITING)

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Take one frame."""
        header = self._header(self._mixer.position - len(mixed), _rms(mixed), _rms(speech))
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


def _rms(samples: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
