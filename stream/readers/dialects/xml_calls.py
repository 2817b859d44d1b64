"""Calls written as tags: `<function=…>`, `<invoke name="…">` and their values, and key and value tags."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stream.readers.json_scanner import JsonScanner
from stream.readers.markers import marker_pattern
from stream.readers.shapes import NAME, SPACE, Run, Shape
from stream.readers.tape import NotACall, Unreadable

if TYPE_CHECKING:
    from stream.readers.dialects import Dialect
    from stream.readers.draft import Draft
    from stream.readers.tape import Reading
    from stream.readers.text_machine import TextMachine

__all__ = ["FUNCTION", "INVOKE", "KEYED", "keyed", "read_function", "read_invokes"]

FUNCTION = Shape(SPACE, "<function=")
KEYED = Shape(Run(r"[\r\n]{0,4}"), NAME, Run(r"[ \t]{0,4}[\r\n]{0,4}"), (["<arg_key>"], ["</tool_call>"]))

_TITLE = Run(r"[^<>\r\n]{1,64}")
_FUNCTION_TITLE = Shape("<function=", _TITLE, ">")
_FUNCTION_HEAD = Shape("<function=", _TITLE, ">", SPACE, (["{"], ["<parameter="], ["</function>"]))
_PARAMETER = Shape("<parameter=", _TITLE, ">")
_ATTRIBUTES = Run(r"[^<>]{0,96}")
_LINE_ENDS = re.compile(r"\A\r?\n|\r?\n\Z")
_ARGUMENT_VALUE = marker_pattern("</arg_value>", "</tool_call>")
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")


def _invoke_shape(prefix: str) -> Shape:
    return Shape(SPACE, f"<{prefix}invoke", Run(r"\s{1,8}"), _ATTRIBUTES, ">")


# The tags of DeepSeek's markup carry a prefix of its own, in either spelling of its bars.
_PREFIXES = ("", "｜DSML｜", "|DSML|")
_INVOKES = tuple(_invoke_shape(prefix) for prefix in _PREFIXES)
INVOKE = Shape(SPACE, "<", tuple([f"{prefix}invoke", Run(r"\s{1,8}")] for prefix in _PREFIXES))


def read_function(machine: TextMachine, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `<function=NAME>` blocks."""
    del match
    while True:
        yield from machine.skip_space()
        head = yield from machine.test(_FUNCTION_TITLE)
        if not head:
            machine.take(len("<function="))
            raise Unreadable
        machine.take(len(head[1].group()))
        draft = machine.new_draft()
        draft.name = head[1].group(1).strip().strip("\"'")
        machine.announce(draft)
        if (yield from machine.skip_space()) == "{":
            draft.arguments = yield from machine.json_value()
            machine.settle(draft, draft.arguments)
            if (yield from machine.test(_FUNCTION_END)):
                yield from machine.skip_space()
                machine.take(len("</function>"))
        else:
            yield from _parameters(machine, row, draft, "", "function")
        if not row.wraps or not (yield from machine.test(FUNCTION)):
            return


_FUNCTION_END = Shape(SPACE, "</function>")


