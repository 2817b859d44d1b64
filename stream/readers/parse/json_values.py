"""JSON values in text that arrives in pieces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stream.readers.parse.dialect import CutOff, Reading, Unreadable
from stream.readers.parse.scanner import JsonScanner, Pieces

if TYPE_CHECKING:
    from stream.readers.parse.parser import Parser
    from stream.readers.parse.state import Draft

__all__ = ["json_arguments", "json_scalar", "json_value"]

_LONGEST_SCALAR = 1024  # a key, a name, an id


def json_value(parser: Parser, limit: int | None = None) -> Reading[str]:
    """Read a JSON value; return its text. Raises `Unreadable` if it is not JSON.

    Text past `limit` characters is dropped (see `Pieces`); None is the limit of arguments.
    """
    scanner = JsonScanner()
    pieces = Pieces(parser.max_argument_chars if limit is None else limit)
    while True:
        end = scanner.scan(parser.buffer, parser.position)
        pieces.add(parser.take(end - parser.position))
        if scanner.done:
            return pieces.text
        if scanner.failed:
            raise Unreadable
        try:
            yield from parser.more()
        except CutOff:
            if not scanner.finish():
                raise


def json_scalar(parser: Parser) -> Reading[Any]:
    """Read a short JSON value, such as a key or an id; return what it stands for. Raises `Unreadable` for others."""
    text = yield from json_value(parser, _LONGEST_SCALAR)
    if len(text) > _LONGEST_SCALAR:
        raise Unreadable
    return json.loads(text, strict=False)


def json_arguments(parser: Parser, draft: Draft) -> Reading[None]:
    """Read the arguments of an announced call, which ends it; all but objects, strings and null are `Unreadable`."""
    if (yield from parser.skip_space()) not in '{"n':
        raise Unreadable
    draft.arguments = yield from json_value(parser)
    parser.settle(draft, draft.arguments)
