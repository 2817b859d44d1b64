"""One turn from a model server to a WAV: what `cues demo` and `cues speak` have in common."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import cues
import stream
from cues.cli._files import TurnFiles
from cues.cli._records import bank_of
from cues.cli.live.sound_device import LEAD_MS, Sinks, SoundDevice
from cues.cli.live.timeline import draw_timeline
from cues.errors import MissingFeatureError
from stream.events import Finish, StreamFailed
from stream.session import VoiceSession
from stream.speech.choice import choose_speaker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stream.clock import WallClock
    from stream.session.record import TurnRecord

__all__ = ["Request", "Setup", "TurnReport", "run_turn"]

SAMPLE_RATE = 24000
_WITHOUT_DEVICE = "without --play the answer goes into files alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the model is asked.

    Attributes
    ----------
    base_url, model : the server and the model's name there.
    endpoint : `"openai"`, `"ollama"`, or `"auto"` to go by the address.
    messages : the conversation so far, OpenAI's form.
    tools : what is offered to the model; those with a function are run when it calls them.
    """

    base_url: str
    model: str
    messages: Sequence[Mapping[str, Any]]
    endpoint: Literal["auto", "openai", "ollama"] = "auto"
    tools: Sequence[stream.Tool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How the answer is spoken.

    Attributes
    ----------
    clock : stream time.
    out, stem : folder and name of the files.
    speaker : one of `stream.speech.choice.SPEAKERS`.
    pack : folder with cues that replace the built-in ones, if any.
    play : whether it goes to the loudspeakers too, while it is made.
    keeps_interrupted : whether the beginning of a turn that was interrupted is worth files.
    """

    clock: WallClock
    out: Path
    stem: str
    speaker: str
    pack: Path | None
    play: bool = False
    keeps_interrupted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """A finished turn: its record, the files, the speaker that was taken, and the server that answered."""

    journal: TurnRecord
    files: TurnFiles
    speaker: str
    server: str
    notes: tuple[str, ...] = field(default=())


class Arrival:
    """When the last piece of the model's stream came, on the turn's clock."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self.last_s: float | None = None

    def mark(self, _: object) -> None:
        """Note that a piece has just come."""
        self.last_s = self._clock.now()


@contextlib.contextmanager
def _barge_in_at_ctrl_c(session: VoiceSession) -> Iterator[None]:
    """Let the first Ctrl-C interrupt the assistant as a user's voice would, and the second end the program."""
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


async def run_turn(request: Request, setup: Setup, *, title: str, api_key: str | None = None) -> TurnReport:
    """Ask the model, speak what it answers with cues, and leave the files."""
    bank = bank_of(setup.pack)
    mixer = cues.Mixer(SAMPLE_RATE)
    clock, arrival = setup.clock, Arrival(setup.clock)
    connection = stream.connect(
        request.base_url, request.model, endpoint=request.endpoint, api_key=api_key, tap=arrival.mark
    )
    runs_tools = bool(request.tools) and all(tool.function is not None for tool in request.tools)
    source = stream.ToolRunner(connection, request.tools) if runs_tools else connection
    speaker = await choose_speaker(setup.speaker)
    try:
        with contextlib.ExitStack() as stack:
            device = stack.enter_context(SoundDevice(SAMPLE_RATE, _WITHOUT_DEVICE)) if setup.play else None
            files = stack.enter_context(TurnFiles(setup.out, setup.stem, SAMPLE_RATE))
            session = VoiceSession(
                mixer=mixer,
                router=stream.CueRouter(bank, mixer),
                speaker=speaker,
                sink=files if device is None else Sinks(device, files),
                clock=clock,
                lead_ms=LEAD_MS if device is not None else 10.0,
            )
            stack.enter_context(_barge_in_at_ctrl_c(session))
            async with connection:
                # Asked before anyone listens: the first request of a process imports for a fifth of a second.
                await connection.learn()
                events = source.chat(request.messages, tools=request.tools or None)
                try:
                    journal = await session.run(events, bytes_s=lambda: arrival.last_s)
                finally:
                    wanted = setup.keeps_interrupted or not session.journal.interrupted
                    files.kept = wanted and _is_worth_keeping(session.journal)
    finally:
        await speaker.aclose()
        mixer.close()
    turn = TurnReport(journal=journal, files=files, speaker=speaker.name, server=request.base_url)
    return _with_record(turn, {"model": request.model, "speed": clock.speed}, title) if files.kept else turn


def _is_worth_keeping(journal: TurnRecord) -> bool:
    """Whether a word was heard, or a cue for something that the model did, or the answer came to its end."""
    if journal.heard or any(not isinstance(sounded.seen.event, StreamFailed) for sounded in journal.sounded):
        return True
    return journal.failure is None and any(isinstance(seen.event, Finish) for seen in journal.seen)


def _with_record(turn: TurnReport, about: Mapping[str, Any], title: str) -> TurnReport:
    """The turn with its record and its picture written; what is missing for the picture becomes a note."""
    turn.files.write_json({"speaker": turn.speaker, **about, **turn.journal.as_dict()})
    try:
        draw_timeline(turn.journal, turn.files.read_wav(), f"{title} — speaker: {turn.speaker}", turn.files.png)
    except MissingFeatureError as error:
        return replace(turn, notes=(str(error),))
    return turn
