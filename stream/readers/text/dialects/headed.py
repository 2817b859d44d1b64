"""Calls with the name in a header before the arguments, and two notations with their own braces."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from stream.readers.text.dialect import Dialect, Draft, Reading, Unreadable
from stream.readers.text.dialects.json_calls import ARRAY, JSON
from stream.readers.text.dialects.xml_calls import INVOKE, read_tags
from stream.readers.text.literals import WORDS
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import NAME, SPACE, Run, Shape, marker_pattern

__all__ = ["CUT_IN_SEPARATOR", "NUMBER", "ROWS"]

# After white space a brace counts if it begins JSON.
_NAMED = Shape(SPACE, NAME, (["{"], [SPACE, (["[ARGS]"], ["[CALL_ID]"], ["{", SPACE, '"'], ["{", SPACE, "}"])]))
CUT_IN_SEPARATOR = re.compile(rf"\s*({NAME})\s*\[(?:A(?:R(?:G(?:S\]?)?)?)?|C(?:A(?:L(?:L(?:_(?:ID?)?)?)?)?)?)\Z")
_NUMBERED = Shape(SPACE, NAME, SPACE, (['{"'], ["{}"]))
_BRACES = Shape(SPACE, "call:", NAME, "{")
_BRACES_ALONE = Shape(Run(""), NAME, "{")

_CALL_ID = Shape(SPACE, "[CALL_ID]", SPACE, Run(r"[^\[\]{}\s]{1,128}"), SPACE, (["[ARGS]"], ["{"]))
# DeepSeek also writes its tokens in ASCII, without bars.
_SEPARATORS = ("<|tool_sep|>", "<tool_sep>")
_ENDS = ("<|tool_call_end|>", "<|tool_calls_end|>", "<tool_call_end>", "<tool_calls_end>")
_HEADER_END = marker_pattern("<|tool_call_argument_begin|>", *_SEPARATORS, *_ENDS)
NUMBER = re.compile(r":\d+\Z")  # of the call, after its name
_TITLE = Shape(Run(r"[^\n<>{}`~]{1,128}"), (["\n"], ["{"], ["`"], ["~"]))
_LONGEST_HEADER = 200


def _read_named(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `name[CALL_ID]id[ARGS]{…}`, whose inner markers may be missing."""
    parser.take(match.end(2) - parser.position)
    draft = parser.call(match.group(2))
    identity = yield from parser.test(_CALL_ID)
    if identity:
        parser.take(identity[1].end(3) - parser.position)
        draft.call.id = identity[1].group(3)
    yield from parser.accept("[ARGS]")
    yield from parser.json_arguments(draft)


_FLOWERS = Shape(Run(r"[ \t]{0,4}"), NAME, Run(r"\s{1,4}"), "✿ARGS✿:")


