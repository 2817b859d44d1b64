"""Responses of a Realtime server that nobody hears: out of band and in text, as for a classification or a summary.

The server writes them beside the conversation's response, so each has a reader of its own: neither waits for the calls
of the other.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from cues.adapters._realtime_asking import response_id_of
from stream.events import Event, ToolCallEnd
from stream.readers.calls.values import fields_of
from stream.readers.formats.realtime import RealtimeReader
from stream.readers.options import Tools

__all__ = ["Asides"]

_MOST_OPEN = 64
_MOST_CALLS = 1024


class Asides:
    """The responses out of band in text that are open, and the calls that they made."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._readers: dict[str, RealtimeReader] = {}
        self._calls: dict[str, None] = {}

    def reader_of(self, kind: str, fields: Mapping[str, Any]) -> RealtimeReader | None:
        """The reader for a server event of such a response; `None` for any other event."""
        response_id = response_id_of(fields)
        if kind == "response.created" and response_id and _is_aside(fields_of(fields.get("response"))):
            if len(self._readers) >= _MOST_OPEN:
                del self._readers[next(iter(self._readers))]
            self._readers[response_id] = RealtimeReader(self._tools)
        return self._readers.pop(response_id, None) if kind == "response.done" else self._readers.get(response_id)

    def note(self, events: Iterable[Event]) -> None:
        """Note the calls among the events of a reader: their results make no sound."""
        for told in events:
            if isinstance(told, ToolCallEnd) and told.tool_call_id:
                if len(self._calls) >= _MOST_CALLS:
                    del self._calls[next(iter(self._calls))]
                self._calls[told.tool_call_id] = None

    def called(self, call_id: str) -> bool:
        """Whether such a response made a call."""
        return call_id in self._calls


def _is_aside(response: Mapping[str, Any]) -> bool:
    """Whether a new response is out of band and in text; a server that names no conversations has no such field."""
    modalities = response.get("output_modalities") or response.get("modalities")  # today's name, and the beta's
    return response.get("conversation_id", "") is None and modalities == ["text"]
