"""Calls written as Python: lists of calls with keyword arguments, single calls, code, and declared names."""

from __future__ import annotations

import json
import re

from stream.readers.text.dialect import LIBRARY, CutOff, Dialect, Draft, NotACall, Reading, Unreadable
from stream.readers.text.dialects.headed import CUT_IN_SEPARATOR, NUMBER
from stream.readers.text.dialects.json_calls import ARRAY, JSON, call_array
from stream.readers.text.literals import read_keywords
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import NAME, SPACE, Part, Run, Shape, marker_pattern, shape_of
from stream.readers.text.scanner import Pieces

__all__ = ["CODE", "CODE_LINE", "DECLARED", "LINES", "PARENTHESES", "ROWS", "TYPED", "code_body"]

_IDENTIFIER = Run(r"[^\W\d]\w{0,63}")
# The first characters of a value: enough to tell `[f(x=1)]` from `[f(x=y)]`.
_VALUE_STARTS = ("'", '"', "-", "[", "{", "(", Run(r"\d"), "True", "False", "None", "true", "false", "null")
_VALUE: tuple[list[Part], ...] = tuple([start] for start in _VALUE_STARTS)
_KEYWORD: list[Part] = [_IDENTIFIER, SPACE, "=", SPACE, _VALUE]
# In a list at the start of a line any value will do: if it is not a literal, the call cannot be read.
_ANY_KEYWORD: list[Part] = [_IDENTIFIER, SPACE, "=", Run(r"[^=]")]
_WEAK_LIST = Shape("[", SPACE, NAME, "(", SPACE, (_ANY_KEYWORD, [")", SPACE, ([","], ["]"])]))
# Behind words only literals will do, as for a declared call without a list.
_LIST_BEHIND_WORDS = Shape("[", SPACE, NAME, "(", SPACE, (_KEYWORD, [")", SPACE, ([","], ["]"])]))
# After a token that announces code: a call of a declared tool, or a list of them, and how they begin.
_BEGUN_IN_CODE = (Shape(SPACE, NAME, "("), Shape(SPACE, "[", SPACE, NAME, "("))
_CALL_IN_CODE = Shape(SPACE, NAME, "(", SPACE, (_KEYWORD, [")"], ["{", SPACE, '"'], ["{", SPACE, "}"]))
_LIST_IN_CODE = Shape(SPACE, "[", SPACE, NAME, "(", SPACE, (_KEYWORD, [")", SPACE, ([","], ["]"])]))
_LINK = Shape("[", Run(r"[\w. (),]{1,64}"), "]", (["("], [":"]))
_WEAK_CALL = Shape(NAME, "(", SPACE, (_KEYWORD, [")"], ["{", SPACE, '"'], ["{", SPACE, "}"]))
_WEAK_NAME = Shape(NAME, ([Run(r"[ \t]{0,4}"), "[ARGS]", Run(r"[ \t]{0,4}"), "{"], ['{"']))
_BLANK = Run(r"[ \t]{1,4}")
_TOLD_JSON = Shape(NAME, _BLANK, "json", _BLANK, (['{"'], ["{}"]))
# Where the place has said that this is a call, its value need not.
_BEGUN: tuple[list[Part], ...] = ([_IDENTIFIER, SPACE, "="], [")"], ["{", SPACE, '"'], ["{", SPACE, "}"])
_LABELLED_CALL = Shape(NAME, "(", SPACE, _BEGUN)
_LABELLED_JSON = Shape(NAME, Run(r"[ \t]{0,4}"), '{"')
_CALL_BELOW = Shape("call", Run(r"\r?"), "\n")
_PRINT = Run(r"(?:print\()?", r"p(?:r(?:i(?:n(?:t\(?)?)?)?)?")

