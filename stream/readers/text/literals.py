"""Python's literals in a call's parentheses; nothing is evaluated."""

import re
from typing import Any

from stream.readers.text.dialect import Unreadable

__all__ = ["WORDS", "read_keywords"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|(?P<number>[-+]?(?:\d+\.\d*|\.?\d+)(?:[eE][-+]?\d+)?(?![\w.]))|(?P<word>[^\W\d]\w*)|(?P<mark>[][{}(),:=]))""",
    re.DOTALL,
)
WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_ESCAPE = re.compile(r"""\\(?:([\\'"/abfnrtv\n])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3}))""")
_SIMPLE = {
    "\\": "\\", "'": "'", '"': '"', "/": "/", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\n": "",
}  # fmt: skip
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_DEEPEST = 100
_LONGEST_NUMBER = 400


def read_keywords(source: str) -> dict[str, Any]:
    """Return the keyword arguments in a call's parentheses; all but `name=literal` raise `Unreadable`."""
    reader = _Reader(source.rstrip())
    found: dict[str, Any] = {}
    while reader.kind:
        name = reader.take("word")
        reader.take("mark", "=")
        found[name] = reader.value(0)
        if reader.kind:
            reader.take("mark", ",")
    return found


class _Reader:
    """One token of look-ahead over a source."""

    def __init__(self, source: str) -> None:
        self.source, self.position = source, 0
        self.kind = self.text = ""
        self.take("")

    def take(self, kind: str, text: str | None = None) -> str:
        """Return the token, which must be of a kind and may have to have a text, and go on to the next one."""
        taken = self.text
        match = _TOKEN.match(self.source, self.position)
        if self.kind != kind or text not in (None, taken) or (not match and self.position < len(self.source)):
            raise Unreadable
        self.kind = (match.lastgroup or "") if match else ""
        self.text, self.position = (match[self.kind], match.end()) if match else ("", self.position)
        return taken

    def value(self, depth: int) -> Any:
        if self.kind == "string":
            text = ""
            while self.kind == "string":  # neighbouring strings are one, as in Python
                text += _unquote(self.take("string"))
            return text
        if self.kind == "number":
            text = self.take("number")
            if len(text) > _LONGEST_NUMBER:
                raise Unreadable
            return float(text) if any(mark in text for mark in ".eE") else int(text)
        if self.kind == "word" and self.text in WORDS:
            return WORDS[self.take("word")]
        if self.kind == "mark" and self.text in _CLOSERS and depth < _DEEPEST:
            return self._group(self.take("mark"), depth)
        raise Unreadable

    def _group(self, opener: str, depth: int) -> Any:
        keys: list[str] = []
        values: list[Any] = []
        closer, commas = _CLOSERS[opener], 0
        while self.text != closer or self.kind != "mark":
            value = self.value(depth + 1)
            if opener == "{":
                keys.append(str(value))
                self.take("mark", ":")
                value = self.value(depth + 1)
            values.append(value)
            if self.kind == "mark" and self.text == ",":  # it may lack after the last value
                self.take("mark")
                commas += 1
            elif self.text != closer:
                raise Unreadable
        self.take("mark")
        if opener == "{":
            return dict(zip(keys, values, strict=True))
        return values[0] if opener == "(" and len(values) == 1 and not commas else values


def _unquote(literal: str) -> str:
    quote = 3 if literal[:3] in ("'''", '"""') and len(literal) >= 6 else 1
    return _ESCAPE.sub(_unescape, literal[quote:-quote])


def _unescape(match: re.Match[str]) -> str:
    simple, two, four, eight, octal = match.groups()
    if simple is not None:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    return chr(code) if code < 0x110000 else match.group()
