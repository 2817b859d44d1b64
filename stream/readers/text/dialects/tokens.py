"""Calls and reasoning between tokens: pairs of start and end, channel marks, and message marks."""

from __future__ import annotations

import html
import re

from stream.readers.text.dialect import CutOff, Dialect, Draft, NotACall, Reading, Unreadable, Values
from stream.readers.text.dialects.json_calls import json_block
from stream.readers.text.dialects.reasoning import reasoning_block
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import NAME, SPACE, Part, Run, Shape, marker_pattern, normalize, shape_of
from stream.readers.text.tags import AFTER, ANY, BEFORE, pair_of

__all__ = ["BEGUN", "PAIRED", "ROWS"]

_CALLS = ("tool_call", "tool_request", "function_call")


# --- start, value and end ---------------------------------------------------------------------------------------------

_PAIRED = Shape(Run(r"[\w.\-/:]{1,64}"), Run(r"[ \t]{0,4}\r?"), (["\n"], ["<|"]))
# Of a call with an id, which stands first.
_IDENTIFIED = Shape("<|", ANY, ":name|>", SPACE, NAME, SPACE, "<|", ANY, ":args|>")
_PART = Shape("<|", ANY, (([":start|>"], [":begin|>"])))
_LONGEST_KEY = 256


def _read_pair(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `NAME`, and `<|Y:start|>key<|Y:value|>value<|Y:end|>` up to the closing token.

    Or read `ID<|X:name|>NAME<|X:args|>{…}`.
    """
    parser.take(match.end(2) - parser.position)
    draft = parser.new_draft()
    identified = yield from parser.read(_IDENTIFIED)
    draft.name = identified.group(3) if identified else match.group(1)
    draft.call.id = match.group(1) if identified else ""
    parser.announce(draft)
    if identified:
        yield from parser.arguments_or_none(draft)
        return
    values = Values(parser.max_argument_chars)
    while True:
        yield from parser.skip_space()
        if (yield from parser.read(shape_of(row.closers[0]))):
            break
        part = (yield from parser.expect(_PART)).group(1)
        middle, end = f"<|{part}:value|>", f"<|{part}:end|>"
        key, mark = yield from parser.find(*marker_pattern(middle, end), _LONGEST_KEY)
        if mark == end or len(key) > _LONGEST_KEY:
            raise Unreadable
        parser.take(len(mark))
        value, mark = yield from parser.find(*marker_pattern(end, row.closers[0]), values.left)
        if mark == end:
            parser.take(len(mark))
        values.put(key.strip(), value)
    parser.settle(draft, values.json)


# --- begin and end ----------------------------------------------------------------------------------------------------

_BEGUN = Shape(SPACE, "<|", BEFORE, "begin_", ANY, AFTER, "|>")
_TOKEN = Shape(SPACE, "<|", Run(r"[\w.\-:]{1,64}"), "|>")
_BETWEEN = Shape(Run(r"\s{0,4}\w{1,16}\s{0,4}"), "<|")  # a word between two tokens
_NAMES = ("tool_name", "function_name", "name")
_PARTS = (*_CALLS, *(f"{word}s" for word in _CALLS), *_NAMES, "tool_arguments", "function_arguments", "arguments")
_LONGEST_NAME = 64


def _read_begun(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read the calls between `begin_` and `end_` tokens: the name between two of them, and JSON."""
    pair = pair_of(normalize(match.group().strip()))
    if not pair or pair[1] not in _PARTS:
        raise NotACall
    draft: Draft | None = None
    while token := (yield from parser.test(_TOKEN)):
        pair = pair_of(normalize(token[1].group().strip()))
        if not (draft or pair):
            return  # it belongs to no call
        parser.take(token[1].end() - parser.position)
        opens, what, end = pair or (True, "", "")
        if not opens:
            if draft and what.rstrip("s") in _CALLS:
                parser.settle(draft, "")
                draft = None
            if end == row.closers[0]:
                return
        elif what in _NAMES:
            draft = parser.call((yield from parser.text_to(end, _LONGEST_NAME)).strip())
        if draft:
            word = yield from parser.test(_BETWEEN)
            parser.take(word[1].end(1) - parser.position if word else 0)
            if (yield from parser.skip_space()) != "<":
                yield from parser.json_arguments(draft)
                draft = None
    if draft:
        raise Unreadable


# --- channel marks ----------------------------------------------------------------------------------------------------

_MARK: list[Part] = [
    Run(r"[A-Za-z_]{1,32}"),
    Run(r'(?: [\w\-]{1,32}="[^"<>\n]{0,128}"){0,4}', r" [^<>\n]{0,196}"),
    "<|sep|>",
]
_MARKS = Shape("<|", (["open|>", *_MARK], ["close|>", *_MARK]))
_ATTRIBUTE = re.compile(r'([\w\-]+)="([^"]*)"')


class _Mark:
    """A mark: whether it opens something, what, and its attributes."""

    def __init__(self, match: re.Match[str]) -> None:
        first = 1 if match.group(1) else 3
        self.opens, self.word = first == 1, match.group(first)
        self.attributes = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(match.group(first + 1))}


