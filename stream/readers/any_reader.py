"""A reader for a stream of any format: its first message that says something decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream.readers.formats import format_of, reader_for
from stream.readers.openai_reader import OpenAIReader
from stream.readers.options import declared_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.events import Event, StreamFailed
    from stream.readers.message_reader import MessageReader
    from stream.readers.options import Tools

__all__ = ["AnyReader"]

_MOST_UNDECIDED = 64  # messages that are kept until one decides


class AnyReader:
    r"""Reads any format of `FORMATS`, as bytes, text, decoded messages or the packages' objects.

    A stream that never decides is Chat Completions. See `MessageReader` for the parameters and methods.

    Examples
    --------
    >>> reader = AnyReader()
    >>> reader.feed(b'data: {"type": "ping"}\n\ndata: {"type": "message_')
    []
    >>> reader.feed(b'delta", "delta": {"stop_reason": "end_turn"}}\n\n'), reader.close()
    ([Finish(reason='end_turn')], [])
    """

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        self._tools, self._options = declared_names(tools), options
        self._reader: MessageReader = OpenAIReader(self._tools, **options)
        self._is_decided = False
        self._undecided: list[Mapping[str, Any]] = []

    def feed(self, data: Any, /) -> list[Event]:
        """Return the events that this piece of the stream makes certain; see `MessageReader.feed`."""
        events = [event for message in self._reader.messages(data) for event in self._take_in(message)]
        return events + self._reader.check_line()

    def close(self) -> list[Event]:
        """Return the last events; see `MessageReader.close`."""
        return self._decide("chat") + self._reader.close()

    def fail(self, failed: StreamFailed) -> list[Event]:
        """Return the last events of a stream that its client says has failed."""
        return self._decide("chat") + self._reader.fail(failed)

    def pass_over(self, value: object) -> None:
        """Note a decoded value that came in place of a message; the stream goes on."""
        self._reader.pass_over(value)

    def _take_in(self, message: Mapping[str, Any]) -> list[Event]:
        if self._is_decided:
            return self._reader.feed(message)
        if name := format_of(message):
            return self._decide(name) + self._reader.feed(message)
        if len(self._undecided) < _MOST_UNDECIDED:
            self._undecided.append(message)
        return []

    def _decide(self, name: str) -> list[Event]:
        """Leave the stream to the reader of a format; return the events of the messages so far."""
        if name != "chat":
            self._reader = reader_for(name, self._tools, **self._options).take_over(self._reader)
        self._is_decided = True
        # One call less for each later item.
        self.feed, self.close, self.fail = self._reader.feed, self._reader.close, self._reader.fail  # type: ignore[method-assign]
        return [event for message in self._undecided for event in self._reader.feed(message)]
