r"""From network reads to JSON objects: lines, or objects that follow each other without a line end.

Lines end at `\n` alone: `str.splitlines` would also cut at U+2028 and others that are legal inside a JSON string.
"""

from __future__ import annotations

import codecs
import json
from typing import Any

from stream.readers.parse.scanner import JsonScanner

__all__ = ["NdjsonDecoder"]

_KEPT_OF_A_BAD_LINE = 200
_OTHER_FIELDS = (":", "event:", "id:", "retry:")  # of server-sent events


class NdjsonDecoder:
    r"""Cuts a byte stream into JSON objects.

    Blank lines, carriage returns, a byte order mark, a `data:` prefix, `[DONE]`, other fields of server-sent events, an
    object over several lines and a missing last line end are accepted. Anything else is skipped to the end of its line.

    Attributes
    ----------
    bad_line : the beginning of the first line that was skipped, None if there was none.

    Examples
    --------
    >>> decoder = NdjsonDecoder()
    >>> decoder.feed(b'{"a": 1}{"b"'), decoder.feed(b': 2}\n')
    ([{'a': 1}], [{'b': 2}])
    """

    __slots__ = ("_decode", "_head", "_pieces", "_scanner", "_skipping", "bad_line")

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._head = ""  # of a line, before its object
        self._pieces: list[str] = []
        self._scanner: JsonScanner | None = None
        self._skipping = False
        self.bad_line: str | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the objects that this read completes."""
        *lines, rest = self._decode(data).split("\n")
        found: list[dict[str, Any]] = []
        for line in lines:
            if self._scanner or self._head or self._skipping or not self._whole(line, found):
                self._part(line, found)
                self._end_line(found)
        if rest:
            self._part(rest, found)
        return found

    def close(self) -> None:
        """End the stream: an object that is not complete is a bad line."""
        if self._scanner:
            self._note_bad("".join(self._pieces))
        else:
            self._end_line([])

    def _whole(self, line: str, found: list[dict[str, Any]]) -> bool:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if isinstance(value, dict):
            found.append(value)
        return True

    def _part(self, text: str, found: list[dict[str, Any]]) -> None:
        """Take in a piece of a line, and find the objects that end in it."""
        position = 0
        while position < len(text) and not self._skipping:
            if self._scanner is None:
                start = text.find("{", position)
                self._head += text[position : start if start >= 0 else len(text)][:_KEPT_OF_A_BAD_LINE]
                if start < 0:
                    return
                if _before(self._head) not in ("", "data:"):
                    self._skip(self._head + text[start:])
                    return
                self._head, self._scanner, position = "", JsonScanner(lenient=False), start
            end = self._scanner.scan(text, position)
            self._pieces.append(text[position:end])
            position = end
            if self._scanner.done:
                self._take(found)
            elif self._scanner.failed:
                self._skip("".join(self._pieces) + text[position:])

    def _end_line(self, found: list[dict[str, Any]]) -> None:
        if self._scanner:
            self._part("\n", found)
        if not self._skipping and not self._scanner:
            head = _before(self._head).removeprefix("data:").strip()
            if head and head != "[DONE]":
                self._note_bad(head)
        self._head, self._skipping = "", False

    def _take(self, found: list[dict[str, Any]]) -> None:
        text = "".join(self._pieces)
        self._pieces, self._scanner = [], None
        if not self._whole(text, found):
            self._note_bad(text)  # deeper than Python's reader goes

    def _skip(self, text: str) -> None:
        self._pieces, self._scanner, self._skipping = [], None, True
        self._note_bad(text)

    def _note_bad(self, line: str) -> None:
        if self.bad_line is None and not line.startswith(_OTHER_FIELDS):
            self.bad_line = line[:_KEPT_OF_A_BAD_LINE]


def _before(head: str) -> str:
    return head.strip().removeprefix("\ufeff").strip()