def _read_mark(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read `<|open|>word key="…"<|sep|>` or its end; what is in it is spoken, unless it is a call or reasoning."""
    try:
        found = yield from parser.test(_MARKS)
    except CutOff:
        word = parser.buffer[parser.position + size :].split(" ", 1)
        if parser.was_cut and not (word[0] == "call" if word[1:] else "call".startswith(word[0])):
            parser.commit()  # it can be no call any more
        raise
    if not found:
        parser.take(size)
        raise NotACall
    parser.take(found[1].end() - parser.position)
    mark = _Mark(found[1])
    parser.commit()
    if mark.opens and mark.word == "think":
        parser.take(len((yield from reasoning_block(parser, *marker_pattern("<|close|>think<|sep|>")))))
    elif mark.opens and mark.word == "call" and "tool" in mark.attributes:
        draft = parser.call(mark.attributes["tool"])
        values = Values(parser.max_argument_chars)
        while True:
            yield from parser.skip_space()
            mark = _Mark((yield from parser.expect(_MARKS)))
            if not mark.opens:
                break
            value = yield from parser.text_to(f"<|close|>{mark.word}<|sep|>", values.left)
            is_text = mark.attributes.get("type", "string") == "string"
            values.put(mark.attributes.get("key", ""), value, is_text=is_text)
        parser.settle(draft, values.json)


# --- message marks ----------------------------------------------------------------------------------------------------

_MESSAGE = Shape(
    "<|message_model|>", Run(r"[^\s<>|]{0,64}"), "<|content_", (["text|>"], ["thinking|>"], ["invoke_tool_json|>"])
)


def _read_message(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a message: a call, reasoning, or text."""
    found = yield from parser.read(_MESSAGE)
    if not found:
        parser.take(size)
        raise NotACall
    kind = normalize(found.group()).rpartition("content_")[2]
    if kind == "thinking|>":
        parser.commit()
        parser.take(len((yield from reasoning_block(parser, *marker_pattern("<|end_message|>")))))
    elif kind != "text|>":
        yield from json_block(parser, row)
    else:
        parser.commit()


# Heads of tokens that are known by their shape.
PAIRED, BEGUN = (_PAIRED, _read_pair), (_BEGUN, _read_begun)
ROWS = (
    Dialect(name="channel_mark", markers=("<|open|>",), read=_read_mark, tested=True),
    Dialect(name="channel_mark_end", markers=("<|close|>",), read=_read_mark, calls=False),
    Dialect(name="message_mark", markers=("<|message_model|>",), read=_read_message, tested=True,
            closers=("<|end_message|>",)),
)  # fmt: skip
