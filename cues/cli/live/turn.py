"""One turn from a model server to a WAV file, and its report, for `cues demo` and `cues speak`."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import click

import cues
import stream
from cues.cli._files import TurnFiles
from cues.cli._records import bank_of, print_json
from cues.cli._terminal import console, harmless
from cues.cli.live.picture import draw_turn
from cues.errors import MissingFeatureError
from stream.clock import WallClock
from stream.events import (
    Finish,
    ServiceEvent,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    ToolsLeftOut,
)
from stream.services.source import ChatSource
from stream.session import VoiceSession
from stream.session.turn_record import Sounded, TurnRecord
from stream.speech import choose_speaker
from stream.speech.speaker import SAMPLE_RATE
from stream.urls import shown_url

__all__ = ["Arrival", "Target", "cause_of", "print_timeline", "speak_turn", "told_of"]

_CAUSES: dict[type, str] = {ToolResult: "its result", StreamFailed: "the failure"}


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

    @property
    def shown(self) -> str:
        """The server's address without user, password and query; what stands in its place if `source` answers."""
        return self.base_url if self.source is not None else shown_url(self.base_url)

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


class Arrival:
    """Arrival time of the latest chunk of the model's stream, on the turn's clock."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self.last_s: float | None = None

    def mark(self, _: object) -> None:
        """Record the arrival of a chunk."""
        self.last_s = self._clock.now()


def _barge_in_at_ctrl_c(session: VoiceSession, stack: contextlib.AsyncExitStack) -> None:
    """Until `stack` unwinds, make the first Ctrl-C a barge-in, and the second end the program."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        session.barge_in()

    with contextlib.suppress(NotImplementedError, RuntimeError):  # not on Windows, not outside of the main thread
        loop.add_signal_handler(signal.SIGINT, interrupt)
        stack.callback(loop.remove_signal_handler, signal.SIGINT)


async def speak_turn(
    target: Target,
    messages: Sequence[Mapping[str, Any]],
    *,
    title: str,
    clock: WallClock,
    out: Path,
    stem: str,
    speaker: str,
    pack: Path | None,
    as_json: bool,
    keeps_interrupted: bool = True,
) -> None:
    """Ask the model, speak its answer with cues, and write the files `out`/`stem`.*, unless nothing was heard.

    Prints the timeline and the files, or only the reason of a failure; exits with 1 if the turn failed.
    """
    bank, arrival, factor, usual = bank_of(pack), Arrival(clock), max(clock.speed, 1.0), stream.Limits()
    async with contextlib.AsyncExitStack() as stack:
        mixer = stack.enter_context(contextlib.closing(cues.Mixer(SAMPLE_RATE)))
        voice = await choose_speaker(speaker)
        stack.push_async_callback(voice.aclose)
        files = stack.enter_context(TurnFiles(out, stem, SAMPLE_RATE))
        session = VoiceSession(
            mixer=mixer,
            router=stream.CueRouter(bank, mixer),
            speaker=voice,
            sink=files,
            clock=clock,
            # In fast stream time, a live model and its tools need as many seconds more.
            limits=stream.Limits(
                model_s=factor * usual.model_s, tool_s=factor * usual.tool_s, speech_s=factor * usual.speech_s
            ),
        )
        source = await stack.enter_async_context(target.opened(arrival.mark))
        _barge_in_at_ctrl_c(session, stack)  # Before the turn, the first Ctrl-C ends the program.
        events = source.chat(messages, tools=target.tools or None)
        is_whole = False
        try:
            journal = await session.run(events, bytes_s=lambda: arrival.last_s)
            is_whole = not journal.interrupted
        finally:
            files.kept = (keeps_interrupted or is_whole) and _is_worth_keeping(session.journal)
    if files.kept:
        files.write_json({"speaker": voice.name, "model": target.model, "speed": clock.speed, **journal.as_dict()})
        try:
            draw_turn(journal, bank, files.read_sound(), f"{title}; speaker: {voice.name}", files.png)
        except MissingFeatureError as error:
            click.echo(f"cues: {error}", err=True)
    elif journal.interrupted:
        raise KeyboardInterrupt
    _report(journal, files, voice.name, target.shown, as_json=as_json)


