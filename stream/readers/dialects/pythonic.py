"""Calls written as Python: lists of calls with keyword arguments, single calls, code, and declared names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stream.readers.parse.literals import LiteralSyntaxError, read_keywords
from stream.readers.parse.markers import marker_pattern
from stream.readers.parse.shapes import IDENTIFIER, NAME, SPACE, Part, Run, Shape
from stream.readers.parse.tape import CutOff, NotACall, Pieces, Reading, Unreadable

from .json_calls import ARRAY, call_array

if TYPE_CHECKING:
    from stream.readers.dialects import Dialect
    from stream.readers.machine import TextMachine
    from stream.readers.parse.draft import Draft

__all__ = [
    "BUILT_IN",
    "CALL_LINES",
    "CALL_LIST",
    "calls_in_list",
    "calls_on_lines",
    "code_body",
    "read_bracket",
    "read_code",
    "read_declared",
    "read_python_tag",
]

# What a value can begin with: enough to tell `[f(x=1)]` from `[f(x=y)]`.
_VALUE_STARTS = ("'", '"', "-", "[", "{", "(", Run(r"\d"), "True", "False", "None", "true", "false", "null")
_VALUE: tuple[list[Part], ...] = tuple([start] for start in _VALUE_STARTS)
_KEYWORD: list[Part] = [IDENTIFIER, SPACE, "=", SPACE, _VALUE]
_WEAK_LIST = Shape("[", SPACE, NAME, "(", SPACE, (_KEYWORD, [")", SPACE, ([","], ["]"])]))
_WEAK_CALL = Shape(NAME, "(", SPACE, (_KEYWORD, [")"], ["{", SPACE, '"'], ["{", SPACE, "}"]))
_WEAK_NAME = Shape(NAME, (["[ARGS]{"], ['{"']))

CALL_LIST = Shape(SPACE, "[", SPACE, NAME, "(")
CALL_LINES = Shape(SPACE, NAME, "(")
BUILT_IN = Shape(SPACE, Run(r"[^\W\d]\w{0,63}"), ".call(")
_SPECIAL = re.compile(r"[\"'()\[\]{}]")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_CODE_END = marker_pattern("<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|call|>", "<|end|>", "<|start|>",
                           "<|action_end|>")  # fmt: skip


def read_bracket(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read `[`: a bare array of calls, at the start of a line a list of Python calls, or text.

    Lines of code begin like such lists (`[Point(x=1)]`), so where the tools are declared the first name must be one.
    """
    if (yield from machine.test(ARRAY)):
        yield from call_array(machine, strong=False)
        return
    head = (yield from machine.test(_WEAK_LIST)) if machine.fresh else None
    if not head or machine.table.excludes(head[1].group(2)):
        machine.take(1)
        raise NotACall
    yield from calls_in_list(machine)


def calls_in_list(
    machine: TextMachine, row: Dialect | None = None, match: re.Match[str] | None = None
) -> Reading[None]:
    """Read `[name(key=literal), …]`."""
    yield from machine.skip_space()
    machine.take(1)
    array = machine.turn.new_array()
    while True:
        yield from machine.skip_space()
        yield from _call(machine, array)
        found = yield from machine.test(_NEXT_CALL, _LIST_END)
        if found:
            machine.take((found[1].end() if found[0] else found[1].start(3)) - machine.position)
        if found is None or found[0]:
            return


_NEXT_CALL = Shape(SPACE, ",", SPACE, NAME, "(")
_LIST_END = Shape(Run(r"\s{0,32},?\s{0,32}"), "]")


def calls_on_lines(machine: TextMachine, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read calls that stand one a line, or one alone."""
    array = machine.turn.new_array()
    while True:
        yield from machine.skip_space()
        yield from _call(machine, array)
        if not row.wraps or not (yield from machine.test(CALL_LINES)):
            return


def _call(machine: TextMachine, array: int) -> Reading[None]:
    """Read one call with keyword arguments."""
    found = yield from machine.read(_CALL)
    assert found is not None
    yield from _arguments_of(machine, machine.call(found.group(1), array))


_CALL = Shape(NAME, "(")


def balanced(machine: TextMachine) -> Reading[str]:
    """Read to the parenthesis that closes the one before; return what is between."""
    pieces = Pieces(machine.max_argument_chars)
    stack = [")"]
    while stack:
        match = _SPECIAL.search(machine.buffer, machine.position)
        pieces.add(machine.take_to(match))
        if match is None:
            yield from machine.more()
        elif match.group() in "\"'":
            yield from _string(machine, match.group(), pieces)
        else:
            char = machine.take(1)
            if char in _CLOSERS:
                stack.append(_CLOSERS[char])
            elif stack.pop() != char:
                raise Unreadable
            if stack:
                pieces.add(char)
    return pieces.text


def _string(machine: TextMachine, quote: str, pieces: Pieces) -> Reading[None]:
    """Read a string literal with its quotes."""
    end = quote * 3
    if not (yield from machine.accept(end)):
        end = machine.take(1)
    pieces.add(end)
    while True:
        match = _IN_STRING[quote].search(machine.buffer, machine.position)
        pieces.add(machine.take_to(match))
        if match is None:
            yield from machine.more()
        elif match.group() == "\\":
            while len(machine.buffer) - machine.position < 2:
                yield from machine.more()
            pieces.add(machine.take(2))
        elif (yield from machine.accept(end)):
            pieces.add(end)
            return
        else:
            pieces.add(machine.take(1))


_IN_STRING = {quote: re.compile(rf"[\\{quote}]") for quote in "\"'"}


def read_code(machine: TextMachine, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read code up to the end of the message: a call of `python` with `code`."""
    yield from machine.skip_space()
    yield from code_body(machine, machine.call("python"))


def code_body(machine: TextMachine, draft: Draft) -> Reading[None]:
    """Read the code of an announced call."""
    try:
        code, _ = yield from machine.find(*_CODE_END, machine.max_argument_chars)
    except CutOff as end:
        if machine.was_cut:
            raise
        code = end.text
    machine.settle(draft, json.dumps({"code": code.strip()}, ensure_ascii=False))


def read_python_tag(machine: TextMachine, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read `name.call(key="…")`."""
    yield from machine.skip_space()
    machine.take(match.end() - machine.position)
    yield from _arguments_of(machine, machine.call(match.group(2)))


def _arguments_of(machine: TextMachine, draft: Draft) -> Reading[None]:
    source = yield from balanced(machine)
    if len(source) > machine.max_argument_chars:
        machine.settle(draft, source)  # past the cap: what is left of it says nothing
        return
    try:
        arguments = read_keywords(source)
    except LiteralSyntaxError:
        raise Unreadable from None
    machine.settle(draft, json.dumps(arguments, ensure_ascii=False))


def read_declared(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read a declared name that may be used as a function."""
    declared = machine.table.declared or frozenset()
    found = (yield from machine.test(_WEAK_CALL, _WEAK_NAME)) if machine.at_word else None
    if not found or found[1].group(1) not in declared or (found[0] and not machine.fresh):
        machine.take(size)
        raise NotACall
    machine.take(found[1].end(1) - machine.position)
    draft = machine.call(found[1].group(1))
    in_parentheses = yield from machine.accept("(")
    if in_parentheses and (yield from machine.skip_space()) != "{":
        yield from _arguments_of(machine, draft)
        return
    yield from machine.accept("[ARGS]")
    draft.arguments = yield from machine.json_value()
    if in_parentheses:
        yield from machine.skip_space()
        yield from machine.accept(")")
    machine.settle(draft, draft.arguments)
