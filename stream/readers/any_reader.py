"""A reader for a stream of any format: its first message that says something decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream.readers.formats import format_of, reader_for
from stream.readers.message_reader import MessageReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.events import Event, StreamFailed
    from stream.readers.options import Tools

__all__ = ["AnyReader"]

_MOST_UNDECIDED = 64  # messages that are kept until one decides
_DEFAULT = "chat"


class AnyReader(MessageReader):
    r"""Reads any format of `FORMATS`, as bytes, text, decoded messages or the packages' objects.

    See `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = AnyReader()
    >>> reader.feed(b'data: {"type": "ping"}\n\ndata: {"type": "message_')
    []
    >>> reader.feed(b'delta", "delta": {"stop_reason": "end_turn"}}\n\n'), reader.close()
    ([Finish(reason='end_turn')], [])
    """

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._tools, self._options = tools, options
        self._undecided: list[Mapping[str, Any]] = []
        self._values: list[object] = []  # that are no messages
        self._found: MessageReader | None = None

    def _read(self, fields: Mapping[str, Any]) -> None:
        if self._found is not None:
            self._hand_on(self._found, fields)
        elif name := format_of(fields):
            self._decide(name)
            self._read(fields)
        elif len(self._undecided) < _MOST_UNDECIDED:
            self._undecided.append(fields)

    def _decide(self, name: str) -> MessageReader:
        found = self._found = reader_for(name, self._tools, **self._options)
        found.decoder = self.decoder
        # One call less for each later item.
        self.feed, self.close, self.fail = found.feed, found.close, found.fail  # type: ignore[method-assign]
        self.pass_over = found.pass_over  # type: ignore[method-assign]
        for value in self._values:
            found.pass_over(value)
        for fields in self._undecided:
            self._hand_on(found, fields)
        return found

    def _hand_on(self, found: MessageReader, fields: Mapping[str, Any]) -> None:
        for event in found.feed(fields):
            self._turn.emit(event)

    def _fail(self, failed: StreamFailed) -> None:
        found = self._found or self._decide(_DEFAULT)
        for event in found.fail(failed):
            self._turn.emit(event)
        self._failed = True

    def pass_over(self, value: object) -> None:
        """Note a decoded value that came in place of a message; the stream goes on."""
        self._values = self._values or [value]

    def fail(self, failed: StreamFailed) -> list[Event]:
        """Return the last events of a stream that its client says has failed."""
        self._fail(failed)
        return self._take()

    def close(self) -> list[Event]:
        """Return the last events; see `MessageReader.close`."""
        found = self._decide(_DEFAULT)
        return [*self._take(), *found.close()]
