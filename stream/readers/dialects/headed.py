"""Calls whose name stands in a header of its own, before the arguments, and two notations with their own braces."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from stream.readers.parse.markers import marker_pattern
from stream.readers.parse.shapes import NAME, SPACE, Run, Shape
from stream.readers.parse.tape import Reading, Unreadable

if TYPE_CHECKING:
    from stream.readers.dialects import Dialect
    from stream.readers.machine import TextMachine

__all__ = ["BRACES", "NAMED", "read_braces", "read_header", "read_keyed_objects", "read_named"]

NAMED = Shape(SPACE, NAME, (["[ARGS]"], ["[CALL_ID]"], ["{"]))
BRACES = Shape(SPACE, "call:", NAME, "{")

_CALL_ID = Shape("[CALL_ID]", Run(r"[^\[\]{}\s]{1,128}"), (["[ARGS]"], ["{"]))
_HEADER_END = marker_pattern("<|tool_call_argument_begin|>", "<|tool_sep|>", "<|tool_call_end|>", "<|tool_calls_end|>")
_NUMBER = re.compile(r":\d+\Z")  # of the call, behind its name
_TITLE_LINE = Shape(Run(r"[^\n<>{}]{1,128}"), "\n")
_FENCE = Shape(SPACE, "```", Run(r"[a-z]{0,8}"), Run(r"\s{1,8}"))
_FENCE_END = Shape(SPACE, "```")
_LONGEST_HEADER = 200


def read_named(machine: TextMachine, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `name[CALL_ID]id[ARGS]{…}`, whose inner markers may be missing."""
    machine.take(match.end(2) - machine.position)
    draft = machine.call(match.group(2))
    identity = yield from machine.test(_CALL_ID)
    if identity:
        machine.take(identity[1].end(1) - machine.position)
        draft.call.id = identity[1].group(1)
    yield from machine.accept("[ARGS]")
    yield from machine.json_arguments(draft)


def read_header(machine: TextMachine, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `name` or `functions.name:0`, a separator, and the arguments, which may stand in a fence."""
    header, separator = yield from machine.find(*_HEADER_END, _LONGEST_HEADER)
    if len(header) > _LONGEST_HEADER or separator.endswith("end|>"):
        raise Unreadable
    machine.take(len(separator))
    header = header.strip()
    if separator == "<|tool_sep|>":
        # The header may be no more than the kind of call; then the name stands behind the separator.
        title = (yield from machine.read(_TITLE_LINE)) if header == "function" else None
        draft = machine.call(title.group(1) if title else header)
    else:
        draft = machine.new_draft()
        draft.call.id = header
        draft.name = _NUMBER.sub("", header)
        machine.announce(draft)
    if (yield from machine.skip_space()) == "<":  # nothing before the closing marker: no arguments
        machine.settle(draft, "")
        return
    fence = yield from machine.read(_FENCE)
    yield from machine.json_arguments(draft)
    if fence:
        yield from machine.read(_FENCE_END)


def read_keyed_objects(machine: TextMachine, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `[{"name": {arguments}}, …]`."""
    yield from machine.skip_space()
    machine.take(1)
    array = machine.turn.new_array()
    while (yield from machine.skip_space()) != "]":
        if not (yield from machine.accept("{")) or (yield from machine.skip_space()) != '"':
            raise Unreadable
        draft = machine.call((yield from machine.json_scalar()), array)
        yield from machine.skip_space()
        if not (yield from machine.accept(":")):
            raise Unreadable
        yield from machine.json_arguments(draft)
        yield from machine.skip_space()
        yield from machine.accept("}")
        yield from machine.skip_space()
        yield from machine.accept(",")
    machine.take(1)


# --- braces with bare keys ----------------------------------------------------------------------------------------

_QUOTES = ("<escape>", '<|"|>')
_QUOTE_ENDS = {quote: marker_pattern(quote) for quote in _QUOTES}
_KEY = Shape(SPACE, Run(r"[^\s:,{}\[\]<>]{1,128}"), SPACE, ":")
_QUOTED_KEY = tuple(Shape(SPACE, quote, Run(r"[^<>{}]{0,128}"), quote, SPACE, ":") for quote in _QUOTES)
_BARE = Run(r"[^,{}\[\]<>]{1,400}")
_BARE_VALUE = Shape(_BARE, ([","], ["}"], ["]"], ["<"]))
_DEEPEST = 100
_WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}


def read_braces(machine: TextMachine, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `call:name{key:<escape>text<escape>,n:1}`."""
    machine.take(match.end(2) + 1 - machine.position)
    draft = machine.call(match.group(2))
    value = yield from _members(machine, 0)
    machine.settle(draft, json.dumps(value, ensure_ascii=False))


def _members(machine: TextMachine, depth: int) -> Reading[dict[str, Any]]:
    found: dict[str, Any] = {}
    while True:
        if (yield from machine.skip_space()) == "}":
            machine.take(1)
            return found
        key = yield from machine.test(_KEY, *_QUOTED_KEY)
        if not key:
            raise Unreadable
        machine.take(len(key[1].group()))
        found[key[1].group(2)] = yield from _value(machine, depth)
        yield from _comma(machine, "}")


def _comma(machine: TextMachine, closer: str) -> Reading[None]:
    yield from machine.skip_space()
    if not (yield from machine.accept(",")) and (yield from machine.peek()) != closer:
        raise Unreadable


def _value(machine: TextMachine, depth: int) -> Reading[Any]:
    if depth > _DEEPEST:
        raise Unreadable
    char = yield from machine.skip_space()
    if char == "<":
        return (yield from _quoted(machine))
    if char == "{":
        machine.take(1)
        return (yield from _members(machine, depth + 1))
    if char == "[":
        machine.take(1)
        values = []
        while (yield from machine.skip_space()) != "]":
            values.append((yield from _value(machine, depth + 1)))
            yield from _comma(machine, "]")
        machine.take(1)
        return values
    return (yield from _bare(machine))


def _quoted(machine: TextMachine) -> Reading[str]:
    for quote in _QUOTES:
        if (yield from machine.accept(quote)):
            text, _ = yield from machine.find(*_QUOTE_ENDS[quote], machine.max_argument_chars)
            machine.take(len(quote))
            return text
    raise Unreadable


def _bare(machine: TextMachine) -> Reading[Any]:
    found = yield from machine.test(_BARE_VALUE)
    if not found:
        raise Unreadable
    text = machine.take(len(found[1].group(1))).strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def read_section(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read the marker of a section that holds calls; each of them has a marker of its own."""
    machine.take(size)
    yield from machine.skip_space()
