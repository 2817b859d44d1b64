"""Calls that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.readers.text.dialect import CutOff, Dialect, Reading
from stream.readers.text.patterns import Run, Shape, normalize

if TYPE_CHECKING:
    from stream.readers.text.parser import Parser
    from stream.readers.text.table import Table

__all__ = ["skip_malformed"]

_BRACKET_LINE = Shape("\n", Run(r"[ \t]{0,256}"), Run(r"[}\]]"), Run(r"[}\],; \t]{0,256}"), "\n")
_LONGEST_DETOUR = 4096  # how far after its line the closing marker is searched for, characters


def skip_malformed(parser: Parser, row: Dialect, table: Table) -> Reading[None]:
    """End a call that cannot be read, and skip its rest: to its closing marker, else to the end of the line.

    The closing marker may still come after that line, so text is held there for up to `_LONGEST_DETOUR` characters.
    """
    draft, parser.draft = parser.draft or parser.new_draft(), None
    parser.commit()
    parser.sink.finish(draft.call, "malformed", draft.arguments or "")
    detour = 0
    while detour < _LONGEST_DETOUR:
        match = table.recovery.search(parser.buffer, parser.position)
        end = match.start() if match else len(parser.buffer)
        if parser.recording:
            end = min(end, parser.position + _LONGEST_DETOUR - detour)
        detour += _skip(parser, end - parser.position)
        if match is None or end < match.start():
            if detour < _LONGEST_DETOUR:
                yield from _more_or_release(parser)
            continue
        marker = normalize(match.group())
        if marker in row.closers:
            parser.held.clear()
            parser.position += len(match.group())
            return
        if marker == "\n":
            if not row.closers:
                # Lines that hold nothing but the closing brackets of a bare object belong to it.
                while brackets := (yield from parser.test(_BRACKET_LINE)):
                    parser.position = brackets[1].end() - 1
                return
            parser.recording = True
            detour += _skip(parser, 1)
            continue
        found = table.row_at(match)
        if found is None:
            yield from _more_or_release(parser)
        elif (found.weak and not found.fence) or not (found.calls or found.token or found.fence):
            detour += _skip(parser, len(match.group()))
        else:
            break
    parser.release()


def _skip(parser: Parser, size: int) -> int:
    parser.take(size)
    return size if parser.recording else 0


def _more_or_release(parser: Parser) -> Reading[None]:
    try:
        yield from parser.more()
    except CutOff:
        parser.take_to(None)
        parser.release()
        raise