_CALL = Shape(NAME, "(")
_NEXT_LINE = Shape(SPACE, NAME, "(")
_NEXT_CALL = Shape(SPACE, ",", SPACE, NAME, "(")
_NEXT_NAME = re.compile(r"\s*,\s*[^\W\d]")
_LIST_END = Shape(Run(r"\s{0,32},?\s{0,32}"), "]")
_LIST_OR_LINE_END = re.compile(r"\n|\)[ \t]{0,32}(?:\]|\Z)")
_IN_STRING = {quote: re.compile(rf"[\\{quote}]") for quote in "\"'"}
_BETWEEN_CALLS = re.compile(r"[\s,;\]}]*")
_SHORTEST_HALF = 4  # characters of a separator
_DEEPEST = 1 << 16  # brackets; no value nests so deep
_SPECIAL = re.compile(r"[\"'()\[\]{}]")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_CODE_END = marker_pattern("<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|call|>", "<|end|>", "<|start|>",
                           "<|action_end|>", "<|python_end|>", "<|eom|>", "<|eot|>")  # fmt: skip


def _read_bracket(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read `[`: a bare array of calls, a list of Python calls, or text.

    Lines of code begin like such lists (`[Point(x=1)]`), so if tools are declared, the first name must be one of them;
    else the list must stand at the start of a line. Where nothing is declared, and behind words, it must not be the
    text of a Markdown link (`[use()](https://…)`).
    """
    if (yield from parser.test(ARRAY)):
        yield from call_array(parser, strong=False)
        return
    fresh, declared = parser.line.fresh, parser.declared
    shape = _WEAK_LIST if fresh else _LIST_BEHIND_WORDS if declared and not parser.line.previous.strip() else None
    head = (yield from parser.test(shape)) if shape else None
    name = LIBRARY.sub("", head[1].group(2)) if head else ""
    is_tool = name in (declared or ()) or (fresh and not parser.excludes(name))
    may_be_link = declared is None or not fresh
    if not head or not is_tool or (may_be_link and (yield from _is_link(parser))):
        parser.take(1)
        raise NotACall
    yield from _calls_in_list(parser, row)


def _is_link(parser: Parser) -> Reading[bool]:
    parser.new_draft(strong=False).begun = True  # a structured call that comes now replaces it, if it is a call
    try:
        return (yield from parser.test(_LINK)) is not None
    except CutOff:
        return False
    finally:
        parser.draft = None


def _calls_in_list(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `[name(key=literal), …]`."""
    yield from parser.skip_space()
    parser.take(1)
    array = parser.sink.new_array()
    while True:
        yield from parser.skip_space()
        try:
            yield from _call(parser, array)
        except Unreadable:
            if row.closers:
                raise
            yield from _skip_list(parser)
            return
        try:
            found = yield from parser.test(_NEXT_CALL, _LIST_END)
        except CutOff:
            if _NEXT_NAME.match(parser.buffer, parser.position):
                parser.new_draft()
            raise
        if found:
            parser.take((found[1].end() if found[0] else found[1].start(3)) - parser.position)
        if found is None or found[0]:
            return


def _skip_list(parser: Parser) -> Reading[None]:
    """End a call that cannot be read, and skip to the end of its list or of its line."""
    draft, parser.draft = parser.draft, None
    if draft:
        parser.sink.finish(draft.call, "malformed")
    while True:
        match = _LIST_OR_LINE_END.search(parser.buffer, max(parser.position - 1, 0))
        end = match.start() if match and match.group()[-1] in ")\n" else match.end() if match else len(parser.buffer)
        parser.take(max(end - parser.position, 0))
        if match and (match.group() == "\n" or match.group()[-1] == "]"):
            return
        yield from parser.more()


def _calls_on_lines(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read calls that stand one a line, or one alone."""
    array = parser.sink.new_array()
    while True:
        yield from parser.skip_space()
        yield from _call(parser, array)
        if not row.wraps or not (yield from parser.test(_NEXT_LINE)):
            return


def _call(parser: Parser, array: int) -> Reading[None]:
    found = yield from parser.read(_CALL)
    assert found is not None
    yield from _arguments_of(parser, parser.call(found.group(1), array))


def _balanced(parser: Parser) -> Reading[str]:
    """Read to the parenthesis that closes the one before; return what is between."""
    pieces = Pieces(parser.max_argument_chars)
    stack = [")"]
    while stack:
        match = _SPECIAL.search(parser.buffer, parser.position)
        pieces.add(parser.take_to(match))
        if match is None:
            yield from parser.more()
        elif match.group() in "\"'":
            if parser.buffer[parser.position - 1].isalnum():
                raise Unreadable  # an apostrophe, and no string
            yield from _string(parser, match.group(), pieces)
        else:
            char = parser.take(1)
            if char in _CLOSERS and len(stack) <= _DEEPEST:
                stack.append(_CLOSERS[char])
            elif stack.pop() != char:
                raise Unreadable
            if stack:
                pieces.add(char)
    return pieces.text


def _string(parser: Parser, quote: str, pieces: Pieces) -> Reading[None]:
    end = quote * 3
    if not (yield from parser.accept(end, after_space=False)):
        end = parser.take(1)
    pieces.add(end)
    while True:
        match = _IN_STRING[quote].search(parser.buffer, parser.position)
        pieces.add(parser.take_to(match))
        if match is None:
            yield from parser.more()
        elif match.group() == "\\":
            while len(parser.buffer) - parser.position < 2:
                yield from parser.more()
            pieces.add(parser.take(2))
        elif (yield from parser.accept(end, after_space=False)):
            pieces.add(end)
            return
        else:
            pieces.add(parser.take(1))


def _read_code(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read code up to the end of the message: a call of `python` with `code`."""
    yield from parser.skip_space()
    yield from code_body(parser, parser.call("python"))


def code_body(parser: Parser, draft: Draft) -> Reading[None]:
    """Read the code of an announced call."""
    try:
        code, _ = yield from parser.find(*_CODE_END, parser.max_argument_chars)
    except CutOff as end:
        if parser.was_cut:
            raise
        code = end.text
    parser.settle(draft, json.dumps({"code": code.strip()}, ensure_ascii=False))


def _read_calls_or_code(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read calls of declared tools, alone or in lists; what else comes up to the end of the message is code."""
    any_call = False
    while (yield from _begins_declared(parser)):
        any_call = True
        if (yield from parser.skip_space()) == "[":
            yield from _calls_in_list(parser, row)
        else:
            name = yield from parser.expect(_CALL)
            yield from _in_parentheses(parser, parser.call(name.group(1)))
        yield from parser.skip_space(_BETWEEN_CALLS)
    following, _ = (yield from parser.dispatcher.row_here()) if any_call else (None, 0)
    if following is None or following.weak:
        yield from _read_code(parser, row)


def _begins_declared(parser: Parser) -> Reading[bool]:
    """Return whether a call of a declared tool, or a list that begins with one, comes next; its values are literals."""
    if not parser.declared:
        return False
    begun = yield from parser.test(*_BEGUN_IN_CODE)
    if not begun or begun[1].group(2 + begun[0]) not in parser.declared:
        return False
    return (yield from parser.test((_CALL_IN_CODE, _LIST_IN_CODE)[begun[0]])) is not None


def _read_python_tag(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `name.call(key="…")`."""
    yield from parser.skip_space()
    parser.take(match.end() - parser.position)
    yield from _arguments_of(parser, parser.call(match.group(2)))


def _arguments_of(parser: Parser, draft: Draft) -> Reading[None]:
    source = yield from _balanced(parser)
    if len(source) > parser.max_argument_chars:
        parser.settle(draft, source)  # past the cap: what is left of it says nothing
        return
    parser.settle(draft, json.dumps(read_keywords(source), ensure_ascii=False))


def _read_declared(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a declared name that may be used as a function."""
    declared, labelled = parser.declared or frozenset(), parser.labelled
    shapes = (_LABELLED_CALL, _TOLD_JSON, _LABELLED_JSON) if labelled else (_WEAK_CALL, _TOLD_JSON, _WEAK_NAME)
    try:
        found = (yield from parser.test(*shapes)) if labelled or not parser.line.previous.strip() else None
    except CutOff:
        cut = CUT_IN_SEPARATOR.match(parser.buffer, parser.position)
        if cut and cut[1] in declared and parser.was_cut and cut.end() - cut.end(1) >= _SHORTEST_HALF:
            parser.new_draft().name = cut[1]
        raise
    name = NUMBER.sub("", LIBRARY.sub("", found[1].group(1))) if found else ""
    told = labelled or (found is not None and (found[0] == 1 or name != found[1].group(1)))
    if not found or name not in declared or (found[0] and not parser.line.fresh):
        parser.take(size)
        raise NotACall
    parser.take(found[1].end(1) - parser.position)
    draft = parser.call(name, told=told)
    if (yield from parser.accept("(")):
        yield from _in_parentheses(parser, draft)
        return
    yield from parser.accept("[ARGS]")
    yield from parser.accept("json")
    yield from parser.json_arguments(draft)


def _in_parentheses(parser: Parser, draft: Draft) -> Reading[None]:
    """Read keyword arguments, or an object, and the parenthesis that closes them."""
    if (yield from parser.skip_space()) != "{":
        yield from _arguments_of(parser, draft)
        return
    draft.arguments = yield from parser.json_value()
    yield from parser.accept(")")
    parser.settle(draft, draft.arguments)


def _read_typed(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read `{type:NAME}`, a call without arguments."""
    parser.settle(parser.call(parser.take(size)[len("{type:") : -1], told=True), "")
    yield from ()


def _calls_in_code(parser: Parser, row: Dialect | None, match: re.Match[str] | None) -> Reading[None]:
    """Read lines of code that call declared tools, or print what they return."""
    found = (0, match) if match else None
    while found and (name := LIBRARY.sub("", found[1].group(3))) in (parser.declared or ()):
        printed = found[1].group(2)
        parser.take(found[1].end(3) + 1 - parser.position)
        match = None
        yield from _in_parentheses(parser, parser.call(name))
        if printed:
            yield from parser.read(shape_of(SPACE, ")"))
        found = yield from parser.test(CODE[0])
    if match:
        raise NotACall


def _read_control(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read Gemini's `<ctrl42>`; after `call`, read calls of declared tools, or code to the end of the message."""
    parser.take(size)
    parser.commit()
    if not (yield from parser.read(_CALL_BELOW)):
        return
    found = yield from parser.test(CODE[0])
    if found and LIBRARY.sub("", found[1].group(3)) in (parser.declared or ()):
        yield from _calls_in_code(parser, row, found[1])
    else:
        yield from _read_code(parser, row)


# Heads of marked blocks.
_LIST = (Shape(SPACE, "[", SPACE, NAME, "("), _calls_in_list)
_BUILT_IN = (Shape(SPACE, _IDENTIFIER, ".call("), _read_python_tag)
LINES = (_NEXT_LINE, _calls_on_lines)
PARENTHESES = (Shape(SPACE, NAME, "(", SPACE, (_ANY_KEYWORD, [")"])), _calls_on_lines)
CODE = (Shape(SPACE, _PRINT, NAME, "(", SPACE, _BEGUN), _calls_in_code)

ROWS = (
    Dialect(name="llama31", markers=("<|python_tag|>",), heads=(*JSON, _BUILT_IN), otherwise=_read_calls_or_code,
            closers=("<|eom_id|>", "<|eot_id|>")),
    Dialect(name="llama4", markers=("<|python_start|>",), heads=(*JSON, _LIST, _BUILT_IN),
            otherwise=_read_calls_or_code, closers=("<|python_end|>",)),
    Dialect(name="internlm_code", markers=("<|action_start|><|interpreter|>",), otherwise=_read_code,
            closers=("<|action_end|>",)),
    Dialect(name="lfm2", markers=("<|tool_call_start|>",), heads=(*JSON, _LIST, LINES), closers=("<|tool_call_end|>",),
            wraps=True),
    Dialect(name="gemini_code", markers=("<ctrl42>",), read=_read_control),
    Dialect(name="tool_code", markers=("<tool_code>",), heads=(CODE,), closers=("</tool_code>",)),
    Dialect(name="bracket", markers=("[",), read=_read_bracket, weak=True),
)  # fmt: skip
# Rows for declared tools, whose names are markers.
DECLARED = Dialect(name="declared_call", markers=("",), read=_read_declared, weak=True)
TYPED = Dialect(name="typed_call", markers=("",), read=_read_typed, weak=True)
CODE_LINE = Dialect(name="tool_code_line", markers=("tool_code\n",), heads=(CODE,), fresh=True, weak=True)