def _report(journal: TurnRecord, files: TurnFiles, speaker: str, server: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"speaker": speaker, **journal.as_dict()})
    elif files.kept:
        click.echo(f"speaker: {speaker}\n")
        print_timeline(journal)
        paths = (files.wav, files.speech_wav, files.png, files.json)
        names = harmless(", ".join(str(path) for path in paths if path.exists()))
        click.echo(f"\n{journal.output_samples / journal.sample_rate:.1f} s of sound: {names}")
    if journal.failure is not None:
        click.echo(f"cues: {harmless(_failure(journal, server, is_kept=files.kept))}", err=True)
        sys.exit(1)


def _is_worth_keeping(journal: TurnRecord) -> bool:
    """Whether a word or a cue for an event was played, or the answer is complete."""
    if journal.heard or any(not isinstance(sounded.seen.event, StreamFailed) for sounded in journal.sounded):
        return True
    return journal.failure is None and any(isinstance(seen.event, Finish) for seen in journal.seen)


def _failure(journal: TurnRecord, server: str, *, is_kept: bool) -> str:
    """The failure and its place, in one line."""
    last = journal.seen[-1].event if journal.seen else None
    if not isinstance(last, StreamFailed):
        return journal.failure or ""
    message = " ".join(last.message.split())
    if last.code == "connection" and not is_kept:
        message += " (`cues speak --replay FILE` works without a server)"
    if server in message:
        return message
    return f"{server}{f' answered HTTP {last.status}' if last.status else ''}: {message}"


def print_timeline(journal: TurnRecord) -> None:
    """Print the turn in order of time: text, calls, results, and each cue with its delay."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("", overflow="fold")
    for at_s, what, detail in sorted(_rows(journal), key=itemgetter(0)):
        table.add_row(f"{at_s:7.3f} s", what, harmless(" ".join(detail.split())))
    console().print(table)


def _rows(journal: TurnRecord) -> Iterator[tuple[float, str, str]]:
    for is_text, group in groupby(journal.seen, lambda seen: isinstance(seen.event, TextDelta)):
        together = list(group)
        if is_text:
            yield together[0].known_s, "text", "".join(getattr(seen.event, "text", "") for seen in together)
        else:
            yield from ((seen.known_s, *row) for seen in together if (row := _event_row(seen.event)))
    if journal.heard:
        first, last = journal.heard[0], journal.heard[-1]
        yield first.onset_samples / journal.sample_rate, "voice", f"begins with “{first.text}”"
        yield last.onset_samples / journal.sample_rate, "voice", f"last word “{last.text}”"
    for sounded in journal.sounded:
        delay_ms = max(sounded.delay_ms, 0.0)
        yield sounded.onset_s, "♪ cue", f"{sounded.cue}, {delay_ms:.1f} ms after {cause_of(sounded)}"
    if journal.interrupted:
        yield journal.output_samples / journal.sample_rate, "end", "interrupted"


def cause_of(sounded: Sounded) -> str:
    """The event that a cue announced, in words."""
    return _CAUSES.get(type(sounded.seen.event), "the bytes of its call")


def told_of(event: ToolsLeftOut) -> str:
    """The tools that the model was not offered, and why."""
    return f"not offered ({event.why}): {', '.join(event.tool_names)}"


def _event_row(event: ServiceEvent) -> tuple[str, str] | None:
    match event:
        case ToolCallStart(tool_name=name):
            return "call", f"{name} is being called"
        case ToolCallEnd(tool_name=name, arguments_json=arguments, status=status):
            return "call", f"{name} {arguments}" + ("" if status == "ok" else f" ({status})")
        case ToolResult(tool_name=name, is_error=is_error, content=content):
            return "result", f"{name} {'failed' if is_error else 'answered'}: {content}"
        case ToolsLeftOut():
            return "tools", told_of(event)
        case Finish(reason=reason):
            return "finish", reason
        case StreamFailed():
            return "failed", "the answer broke off"  # why is the last line of all, on standard error
        case _:
            return None
