r"""From network reads to JSON objects: server-sent events, lines, one array, or objects that follow each other.

JSON lines end at `\n`, `\r\n` or `\r`; `str.splitlines` would also cut at U+2028 and others that are legal inside a
JSON string.
"""

import codecs
import json
from collections.abc import Iterator
from typing import Any

from stream.readers.options import MAX_LINE_CHARS
from stream.readers.text.scanner import JsonScanner, Pieces

__all__ = ["MessageDecoder"]

_KEPT_OF_A_BAD_LINE = 200
_FIELD = "data:"
_OTHER_FIELDS = (":", "event:", "id:", "retry:")  # of server-sent events
_BETWEEN = "\ufeff \t[],"  # around the objects of an array, and on blank lines
_WITH_AN_OBJECT = "data: {"
_BEFORE_AN_OBJECT = len(_WITH_AN_OBJECT)
_SPACE = " \t\n\r"
# `json.loads` costs half as much again: it looks for space around the value (bench/stream_formats.py).
_read_value = json.JSONDecoder().raw_decode


class MessageDecoder:
    """Cuts a byte stream into JSON objects.

    Blank lines, a byte order mark, `[DONE]`, an event of several `data:` lines, an object over several lines, an array
    round the objects and a missing last line end are accepted. Anything else is skipped to the end of its line. Nothing
    is read after an object of more than `longest` characters.
    """

    def __init__(self, longest: int = MAX_LINE_CHARS) -> None:
        self._longest = longest
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._after_return = False  # a "\n" that comes next belongs to the "\r" before it
        self._idle = True  # nothing of the line that comes next was seen, and no object is open
        self._head = ""  # of a line, before its object
        self._pieces = Pieces(longest)  # of the open object
        self._scanner: JsonScanner | None = None
        self._is_event = False  # the open object came after `data:`
        self._held: Pieces | None = None  # the line so far, where an event goes on in it
        self._skipped: str | None = None  # the beginning of what is skipped, up to the end of the line
        self.bad_line: str | None = None  # the beginning of the first line that was skipped
        self.overflowed = False  # an object was too long

    def feed(self, data: bytes | str) -> Iterator[dict[str, Any]]:
        """Yield the objects that this read completes, one at a time: a read may hold a whole answer."""
        text = data if isinstance(data, str) else self._decode(data)
        if self._after_return or "\r" in text:
            text = self._with_newlines(text)
        *lines, rest = text.split("\n")
        found: list[dict[str, Any]] = []
        for line in lines:
            if self.overflowed:
                return
            if not (self._idle and (not line or self._whole(line, found))):
                self._part(line, found)
                self._end_line(found)
            if found:
                yield from found
                found.clear()
        if not rest or self.overflowed:
            return
        may_be_whole = self._idle and rest[-1] == "}" and "{" in rest[:_BEFORE_AN_OBJECT]  # other fields may go on
        if not (may_be_whole and self._whole(rest, found)):
            self._part(rest, found)
            self._idle = not (self._head or self._pieces.size or self._held is not None or self._skipped is not None)
        yield from found

    def close(self) -> None:
        """End the stream: an object that is not complete is a bad line."""
        self._end_line([])
        if self._scanner:
            self._note_bad(self._pieces.text)

    def _with_newlines(self, text: str) -> str:
        if self._after_return and text[:1] == "\n":
            text = text[1:]
        elif not text:
            return text
        self._after_return = text.endswith("\r")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _whole(self, line: str, found: list[dict[str, Any]]) -> bool:
        """Take in a line that is one object, as nearly all are, or says nothing; return False for others."""
        start = line.find("{", 0, _BEFORE_AN_OBJECT)
        if start < 0:
            return line.startswith(_OTHER_FIELDS)
        is_first = not start or line.startswith(_WITH_AN_OBJECT) or line[:start].rstrip() in ("", _FIELD)
        return is_first and len(line) <= self._longest and self._taken(line, start, found)

    def _taken(self, text: str, start: int, found: list[dict[str, Any]]) -> bool:
        """Decode the object that begins at an index; return False if it is not JSON, or not the last of the text."""
        try:
            value, end = _read_value(text, start)
        except (ValueError, RecursionError):
            return False
        if end < len(text) and text[end:].strip(_SPACE):
            return False
        found.append(value)
        return True

    def _part(self, text: str, found: list[dict[str, Any]]) -> None:
        """Take in a piece of a line, and find the objects that end in it."""
        if self._held is not None:
            self._held.add(text)
            self._check_size(self._held.size)
            return
        position = 0
        while position < len(text) and not self.overflowed:
            if self._skipped is not None:
                self._skipped += text[position : position + _KEPT_OF_A_BAD_LINE - len(self._skipped)]
                return
            if self._scanner is None:
                position = self._begin(text, position)
            else:
                position = self._go_on(self._scanner, text, position, found)

    def _begin(self, text: str, position: int) -> int:
        """Look for the beginning of an object; return where to read on."""
        start = text.find("{", position)
        head = self._head + text[position : start if start >= 0 else len(text)]
        self._head = head.lstrip()[:_KEPT_OF_A_BAD_LINE]
        if start < 0:
            return len(text)
        before = self._head.strip(_BETWEEN)
        if before in ("", _FIELD):
            self._is_event = before == _FIELD
            self._head, self._scanner = "", JsonScanner(lenient=False, constants=True)
        else:
            self._skipped = self._head
        return start

    def _go_on(self, scanner: JsonScanner, text: str, position: int, found: list[dict[str, Any]]) -> int:
        """Read on in an object; return where it ends in this piece."""
        end = scanner.scan(text, position)
        self._pieces.add(text[position:end])
        self._check_size(self._pieces.size)
        if not self.overflowed and (scanner.done or scanner.failed):
            whole = self._pieces.text
            self._forget()
            if scanner.failed:
                self._skipped = whole[:_KEPT_OF_A_BAD_LINE]
            elif not self._taken(whole, 0, found):
                self._note_bad(whole)  # deeper than Python's reader goes
        return end

    def _end_line(self, found: list[dict[str, Any]]) -> None:
        line = None if self._held is None else self._held.text
        self._held = None
        if line == "" and self._scanner:  # the end of an event whose object is open
            self._skipped = self._pieces.text[:_KEPT_OF_A_BAD_LINE]
            self._forget()
        elif line is not None and self._scanner and not line.startswith(_OTHER_FIELDS):
            self._part(line.removeprefix(_FIELD).removeprefix(" "), found)
        if self._scanner:
            self._part("\n", found)
        left = self._head.strip(_BETWEEN).removeprefix(_FIELD).strip(_BETWEEN)
        if self._skipped is not None:
            self._note_bad(self._skipped)
        elif left not in ("", "DONE"):
            self._note_bad(left)
        self._head, self._skipped = "", None
        self._held = Pieces(self._longest) if self._scanner and self._is_event else None
        self._idle = self._scanner is None

    def _check_size(self, size: int) -> None:
        if size > self._longest:
            self._forget()
            self._head, self._held, self._skipped, self.overflowed = "", None, None, True

    def _forget(self) -> None:
        self._pieces, self._scanner = Pieces(self._longest), None

    def _note_bad(self, line: str) -> None:
        if self.bad_line is None and not line.startswith(_OTHER_FIELDS):
            self.bad_line = line[:_KEPT_OF_A_BAD_LINE]
