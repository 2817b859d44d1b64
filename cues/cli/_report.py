"""Report of a finished turn."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from cues.cli._terminal import harmless
from cues.cli.live.timeline import print_timeline
from stream.events import StreamFailed

if TYPE_CHECKING:
    from cues.cli.live.turn import TurnReport

__all__ = ["report"]


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
