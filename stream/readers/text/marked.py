"""Blocks with a marker of their own: the marker, what must follow it, and the body that begins there."""

from __future__ import annotations

from functools import lru_cache

from stream.readers.text.dialect import CutOff, Dialect, NotACall, Reading, Unreadable
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import NAME, SPACE, Run, Shape, marker_pattern, shape_of
from stream.readers.text.tags import BLOCKS, PREFIX, tag_of

__all__ = ["read_marked"]

_AHEAD = Shape(SPACE, Run(r"\S"))
_WORDS_BELOW = Shape(Run(r"[ \t\r]{0,8}"), "\n", SPACE, Run(r"\w"))
_LIST_OF_CALLS = Shape(SPACE, "[", SPACE, NAME, "(", SPACE, ([")"], [Run(r"[^\W\d]\w{0,63}"), SPACE, "="]))
_KEY_WITHOUT_TAG = Shape(SPACE, Run(r"[\w.\-]{1,64}\s{0,4}[\w.\-]{0,64}\s{0,4}"), "</", PREFIX, "arg_key")
_BEFORE_NAME = r"\W{0,16}(?:(?:think|name|function|tool)\W{%d,8}){0,2}"
_NAMED = Shape(
    Run(rf"{_BEFORE_NAME % 1}(?!(?:think|name|function|tool)\W)", _BEFORE_NAME % 0), NAME, Run(r"(?=[^\w.\-/:])")
)
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
    elif _is_block(row) and not parser.fenced:
        yield from _read_unknown(parser, row, fresh=fresh)
    else:
        raise NotACall


def _read_unknown(parser: Parser, row: Dialect, *, fresh: bool) -> Reading[None]:
    """Read a block of no known form: drop a call, or only the tag if a list of calls or words follow."""
    if fresh and (yield from parser.test(_LIST_OF_CALLS)):
        parser.commit()
    elif (yield from _holds_a_call(parser, fresh=fresh)):
        yield from _drop_unknown(parser, row)
    elif fresh and (yield from parser.test(_WORDS_BELOW)):
        parser.commit()
    else:
        raise NotACall


def _holds_a_call(parser: Parser, *, fresh: bool) -> Reading[bool]:
    """Return whether the block begins with an unknown tag, a key's closing tag, or the name of a declared tool."""
    if (yield from parser.test(_KEY_WITHOUT_TAG)):
        return True
    if not fresh:
        return False
    named = yield from parser.test(_UNKNOWN_TAG, _NAMED)
    return named is not None and (named[0] == 0 or named[1].group(2).rstrip(":") in (parser.declared or ()))


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