def read_invokes(machine: TextMachine, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `<invoke name="…">` blocks."""
    del match
    while True:
        head = yield from machine.test(*_INVOKES)
        if not head:
            raise Unreadable
        machine.take(len(head[1].group()))
        draft = machine.new_draft()
        draft.name = _attributes(head[1].group(3)).get("name", "")
        machine.announce(draft)
        prefix = _PREFIXES[head[0]]
        if (yield from machine.skip_space()) == "{":
            draft.arguments = yield from machine.json_value()
            machine.settle(draft, draft.arguments)
            yield from machine.skip_space()
            yield from machine.accept(f"</{prefix}invoke>")
        else:
            yield from _parameters(machine, row, draft, prefix, "invoke")
        if not row.wraps or not (yield from machine.test(INVOKE)):
            return


def _attributes(text: str) -> dict[str, str]:
    return {key: double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(text)}


def _parameters(machine: TextMachine, row: Dialect, draft: Draft, prefix: str, tag: str) -> Reading[None]:
    """Read parameters up to the call's own end, or to the end of its block behind a value."""
    values: list[tuple[str, str]] = []
    opener = f"<{prefix}parameter" + ("=" if tag == "function" else "")
    ends = marker_pattern(
        f"</{prefix}parameter>", opener + ("" if tag == "function" else " name="), f"</{prefix}{tag}>"
    )
    parameter = _PARAMETER if tag == "function" else Shape(opener, Run(r"\s{1,8}"), _ATTRIBUTES, ">")
    size = 0
    while True:
        yield from machine.skip_space()
        if (yield from machine.accept(f"</{prefix}{tag}>")):
            break
        head = yield from machine.test(parameter)
        if head:
            machine.take(len(head[1].group()))
            value, end = yield from machine.find(*ends, machine.max_argument_chars - size)
            size += len(value)
            if end == f"</{prefix}parameter>".replace("｜", "|"):
                machine.take(len(end))
            values.append(_member(head[1], value, tag))
        elif values and (yield from _block_ends(machine, row)):
            break
        else:
            raise Unreadable
    machine.settle(draft, _object(values))


def _block_ends(machine: TextMachine, row: Dialect) -> Reading[bool]:
    return bool(row.ends and (yield from machine.test(*row.ends)))


def _member(head: re.Match[str], value: str, tag: str) -> tuple[str, str]:
    """Return a key and its value as JSON text: values have no type, unless the tag says that it is none of text."""
    value = _LINE_ENDS.sub("", value) if tag == "function" else value
    if tag == "function":
        return head.group(1).strip(), _text(value)
    attributes = _attributes(head.group(2))
    if attributes.get("string") == "false":
        return attributes.get("name", ""), _json(value)
    return attributes.get("name", ""), _text(_LINE_ENDS.sub("", value))


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(value: str) -> str:
    scanner = JsonScanner()
    end = scanner.scan(value, 0)
    if (not scanner.done and not scanner.finish()) or value[end:].strip():
        raise Unreadable
    return value.strip()


def _object(values: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{_text(key)}: {value}" for key, value in dict(values).items()) + "}"


def keyed(machine: TextMachine, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a name and its `<arg_key>` and `<arg_value>` tags up to the closing marker, which must come."""
    del row
    machine.take(match.end(3) - machine.position)
    draft = machine.new_draft()
    draft.name = match.group(2)
    machine.announce(draft)
    values: list[tuple[str, str]] = []
    size = 0
    while True:
        yield from machine.skip_space()
        if (yield from machine.accept("</tool_call>")):
            break
        if not (yield from machine.accept("<arg_key>")):
            raise Unreadable
        key, _ = yield from machine.find(*_KEY_END, _LONGEST_KEY)
        if len(key) > _LONGEST_KEY:
            raise Unreadable
        machine.take(len("</arg_key>"))
        yield from machine.skip_space()
        yield from machine.accept("<arg_value>")
        value, end = yield from machine.find(*_ARGUMENT_VALUE, machine.max_argument_chars - size)
        if end == "</arg_value>":
            machine.take(len(end))
        size += len(value)
        values.append((key.strip(), _text(value)))
    machine.settle(draft, _object(values))


_LONGEST_KEY = 256
_KEY_END = marker_pattern("</arg_key>")


def read_bare_function(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read a `<function=NAME>` block that no marker announces; its head must be followed by a body."""
    del size
    head = yield from machine.test(_FUNCTION_HEAD)
    if not head:
        machine.take(len("<function="))
        raise NotACall
    yield from read_function(machine, row, head[1])


_BARE_INVOKES = tuple(
    Shape(
        f"<{prefix}invoke",
        Run(r"\s{1,8}"),
        "name=",
        Run(r"[\"']?[^<>\"']{0,64}[\"']?\s{0,4}"),
        ">",
        SPACE,
        (["{"], [f"<{prefix}parameter"], [f"</{prefix}invoke>"]),
    )
    for prefix in _PREFIXES
)


def read_bare_invoke(machine: TextMachine, row: Dialect, size: int) -> Reading[None]:
    """Read an `<invoke name="…">` block that no marker announces; its head must be followed by a body."""
    head = yield from machine.test(*_BARE_INVOKES)
    if not head or not head[1].group(2).strip("\"' "):
        machine.take(size)
        raise NotACall
    yield from read_invokes(machine, row, head[1])
