r"""From network reads to JSON objects: lines, or objects that follow each other without a line end.

Lines end at `\n` alone: `str.splitlines` would also cut at U+2028 and others that are legal inside a JSON string.
"""

from __future__ import annotations

import codecs
import json
from typing import Any

from stream.readers.options import MAX_LINE_CHARS
from stream.readers.parse.scanner import JsonScanner

__all__ = ["NdjsonDecoder"]

_KEPT_OF_A_BAD_LINE = 200
_MOST_PIECES = 4096  # then they are joined
_OTHER_FIELDS = (":", "event:", "id:", "retry:")  # of server-sent events


class NdjsonDecoder:
    r"""Cuts a byte stream into JSON objects.

    Blank lines, carriage returns, a byte order mark, a `data:` prefix, `[DONE]`, other fields of server-sent events, an
    object over several lines and a missing last line end are accepted. Anything else is skipped to the end of its line.

    Attributes
    ----------
    bad_line : the beginning of the first line that was skipped, None if there was none.
    overflowed : whether an object was longer than `longest`. Nothing is read any more then.

    Parameters
    ----------
    longest : most characters of an object.

    Examples
    --------
    >>> decoder = NdjsonDecoder()
    >>> decoder.feed(b'{"a": 1}{"b"'), decoder.feed(b': 2}\n')
    ([{'a': 1}], [{'b': 2}])
    """

    __slots__ = ("_decode", "_head", "_longest", "_pieces", "_scanner", "_size", "_skipping", "bad_line", "overflowed")

    def __init__(self, longest: int = MAX_LINE_CHARS) -> None:
        self._longest = longest
        self._size = 0  # of the pieces
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._head = ""  # of a line, before its object
        self._pieces: list[str] = []
        self._scanner: JsonScanner | None = None
        self._skipping = False
        self.bad_line: str | None = None
        self.overflowed = False

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the objects that this read completes."""
        if self.overflowed:
            return []
        *lines, rest = self._decode(data).split("\n")
        found: list[dict[str, Any]] = []
        for line in lines:
            if self.overflowed:
                return found
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
        if len(line) > self._longest:
            return False
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
        while position < len(text) and not (self._skipping or self.overflowed):
            if self._scanner is None:
                start = text.find("{", position)
                head = self._head + text[position : start if start >= 0 else len(text)][:_KEPT_OF_A_BAD_LINE]
                self._head = head.lstrip()[:_KEPT_OF_A_BAD_LINE]
                if start < 0:
                    return
                if _before(self._head) not in ("", "data:"):
                    self._skip(self._head + text[start : start + _KEPT_OF_A_BAD_LINE])
                    return
                self._head, self._scanner, position = "", JsonScanner(lenient=False), start
            end = self._scanner.scan(text, position)
            self._pieces.append(text[position:end])
            if len(self._pieces) > _MOST_PIECES:
                self._pieces = ["".join(self._pieces)]
            self._size += end - position
            position = end
            if self._size > self._longest:
                self._overflow()
            elif self._scanner.done:
                self._take(found)
            elif self._scanner.failed:
                self._skip("".join(self._pieces) + text[position : position + _KEPT_OF_A_BAD_LINE])

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
        self._forget()
        if not self._whole(text, found):
            self._note_bad(text)  # deeper than Python's reader goes

    def _skip(self, text: str) -> None:
        self._forget()
        self._skipping = True
        self._note_bad(text)

    def _overflow(self) -> None:
        self._forget()
        self._head, self.overflowed = "", True

    def _forget(self) -> None:
        self._pieces, self._size, self._scanner = [], 0, None

    def _note_bad(self, line: str) -> None:
        if self.bad_line is None and not line.startswith(_OTHER_FIELDS):
            self.bad_line = line[:_KEPT_OF_A_BAD_LINE]


def _before(head: str) -> str:
    return head.strip().removeprefix("\ufeff").strip()
