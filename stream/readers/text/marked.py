"""Blocks with a marker of their own: the marker, what must follow it, and the body that begins there."""

from __future__ import annotations

from functools import lru_cache

from stream.readers.text.dialect import CutOff, Dialect, NotACall, Reading, Unreadable
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import SPACE, Run, Shape, marker_pattern, shape_of
from stream.readers.text.tags import BLOCKS, tag_of

__all__ = ["read_marked"]

_AHEAD = Shape(SPACE, Run(r"\S"))
_UNKNOWN_TAG = Shape(SPACE, "<", Run(r"[A-Za-z]"))  # of a form that is not known


@lru_cache(maxsize=64)
def _empty_blocks(row: Dialect) -> list[Shape]:
    """Return what may follow the marker of a block that holds no call."""
    ends = [closer for closer in row.closers if len(closer) > 1]
    bodies: tuple[str, ...] = ("", "{}", "[]")
    return [Shape(SPACE, body, SPACE, end) for end in ends for body in bodies] if ends else [Shape(SPACE, "[]")]


def read_marked(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a marker, once or doubled, what must follow it, and the body that begins there."""
    fresh = parser.line.fresh
    marker = parser.take(size)
    while (ahead := (yield from parser.test(_AHEAD))) and ahead[1].group(2) == marker[0]:
        if not (yield from parser.read(shape_of(SPACE, marker))):
            break
    shapes, opening = [shape for shape, _ in row.heads], 0
    try:
        found = yield from parser.test(*shapes)
        if found is None and shapes:
            opening, fence = yield from parser.opens_fence()
            found = (yield from parser.test(*shapes, ahead=opening)) if opening else None
    except CutOff:
        cut = row.cut_after_name.match(parser.buffer, parser.position) if row.cut_after_name else None
        if cut:
            parser.new_draft().name = cut[1]
        raise
    if found and opening:
        parser.take(opening)
        parser.fence = fence
        parser.fenced, outer = True, parser.fenced  # a call of a tool that was not declared is documentation
        try:
            yield from row.heads[found[0]][1](parser, row, found[1])
            yield from parser.end_fence()
        finally:
            parser.fenced = outer
    elif found:
        yield from row.heads[found[0]][1](parser, row, found[1])
    elif fresh and row.heads and not row.otherwise and (yield from parser.read(*_empty_blocks(row))):
        parser.commit()  # a block of no calls, alone in its line
    elif row.otherwise:
        yield from row.otherwise(parser, row, None)
    elif parser.ends_call(row):
        parser.commit()
    elif row.token:
        raise Unreadable
    elif fresh and not parser.fenced and _is_block(row) and (yield from parser.test(_UNKNOWN_TAG)):
        yield from _drop_unknown(parser, row)
    else:
        raise NotACall


def _is_block(row: Dialect) -> bool:
    tag = tag_of(row.markers[0])
    return tag is not None and tag.word in BLOCKS


def _drop_unknown(parser: Parser, row: Dialect) -> Reading[None]:
    """Read a block in tags of no known form as a malformed call, to its closing marker, or to an empty line."""
    call, parser.draft = parser.new_draft().call, None
    parser.commit()
    parser.sink.finish(call, "malformed")
    yield from parser.skip_space()
    _, marker = yield from parser.find(*marker_pattern(*row.closers, "\n\n"), 0)
    if marker in row.closers:
        parser.take(len(marker))
