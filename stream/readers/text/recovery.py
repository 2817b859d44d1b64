"""Calls that cannot be read: where the text goes on after one."""

from __future__ import annotations

from stream.readers.text.dialect import CutOff, Dialect, Reading
from stream.readers.text.dialect_table import Table
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import Run, Shape, normalize

__all__ = ["skip_malformed"]

_BRACKET_LINE = Shape("\n", Run(r"[ \t]{0,256}"), Run(r"[}\]]"), Run(r"[}\],; \t]{0,256}"), "\n")
_LONGEST_DETOUR = 4096  # how far after its line the closing marker is searched for, characters


def skip_malformed(parser: Parser, row: Dialect, table: Table) -> Reading[None]:
    """End a call that cannot be read, and skip its rest: to its closing marker, else to the end of the line.

    The closing marker, or the end of the fence around the call, may still come after that line, so text is held there
    for up to `_LONGEST_DETOUR` characters.
    """
    draft, parser.draft = parser.draft or parser.new_draft(), None
    parser.commit()
    parser.sink.finish(draft.call, "malformed", draft.arguments or "")
    try:
        yield from _skip_rest(parser, row, table)
    except CutOff:
        parser.take_to(None)
        parser.release()
        raise


def _skip_rest(parser: Parser, row: Dialect, table: Table) -> Reading[None]:
    detour = 0
    while detour < _LONGEST_DETOUR:
        match = table.recovery.search(parser.buffer, parser.position)
        end = match.start() if match else len(parser.buffer)
        if parser.recording:
            end = min(end, parser.position + _LONGEST_DETOUR - detour)
        detour += parser.recording * (end - parser.position)
        parser.take(end - parser.position)
        if match is None or end < match.start():
            if detour < _LONGEST_DETOUR:
                yield from parser.more()
            continue
        marker = normalize(match.group())
        if marker in row.closers:
            parser.held.clear()
            parser.position += len(match.group())
            return
        if marker == "\n":
            if not (row.closers or parser.fence):
                # Lines that hold nothing but the closing brackets of a bare object belong to it.
                while brackets := (yield from parser.test(_BRACKET_LINE)):
                    parser.position = brackets[1].end() - 1
                return
            parser.recording = True
            detour += 1
            parser.take(1)
            continue
        found = table.row_at(match)
        if found is None:
            yield from parser.more()
        elif found.fence and parser.fence and (yield from parser.accept(parser.fence, after_space=False)):
            parser.held.clear()
            parser.fence, detour = "", 0
        elif (found.weak and not found.fence) or not (found.calls or found.token or found.fence):
            detour += parser.recording * len(match.group())
            parser.take(len(match.group()))
        else:
            break
    parser.release()
