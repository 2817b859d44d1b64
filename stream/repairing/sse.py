"""Repairs the bytes of an answer of Chat Completions, as they come from a server."""

import json
import logging
import re
from collections.abc import Callable
from typing import Any, Literal

from stream.errors import StreamValueError
from stream.readers.options import MAX_LINE_CHARS
from stream.repairing.chat import ChatRepair

__all__ = ["SseRepair"]

_DONE = object()
_BOM = b"\xef\xbb\xbf"
_BEFORE = re.compile(rb"(?:\xef(?:\xbb(?:\xbf)?)?)?\s*")  # an answer: some servers send line ends meanwhile
_LINE_END = rb"(?:\r\n|\n|\r(?!\n))"
_END_OF_EVENT, _LINES = re.compile(_LINE_END + b"{2}"), re.compile(_LINE_END)
_LONGEST_OBJECT = 64 * 2**20

logger = logging.getLogger(__name__)


class SseRepair:
    """Repairs the bytes of one answer: server-sent events (unchanged ones pass as they came), or one object.

    The methods are those of `ChatRepair`, and take and return `bytes`. An object of more than 64 MiB passes as it is.
    """

    def __init__(self, repair: ChatRepair) -> None:
        self._repair = repair
        self._held = bytearray()  # of the event, or of the answer that is one object
        self._kind: Literal["unknown", "events", "object", "passing"] = "unknown"
        self._closed = False
        self._is_ahead = False  # the line feed that ends the last event went out before it came

    def feed(self, data: bytes) -> list[bytes]:
        """Return what takes the place of a network read.

        Raises
        ------
        StreamValueError
            If an event is longer than 4 MiB.
        """
        if self._is_ahead and data:
            data, self._is_ahead = data.removeprefix(b"\n"), False
        searched = max(len(self._held) - 3, 0) if self._kind == "events" else 0
        buffer: bytes | bytearray = data
        if self._held or self._kind != "events":
            self._held += data
            buffer = self._held
        if self._kind == "unknown" and not _BEFORE.fullmatch(self._held):
            self._kind = "object" if _BEFORE.sub(b"", self._held, 1).startswith(b"{") else "events"
        if self._kind == "object" and len(self._held) > _LONGEST_OBJECT:
            logger.warning("an answer of more than %d bytes passes without repair", _LONGEST_OBJECT)
            self._kind = "passing"
        if self._kind == "passing" or (self._kind == "unknown" and len(self._held) >= len(_BOM)):
            return self._all()
        found, start = list[bytes](), 0
        has_returns = buffer.find(b"\r", searched) >= 0
        while self._kind == "events" and (end := _end_of_event(buffer, searched, has_returns)):
            event, start = bytes(buffer[start:end]), end
            searched = end
            if end == len(buffer) and event.endswith(b"\r\n\r"):  # a read was cut within a line end
                event, self._is_ahead = event + b"\n", True
            found += self._clean(event)
        if buffer is self._held:
            del self._held[:start]
        else:
            self._held += buffer[start:]
        if self._kind == "events" and len(self._held) > MAX_LINE_CHARS:
            raise StreamValueError(f"an event is longer than {MAX_LINE_CHARS} bytes")
        return found

    def _all(self) -> list[bytes]:
        whole, self._held = bytes(self._held), bytearray()
        return [whole] if whole else []

    def _clean(self, event: bytes) -> list[bytes]:
        fields, value = _parsed(event)
        if value is _DONE:
            return [*self._closing(self._repair.close), event]
        if self._closed or not isinstance(value, dict):
            return [event]
        chunks = self._repair.feed(value)
        if len(chunks) == 1 and chunks[0] is value:
            return [event]
        return [fields + b"".join(map(_event, chunks))] if chunks else []  # an event without data is an error for some

    def close(self) -> list[bytes]:
        """Return the last bytes: what was still held."""
        if self._kind != "object":
            return self._end(self._repair.close)
        (whole,) = self._all()
        try:
            answer = json.loads(whole)
        except (ValueError, RecursionError):
            return [whole]
        clean = self._repair.whole(answer)
        return [whole if clean is answer else _json(clean)]

    def fail(self, error: Exception) -> list[bytes]:
        """Return the last bytes of an answer that broke off."""
        return self._all() if self._kind == "object" else self._end(lambda: self._repair.fail(error))

    def _end(self, end: Callable[[], list[Any]]) -> list[bytes]:
        left = self._all()
        if left and _parsed(left[0])[1] is not None:
            return [*self._clean(left[0] + b"\n\n"), *self._closing(end)]
        # The half of an event says nothing; a page without events has no half.
        return self._closing(end) or left

    def _closing(self, end: Callable[[], list[Any]]) -> list[bytes]:
        """The last events, once."""
        is_first, self._closed = not self._closed, True
        return [*map(_event, end())] if is_first else []


def _end_of_event(buffer: bytes | bytearray, start: int, has_returns: bool) -> int:
    """Index after the first end of an event at or after `start`; 0 if the event is incomplete."""
    if has_returns:
        return end.end() if (end := _END_OF_EVENT.search(buffer, start)) else 0
    at = buffer.find(b"\n\n", start)
    return 0 if at < 0 else at + 2


def _parsed(event: bytes) -> tuple[bytes, Any]:
    """The lines of an event beside its data, and its JSON value: `_DONE` for the last one, None for any other."""
    if event.startswith(b"data: ") and event.find(b"\n") == len(event) - 2 and b"\r" not in event:  # as nearly all are
        return b"", _value(event[6:])
    lines = _LINES.split(event.removeprefix(_BOM))
    texts = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    fields = b"".join(line + b"\n" for line in lines if line and not line.startswith(b"data:"))
    return fields, _value(b"\n".join(texts))


def _value(data: bytes) -> Any:
    data = data.strip()
    try:
        return _DONE if data == b"[DONE]" else json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + _json(chunk) + b"\n\n"


def _json(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a pair of surrogates
        return json.dumps(value, separators=(",", ":")).encode()
