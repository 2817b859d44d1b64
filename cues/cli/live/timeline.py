"""Timeline of a turn: a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cues.cli._terminal import console, harmless
from stream.events import Finish, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult

if TYPE_CHECKING:
    from stream.session.record import Seen, Sounded, TurnRecord

__all__ = ["cause_of", "print_timeline"]


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
    text: list[str] = []
    text_at_s = 0.0
    for seen in journal.seen:
        if isinstance(seen.event, TextDelta):
            text_at_s = text_at_s if text else seen.known_s
            text.append(seen.event.text)
            continue
        if text:
            rows.append((text_at_s, "text", "".join(text).strip()))
            text = []
        if (row := _event_row(seen)) is not None:
            rows.append(row)
    if text:
        rows.append((text_at_s, "text", "".join(text).strip()))
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
    match sounded.seen.event:
        case ToolResult():
            return "its result"
        case StreamFailed():
            return "the failure"
        case _:
            return "the bytes of its call"


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
