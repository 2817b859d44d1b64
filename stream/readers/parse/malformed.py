"""Skipping what belongs to a call that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.readers.parse.markers import normalize
from stream.readers.parse.shapes import Run, Shape
from stream.readers.parse.tape import CutOff, Reading

if TYPE_CHECKING:
    from stream.readers.dialects import Dialect
    from stream.readers.machine import TextMachine

__all__ = ["skip_malformed"]

_BRACKET_LINE = Shape("\n", Run(r"[ \t]*"), Run(r"[}\]]"), Run(r"[}\],; \t]*"), "\n")
_LONGEST_DETOUR = 4096  # how far behind the end of its line a lost closing marker is looked for, characters


def skip_malformed(machine: TextMachine, row: Dialect) -> Reading[None]:
    """Skip what belongs to a call that cannot be read: to its closing marker, else to the end of the line.

    Behind the end of the line the closing marker may still come, so text is held there for a while.
    """
    behind = 0
    while behind < _LONGEST_DETOUR:
        match = machine.table.recovery.search(machine.buffer, machine.position)
        end = min(match.start() if match else len(machine.buffer), machine.position + _LONGEST_DETOUR - behind)
        behind += _skip(machine, end - machine.position)
        if match is None or end < match.start():
            if behind < _LONGEST_DETOUR:
                yield from _more_or_release(machine)
            continue
        marker = normalize(match.group())
        if marker in row.closers:
            machine.held.clear()
            machine.position += len(match.group())
            return
        if marker == "\n":
            if not row.closers:
                yield from _bracket_lines(machine)
                return
            machine.recording = True
            behind += _skip(machine, 1)
            continue
        found = machine.row_at(match)
        if found is None:
            yield from _more_or_release(machine)
        elif (found.weak and not found.fence) or not (found.calls or found.token or found.fence):
            behind += _skip(machine, len(match.group()))
        else:
            break
    machine.release()


def _skip(machine: TextMachine, size: int) -> int:
    machine.take(size)
    return size if machine.recording else 0


def _more_or_release(machine: TextMachine) -> Reading[None]:
    try:
        yield from machine.more()
    except CutOff:
        machine.take_to(None)
        machine.release()
        raise


def _bracket_lines(machine: TextMachine) -> Reading[None]:
    """Skip lines that hold nothing but the closing brackets of a bare object that cannot be read."""
    while found := (yield from machine.test(_BRACKET_LINE)):
        machine.position = found[1].end() - 1