def _read_flowers(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a name on a line of its own, and its arguments behind a mark."""
    parser.take(match.end() - parser.position)
    yield from parser.json_arguments(parser.call(match.group(2)))


def _read_header(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `name` or `functions.name:0`, a separator, and the arguments, which may stand in a fence."""
    header, separator = yield from parser.find(*_HEADER_END, _LONGEST_HEADER)
    if len(header) > _LONGEST_HEADER or separator in _ENDS:
        raise Unreadable
    parser.take(len(separator))
    header = header.strip()
    if separator in _SEPARATORS:
        # The header may hold only the kind of call; then the name follows the separator, or a tag that has it.
        if header == "function" and (yield from parser.test(INVOKE)):
            yield from read_tags(parser, row)
            return
        title = (yield from parser.test(_TITLE)) if header == "function" else None
        parser.take(title[1].end(1) - parser.position if title else 0)
        draft = parser.call(title[1].group(1).strip() if title else header)
    else:
        draft = _numbered(parser, header)
    yield from parser.arguments_or_none(draft)


def _read_numbered(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `functions.name:0{…}`, a header whose separator is missing."""
    parser.take(match.end(2) - parser.position)
    yield from parser.json_arguments(_numbered(parser, match.group(2)))


def _numbered(parser: Parser, header: str) -> Draft:
    draft = parser.new_draft()
    draft.call.id = header
    draft.name = NUMBER.sub("", header)
    parser.announce(draft)
    return draft


def _read_keyed_objects(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `[{"name": {arguments}}, …]`."""
    yield from parser.skip_space()
    parser.take(1)
    array = parser.sink.new_array()
    while (yield from parser.skip_space()) != "]":
        if not (yield from parser.accept("{")) or (yield from parser.skip_space()) != '"':
            raise Unreadable
        draft = parser.call((yield from parser.json_scalar()), array)
        if not (yield from parser.accept(":")):
            raise Unreadable
        yield from parser.json_arguments(draft)
        yield from parser.accept("}")
        yield from parser.accept(",")
    parser.take(1)


# --- braces with bare keys ----------------------------------------------------------------------------------------

_QUOTES = ("<escape>", '<|"|>', "<ctrl46>")
_KEY = Shape(SPACE, Run(r"[^\s:,{}\[\]<>]{1,128}"), SPACE, ":")
_QUOTED_KEY = tuple(Shape(SPACE, quote, Run(r"[^<>{}]{0,128}"), quote, SPACE, ":") for quote in _QUOTES)
_BARE = Run(r"[^,{}\[\]<>]{1,400}")
_SINGLE_QUOTED = Shape(Run(r"'[^'\n]{0,400}'", r"'[^'\n]{0,400}"), SPACE, ([","], ["}"], ["]"]))
_BARE_VALUE = Shape(_BARE, ([","], ["}"], ["]"], ["<"]))
_DEEPEST = 100


def _read_braces(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `call:name{key:<escape>text<escape>,n:1}`."""
    parser.take(match.end(2) + 1 - parser.position)
    draft = parser.call(match.group(2))
    last = parser.passed + parser.position + parser.max_argument_chars
    value = yield from _members(parser, 0, last)
    is_too_long = parser.passed + parser.position > last
    parser.settle(draft, None if is_too_long else json.dumps(value, ensure_ascii=False))


def _members(parser: Parser, depth: int, last: int) -> Reading[dict[str, Any]]:
    """Read members up to their brace; those that end after the `last` character of the text are not kept."""
    found: dict[str, Any] = {}
    while True:
        char = yield from parser.skip_space()
        if char == "}":
            parser.take(1)
            return found
        if char == '"':  # as in JSON
            key = str((yield from parser.json_scalar()))
            if not (yield from parser.accept(":")):
                raise Unreadable
        else:
            key = (yield from parser.expect(_KEY, *_QUOTED_KEY)).group(2).strip("'")
        value = yield from _value(parser, depth, last)
        if parser.passed + parser.position <= last:
            found[key] = value
        yield from _comma(parser, "}")


def _comma(parser: Parser, closer: str) -> Reading[None]:
    if not (yield from parser.accept(",")) and (yield from parser.peek()) != closer:
        raise Unreadable


def _value(parser: Parser, depth: int, last: int) -> Reading[Any]:
    if depth > _DEEPEST:
        raise Unreadable
    char = yield from parser.skip_space()
    if char == "<":
        for quote in _QUOTES:
            if (yield from parser.accept(quote)):
                return (yield from parser.text_to(quote, parser.max_argument_chars))
        raise Unreadable
    if char == "{":
        parser.take(1)
        return (yield from _members(parser, depth + 1, last))
    if char == "[":
        parser.take(1)
        values = []
        while (yield from parser.skip_space()) != "]":
            value = yield from _value(parser, depth + 1, last)
            if parser.passed + parser.position <= last:
                values.append(value)
            yield from _comma(parser, "]")
        parser.take(1)
        return values
    if char == '"':
        text = yield from parser.json_value()
        return json.loads(text, strict=False) if len(text) <= parser.max_argument_chars else ""
    if char == "'" and (quoted := (yield from parser.test(_SINGLE_QUOTED))):
        return parser.take(len(quoted[1].group(1)))[1:-1]
    found = yield from parser.test(_BARE_VALUE)
    if not found:
        raise Unreadable
    text = parser.take(len(found[1].group(1))).strip()
    with suppress(ValueError):
        return WORDS[text] if text in WORDS else json.loads(text, parse_constant=str)
    return text


def _read_section(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read the marker of a section of calls; each call in it has its own marker."""
    parser.take(size)
    yield from parser.skip_space()


_IN_BRACES = ((_BRACES, _read_braces),)
ROWS = (
    Dialect(name="mistral", markers=("[TOOL_CALLS]",), heads=(*JSON, (_NAMED, _read_named)),
            cut_after_name=CUT_IN_SEPARATOR),
    Dialect(name="deepseek_section", markers=("<|tool_calls_begin|>", "<|tool_calls_section_begin|>",
            "<|tool_call_section_begin|>", "<|tool_calls|>"), read=_read_section,
            closers=("<|tool_calls_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>", "<|calls|>")),
    Dialect(name="deepseek", markers=("<|tool_call_begin|>",), heads=((_NUMBERED, _read_numbered),),
            otherwise=_read_header, closers=("<|tool_call_end|>",)),
    # In ASCII they are no tokens: without a call behind them they are spoken.
    Dialect(name="deepseek_section_in_ascii", markers=("<tool_calls_begin>",), read=_read_section,
            closers=("<tool_calls_end>", "</tool_calls_end>")),
    Dialect(name="deepseek_in_ascii", markers=("<tool_call_begin>",), otherwise=_read_header,
            closers=("<tool_call_end>", "</tool_call_end>")),
    # Gemma writes this token, too, in place of its own.
    Dialect(name="granite", markers=("<|tool_call|>", "<|function_call|>"), heads=(*JSON, *_IN_BRACES),
            closers=("<|/tool_call|>", "<|message_sep|>", "<tool_call|>")),
    Dialect(name="functiongemma", markers=("<start_function_call>",), heads=_IN_BRACES,
            closers=("<end_function_call>",)),
    Dialect(name="gemma4", markers=("<|tool_call>",), heads=_IN_BRACES, closers=("<tool_call|>",)),
    # vLLM leaves out special tokens, of texts the quotes, too.
    Dialect(name="gemma_alone", markers=("call:",), heads=((_BRACES_ALONE, _read_braces),), closers=("<tool_call|>",),
            weak=True),
    Dialect(name="apertus", markers=("<|tools_prefix|>",), heads=((ARRAY, _read_keyed_objects),),
            closers=("<|tools_suffix|>",)),
    Dialect(name="flowers", markers=("✿FUNCTION✿:",), heads=((_FLOWERS, _read_flowers),)),
)  # fmt: skip
