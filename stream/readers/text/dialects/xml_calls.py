"""Calls written as tags: `<function=…>`, `<invoke name="…">` and their values, and key and value tags."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stream.readers.text.dialect import Dialect, Draft, NotACall, Reading, Unreadable
from stream.readers.text.literals import json_arguments
from stream.readers.text.patterns import NAME, SPACE, Part, Run, Shape, marker_pattern, normalize
from stream.readers.text.scanner import JsonScanner

if TYPE_CHECKING:
    from stream.readers.text.parser import Parser

__all__ = ["FUNCTION", "INVOKE", "KEYED", "keyed", "read_bare_tags", "read_tags"]

# DeepSeek's tags have a prefix, with full-width or ASCII bars.
_PREFIXES = ("", "｜DSML｜", "|DSML|")
FUNCTION = Shape(SPACE, "<function=")
INVOKE = Shape(SPACE, "<", tuple([f"{prefix}invoke", Run(r"\s{1,8}")] for prefix in _PREFIXES))
KEYED = Shape(Run(r"[\r\n]{0,4}"), NAME, Run(r"[ \t]{0,4}[\r\n]{0,4}"), (["<arg_key>"], ["</tool_call>"]))

_TITLE = Run(r"[^<>\r\n]{1,64}")
_ATTRIBUTES = Run(r"[^<>]{0,96}")
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")
_LINE_ENDS = re.compile(r"\A\r?\n|\r?\n\Z")
_ARGUMENT_VALUE = marker_pattern("</arg_value>", "</tool_call>")
_KEY_END = marker_pattern("</arg_key>")
_LONGEST_KEY = 256
_MARKS = 4  # characters of JSON at least, beside a key and its value


class _Markup:
    """The tags of a call in one spelling: of `"function"`, with a title after `=`, or `"invoke"`, with a `name`."""

    def __init__(self, tag: str, prefix: str = "") -> None:
        self._titled = tag == "function"
        space = Run(r"\s{1,8}")
        head: list[Part] = ["=", _TITLE] if self._titled else [space, _ATTRIBUTES]
        named: list[Part] = [
            space, "name=", Run(r"[\"']?\s{0,4}"), Run(r"[^<>\"'\s][^<>\"']{0,63}"), Run(r"[\"']?\s{0,4}")
        ]  # fmt: skip
        opener = f"<{prefix}parameter" + ("=" if self._titled else "")
        self.end, self.value_end = f"</{prefix}{tag}>", normalize(f"</{prefix}parameter>")
        self.closing = Shape(SPACE, self.end)
        self.call = Shape(f"<{prefix}{tag}", *head, ">")
        self.parameter = Shape(f"<{prefix}parameter", *head, ">")
        # A call without a marker before it: a named opening tag, and the beginning of a body.
        self.bare = Shape(
            f"<{prefix}{tag}", *(head if self._titled else named), ">", SPACE, (["{"], [opener], [self.end])
        )
        self.value_ends = marker_pattern(self.value_end, opener + ("" if self._titled else " name="), self.end)

    def title(self, head: re.Match[str]) -> tuple[str, bool]:
        """Return the name that an opening tag gives, and whether its value is text; else it is JSON."""
        inside = head[head.lastindex or 0]
        if self._titled:
            return inside.strip().strip("\"'"), True
        attributes = {key: double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(inside)}
        return attributes.get("name", ""), attributes.get("string") != "false"


_MARKUPS = (_Markup("function"), *(_Markup("invoke", prefix) for prefix in _PREFIXES))


def read_tags(parser: Parser, row: Dialect, match: re.Match[str] | None = None) -> Reading[None]:
    """Read `<function=NAME>` or `<invoke name="NAME">`, or as many of them as a block holds."""
    while True:
        yield from parser.skip_space()
        head = yield from parser.test(*(markup.call for markup in _MARKUPS))
        if not head:
            parser.take(1)  # no call begins here any more
            raise Unreadable
        markup = _MARKUPS[head[0]]
        parser.take(head[1].end() - parser.position)
        draft = parser.call(markup.title(head[1])[0])
        if (yield from parser.skip_space()) == "{":
            yield from json_arguments(parser, draft)
            yield from parser.read(markup.closing)
        else:
            yield from _parameters(parser, row, draft, markup)
        if not row.wraps or not (yield from parser.test(FUNCTION, INVOKE)):
            return


def read_bare_tags(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a call in tags that no marker announces; its head must be followed by a body."""
    if not (yield from parser.test(*(markup.bare for markup in _MARKUPS))):
        parser.take(size)
        raise NotACall
    yield from read_tags(parser, row)


def _parameters(parser: Parser, row: Dialect, draft: Draft, markup: _Markup) -> Reading[None]:
    """Read parameters up to the call's own end, or to the end of its block after a value."""
    values = _Values(parser.max_argument_chars)
    while True:
        yield from parser.skip_space()
        if (yield from parser.accept(markup.end)):
            break
        head = yield from parser.read(markup.parameter)
        if head:
            value, end = yield from parser.find(*markup.value_ends, values.left)
            if end == markup.value_end:
                parser.take(len(end))
            key, is_text = markup.title(head)
            if values.take_in(key, value):
                values[key] = _text(_LINE_ENDS.sub("", value)) if is_text else _json(value)
        elif values.some and (yield from parser.test(*row.ends)):
            break
        else:
            raise Unreadable
    parser.settle(draft, values.json)


def keyed(parser: Parser, row: Dialect, match: re.Match[str]) -> Reading[None]:
    """Read a name and its `<arg_key>` and `<arg_value>` tags up to the closing marker, which must come."""
    parser.take(match.end(3) - parser.position)
    draft = parser.call(match.group(2))
    values = _Values(parser.max_argument_chars)
    while True:
        yield from parser.skip_space()
        if (yield from parser.accept("</tool_call>")):
            break
        if not (yield from parser.accept("<arg_key>")):
            raise Unreadable
        key, end = yield from parser.find(*_KEY_END, _LONGEST_KEY)
        if len(key) > _LONGEST_KEY:
            raise Unreadable
        parser.take(len(end))
        yield from parser.skip_space()
        yield from parser.accept("<arg_value>")
        value, end = yield from parser.find(*_ARGUMENT_VALUE, values.left)
        if end == "</arg_value>":
            parser.take(len(end))
        if values.take_in(key, value):
            values[key.strip()] = _text(value)
    parser.settle(draft, values.json)


class _Values(dict[str, str]):
    """The values of a call as JSON, by key; past the cap they are dropped."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left, self.some = most, False

    def take_in(self, key: str, value: str) -> bool:
        self.left, self.some = self.left - len(key) - len(value) - _MARKS, True
        return self.left >= 0

    @property
    def json(self) -> str | None:
        members = ", ".join(f"{_text(key)}: {value}" for key, value in self.items())
        return f"{{{members}}}" if self.left >= 0 else None


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(value: str) -> str:
    scanner = JsonScanner()
    end = scanner.scan(value, 0)
    if not scanner.finish() or value[end:].strip():
        raise Unreadable
    return value.strip()
