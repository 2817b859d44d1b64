"""The conversation of one page: a question, the model's stream, a session that speaks it, frames to the page."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import stream
from cues import Mixer
from cues.cli.live.browser.line import Line
from cues.cli.live.timeline import cause_of
from cues.cli.live.turn import Arrival
from stream.clock import WallClock
from stream.events import ToolCallStart
from stream.session import ChatHistory, VoiceSession
from stream.speech import choose_speaker
from stream.speech.speaker import SAMPLE_RATE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from pydantic import BaseModel

    from cues.cli.live.turn import Target
    from cues.library.bank import Bank
    from stream.events import ServiceEvent
    from stream.services.source import ChatSource
    from stream.session.record import TurnRecord
    from stream.speech.speaker import Speaker

__all__ = ["Conversation", "Setup"]

_FRAME_SAMPLES, _FRAME_MS = 480, 20.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings that the conversations of all pages share: a model for each script, the speaker, the system prompt.

    `bank` returns the cues; it is asked at the start of each turn, so that a changed pack is heard at once.
    """

    targets: Sequence[Target]
    bank: Callable[[], Bank]
    speaker: str = "auto"
    system: str = ""


class Conversation:
    """Answers a page's questions, one after the other; leave the context to end it.

    A new question interrupts the answer to the last one. The mixer, the speaker and the history stay; each turn has its
    own router and session.
    """

    def __init__(self, setup: Setup, clock: WallClock | None = None) -> None:
        self._setup, self._clock = setup, clock or WallClock()
        self._mixer = Mixer(SAMPLE_RATE)
        self.line = Line(self._mixer)
        self._history = ChatHistory(setup.system)
        self._arrival = Arrival(self._clock)
        self._resources = AsyncExitStack()
        self._sources: dict[int, ChatSource] = {}
        self._speaker: Speaker | None = None
        self._session: VoiceSession | None = None
        self._turns: list[asyncio.Task[Any]] = []
        self._number = 0

    async def __aenter__(self) -> Self:
        # While the user reads the page. A failure is reported by the first turn, which tries again.
        self._turns = [asyncio.create_task(self._open(script=0))]
        return self

    async def __aexit__(self, *_: object) -> None:
        for turn in self._turns:
            turn.cancel()
        await asyncio.gather(*self._turns, return_exceptions=True)
        await self._drop_speaker()
        await self._resources.aclose()
        self._mixer.close()

    def ask(self, text: str, script: int = 0) -> None:
        """Start to answer a question, after the answer under way has faded out; `ValueError` for an unknown script."""
        if not 0 <= script < len(self._setup.targets):
            raise ValueError(f"script is {script}; there are {len(self._setup.targets)}, from 0 on")
        self.interrupt()
        self._turns = [turn for turn in self._turns if not turn.done()]
        self._turns.append(asyncio.create_task(self._after(tuple(self._turns), self._number, text, script)))

    def interrupt(self) -> None:
        """Barge in: the answer under way fades out, and questions that wait are dropped."""
        self._number += 1
        if self._session is not None:
            self._session.barge_in()

    async def answered(self) -> None:
        """Wait until every question asked so far is answered or dropped."""
        await asyncio.wait(self._turns)

    async def _after(self, earlier: Sequence[asyncio.Task[Any]], number: int, text: str, script: int) -> None:
        if earlier:
            await asyncio.wait(earlier)
        if number != self._number:
            return
        self.line.turn = number
        self.line.tell("live.turn", text=text)
        failure: str | None = None
        record: TurnRecord | None = None
        try:
            record = await self._answer(number, text, script)
        except Exception as error:
            logger.exception("turn %d failed", number)
            failure = f"{type(error).__name__}: {error}"
        finally:
            self._session = None
            self._tell_end(record, failure)
        if record is None or record.failure is not None:
            await self._drop_speaker()  # The next turn starts a new one.

    async def _answer(self, number: int, text: str, script: int) -> TurnRecord | None:
        source, speaker = await self._open(script)
        bank = await asyncio.to_thread(self._setup.bank)
        if number != self._number:
            return None  # Interrupted before the session began.
        self._history.add("user", text)
        self._session = VoiceSession(
            mixer=self._mixer,
            router=stream.CueRouter(bank, self._mixer),
            speaker=speaker,
            sink=self.line,
            clock=self._clock,
            frame_samples=_FRAME_SAMPLES,
            lead_ms=_FRAME_MS,
            history=self._history,
            on_event=self._relay,
        )
        return await self._session.run(self._events(source, script), bytes_s=lambda: self._arrival.last_s)

    async def _open(self, script: int) -> tuple[ChatSource, Speaker]:
        if self._speaker is None:
            self._speaker = await choose_speaker(self._setup.speaker)
        if script not in self._sources:
            opened = self._setup.targets[script].opened(self._arrival.mark)
            self._sources[script] = await self._resources.enter_async_context(opened)
        return self._sources[script], self._speaker

    async def _drop_speaker(self) -> None:
        speaker, self._speaker = self._speaker, None
        if speaker is not None:
            await speaker.aclose()

    # Events for the page.

    async def _events(self, source: ChatSource, script: int) -> AsyncGenerator[ServiceEvent, None]:
        """Events of the answer, with a message to the page when a call begins; the session reports the other ones."""
        tools = self._setup.targets[script].tools or None
        async with aclosing(source.chat(list(self._history.messages), tools=tools)) as events:
            async for event in events:
                if isinstance(event, ToolCallStart):
                    self.line.tell("live.call", tool_name=event.tool_name)
                yield event

    def _relay(self, event: BaseModel) -> None:
        fields = event.model_dump()
        self.line.tell(fields.pop("type"), **fields)

    def _tell_end(self, record: TurnRecord | None, failure: str | None) -> None:
        self.line.end_turn()
        sounded = [] if record is None else record.sounded
        self.line.tell(
            "live.end",
            failure=failure if record is None else record.failure,
            interrupted=record is None or record.interrupted,
            late=0 if record is None else record.underruns,
            cues=[
                {"cue": each.cue, "onset_s": each.onset_s, "delay_ms": each.delay_ms, "cause": cause_of(each)}
                for each in sounded
            ],
        )
