"""Report of a finished turn in the terminal, with its timeline as a table."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING

import click

from cues.cli._terminal import console, harmless
from stream.events import Finish, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult

if TYPE_CHECKING:
    from cues.cli.live.turn import TurnReport
    from stream.session.record import Seen, Sounded, TurnRecord

__all__ = ["cause_of", "print_timeline", "report"]

_CAUSES: dict[type, str] = {ToolResult: "its result", StreamFailed: "the failure"}


def report(turn: TurnReport, *, as_json: bool) -> None:
    """Print the timeline and the files; exit with code 1 if the turn failed.

    If it failed before any sound, print only the reason.
    """
    journal, files = turn.journal, turn.files
    if journal.interrupted and not files.kept:
        raise KeyboardInterrupt
    if as_json:
        click.echo(json.dumps({"speaker": turn.speaker, **journal.as_dict()}))
    elif files.kept:
        click.echo(f"speaker: {turn.speaker}\n")
        print_timeline(journal)
        names = ", ".join(str(file) for file in (files.wav, files.speech_wav, files.png, files.json) if file.exists())
        click.echo(f"\n{journal.output_samples / journal.sample_rate:.1f} s of sound: {harmless(names)}")
    for note in turn.notes:
        click.echo(f"cues: {harmless(note)}", err=True)
    if journal.failure is not None:
        click.echo(f"cues: {harmless(_failure(turn))}", err=True)
        sys.exit(1)


def _failure(turn: TurnReport) -> str:
    """The failure and its place, in one line."""
    last = turn.journal.seen[-1].event if turn.journal.seen else None
    if not isinstance(last, StreamFailed):
        return turn.journal.failure or ""
    message = " ".join(last.message.split())
    if last.code == "connection" and not turn.files.kept:
        message += "; is the server running? `cues speak --replay FILE` works without one"
    if turn.server in message:
        return message
    return f"{turn.server}{f' answered HTTP {last.status}' if last.status else ''}: {message}"


def print_timeline(journal: TurnRecord) -> None:
    """Print the turn in order of time: text, calls, results, and each cue with its delay."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("", overflow="fold")
    for at_s, what, detail in sorted(_rows(journal), key=lambda row: row[0]):
        table.add_row(f"{at_s:7.3f} s", what, harmless(" ".join(detail.split())))
    console().print(table)


def _rows(journal: TurnRecord) -> list[tuple[float, str, str]]:
    rows: list[tuple[float, str, str]] = []
    for is_text, group in itertools.groupby(journal.seen, lambda seen: isinstance(seen.event, TextDelta)):
        together = list(group)
        if is_text:
            text = "".join(seen.event.text for seen in together if isinstance(seen.event, TextDelta))
            rows.append((together[0].known_s, "text", text.strip()))
        else:
            rows += filter(None, map(_event_row, together))
    if journal.heard:
        first, last = journal.heard[0], journal.heard[-1]
        rows.append((first.onset_samples / journal.sample_rate, "voice", f"begins with “{first.text}”"))
        rows.append((last.onset_samples / journal.sample_rate, "voice", f"last word “{last.text}”"))
    rows += [
        (sounded.onset_s, "♪ cue", f"{sounded.cue}, {max(sounded.delay_ms, 0.0):.1f} ms after {cause_of(sounded)}")
        for sounded in journal.sounded
    ]
    if journal.interrupted:
        rows.append((journal.output_samples / journal.sample_rate, "end", "interrupted"))
    return rows


def cause_of(sounded: Sounded) -> str:
    """The event that a cue announced, in words."""
    return _CAUSES.get(type(sounded.seen.event), "the bytes of its call")


def _event_row(seen: Seen) -> tuple[float, str, str] | None:
    match seen.event:
        case ToolCallStart(tool_name=name):
            return seen.known_s, "call", f"{name} is being called"
        case ToolCallEnd(tool_name=name, arguments_json=arguments, status=status):
            return seen.known_s, "call", f"{name} {arguments}" + ("" if status == "ok" else f" ({status})")
        case ToolResult(tool_name=name, is_error=is_error, content=content):
            return seen.known_s, "result", f"{name} {'failed' if is_error else 'answered'}: {content}"
        case Finish(reason=reason):
            return seen.known_s, "finish", reason
        case StreamFailed():
            return seen.known_s, "failed", "the answer broke off"  # why is the last line of all, on standard error
        case _:
            return None
