"""One turn from a model server to a WAV file, for `cues demo` and `cues speak`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import cues
import stream
from cues.cli._files import TurnFiles
from cues.cli._records import bank_of
from cues.cli.live.picture import draw_turn, import_matplotlib
from cues.cli.live.sound_device import LEAD_MS, Sinks, SoundDevice
from cues.errors import MissingFeatureError
from stream.events import Finish, StreamFailed
from stream.session import VoiceSession
from stream.speech import choose_speaker
from stream.speech.speaker import SAMPLE_RATE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from stream.clock import WallClock
    from stream.events import ServiceEvent
    from stream.services.source import ChatSource
    from stream.session.record import TurnRecord

__all__ = ["Arrival", "Setup", "Target", "TurnReport", "run_turn"]

_WITHOUT_DEVICE = "without --play the answer goes into files alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model to ask; `base_url`, `model`, `api` and `api_key` as in `stream.connect`.

    The tools are offered to the model; they run here, in at most `rounds` rounds, if all have a function. `source`
    makes another source than `stream.connect` does, from a function to call with all input.
    """

    base_url: str
    model: str
    api: Literal["auto", "chat", "ollama"] = "auto"
    api_key: str | None = None
    tools: Sequence[stream.Tool] = ()
    rounds: int | None = None
    source: Callable[[Callable[[Any], None]], ChatSource] | None = None

    @contextlib.asynccontextmanager
    async def opened(self, tap: Callable[[Any], None]) -> AsyncIterator[ChatSource]:
        """The source of answers, ready: the first request of a process imports modules for 0.2 s."""
        async with contextlib.AsyncExitStack() as stack:
            if self.source is not None:
                source = self.source(tap)
            else:
                connection = stream.connect(self.base_url, self.model, api=self.api, api_key=self.api_key, tap=tap)
                await stack.enter_async_context(connection)
                await connection.learn()
                source = connection
            runs_tools = bool(self.tools) and all(tool.function is not None for tool in self.tools)
            yield stream.ToolRunner(source, self.tools, rounds=self.rounds) if runs_tools else source


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of a turn: stream time, folder and name of the files, the speaker and its language, the pack.

    With `play`, the turn also sounds on the loudspeakers; with `keeps_interrupted`, an interrupted one keeps its files.
    """

    clock: WallClock
    out: Path
    stem: str
    speaker: str
    pack: Path | None
    language: str | None = None
    play: bool = False
    keeps_interrupted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """A finished turn: its record, the files, the speaker and the server."""

    journal: TurnRecord
    files: TurnFiles
    speaker: str
    server: str
    notes: tuple[str, ...] = ()


class Arrival:
    """Arrival time of the latest chunk of the model's stream, on the turn's clock."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self.last_s: float | None = None

    def mark(self, _: object) -> None:
        """Record the arrival of a chunk."""
        self.last_s = self._clock.now()


@contextlib.contextmanager
def _barge_in_at_ctrl_c(session: VoiceSession) -> Iterator[None]:
    """Make the first Ctrl-C a barge-in, and the second end the program."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        session.barge_in()

    with contextlib.suppress(NotImplementedError, RuntimeError):  # not on Windows, not outside of the main thread
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)


def _limits(speed: float) -> stream.Limits:
    """The usual limits; in fast stream time, a live model and its tools need as many seconds more."""
    usual = stream.Limits()
    factor = max(speed, 1.0)
    return stream.Limits(model_s=factor * usual.model_s, tool_s=factor * usual.tool_s, speech_s=factor * usual.speech_s)


async def run_turn(target: Target, messages: Sequence[Mapping[str, Any]], setup: Setup, *, title: str) -> TurnReport:
    """Ask the model, speak its answer with cues, and write the files."""
    bank = bank_of(setup.pack)
    clock, arrival = setup.clock, Arrival(setup.clock)
    importing: list[asyncio.Future[None]] = []
    async with contextlib.AsyncExitStack() as stack:
        mixer = stack.enter_context(contextlib.closing(cues.Mixer(SAMPLE_RATE)))
        speaker = await choose_speaker(setup.speaker, language=setup.language)
        stack.push_async_callback(speaker.aclose)
        device = stack.enter_context(SoundDevice(SAMPLE_RATE, _WITHOUT_DEVICE)) if setup.play else None
        files = stack.enter_context(TurnFiles(setup.out, setup.stem, SAMPLE_RATE))
        session = VoiceSession(
            mixer=mixer,
            router=stream.CueRouter(bank, mixer),
            speaker=speaker,
            sink=files if device is None else Sinks(device, files),
            clock=clock,
            limits=_limits(clock.speed),
            lead_ms=LEAD_MS if device is not None else 10.0,
        )
        stack.enter_context(_barge_in_at_ctrl_c(session))
        source = await stack.enter_async_context(target.opened(arrival.mark))
        events = source.chat(messages, tools=target.tools or None)
        if device is None:  # Importing in a thread holds up the loop for 30 ms, and a device with it.
            events = _then_import_matplotlib(events, importing)
        is_whole = True
        try:
            journal = await session.run(events, bytes_s=lambda: arrival.last_s)
            is_whole = not journal.interrupted
        except (asyncio.CancelledError, SystemExit):  # SIGTERM
            is_whole = False
            raise
        finally:
            files.kept = (setup.keeps_interrupted or is_whole) and _is_worth_keeping(session.journal)
    await asyncio.gather(*importing)
    turn = TurnReport(journal=journal, files=files, speaker=speaker.name, server=target.base_url)
    return _with_record(turn, {"model": target.model, "speed": clock.speed}, title) if files.kept else turn


async def _then_import_matplotlib(
    events: AsyncGenerator[ServiceEvent, None], importing: list[asyncio.Future[None]]
) -> AsyncGenerator[ServiceEvent, None]:
    """The events; then, while the last words are spoken, a thread imports the modules for the picture."""
    async with contextlib.aclosing(events):
        async for event in events:
            yield event
    importing.append(asyncio.get_running_loop().run_in_executor(None, import_matplotlib))


def _is_worth_keeping(journal: TurnRecord) -> bool:
    """Whether a word or a cue for an event was played, or the answer is complete."""
    if journal.heard or any(not isinstance(sounded.seen.event, StreamFailed) for sounded in journal.sounded):
        return True
    return journal.failure is None and any(isinstance(seen.event, Finish) for seen in journal.seen)


def _with_record(turn: TurnReport, about: Mapping[str, Any], title: str) -> TurnReport:
    """The turn, after its record and picture are written; a missing package for the picture becomes a note."""
    turn.files.write_json({"speaker": turn.speaker, **about, **turn.journal.as_dict()})
    try:
        draw_turn(turn.journal, *turn.files.read_sound(), f"{title}; speaker: {turn.speaker}", turn.files.png)
    except MissingFeatureError as error:
        return replace(turn, notes=(str(error),))
    return turn
