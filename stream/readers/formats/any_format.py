"""The formats by name, the fields that identify each, and a reader for a stream of any of them."""

from collections.abc import Mapping
from typing import Any

from stream.events import Event, StreamFailed
from stream.readers.calls.values import NOTHING, fields_of
from stream.readers.formats.anthropic import AnthropicReader
from stream.readers.formats.chat_completions import OpenAIReader
from stream.readers.formats.gemini import GeminiReader, LiveReader
from stream.readers.formats.message_reader import MessageReader
from stream.readers.formats.ollama import OllamaReader
from stream.readers.formats.realtime import RealtimeReader
from stream.readers.formats.responses import ResponsesReader
from stream.readers.options import Tools, declared_names

__all__ = ["FORMATS", "AnyReader", "format_of"]

_MOST_UNDECIDED = 64  # messages that are kept until one decides
FORMATS: dict[str, type[MessageReader]] = {
    "chat": OpenAIReader, "ollama": OllamaReader, "responses": ResponsesReader, "realtime": RealtimeReader,
    "anthropic": AnthropicReader, "gemini": GeminiReader, "live": LiveReader,
}  # fmt: skip
"""The readers."""
# These decide: a type up to its first dot, or a whole one; then fields that are there and not null.
_TYPES = {
    **dict.fromkeys(
        ("session", "conversation", "input_audio_buffer", "output_audio_buffer", "rate_limits"), "realtime"
    ),
    **dict.fromkeys(("message_start", "message_delta", "message_stop"), "anthropic"),
    **{f"content_block_{step}": "anthropic" for step in ("start", "delta", "stop")},
    "chunk": "chat",
}
_FIELDS = {
    "choices": "chat",
    **dict.fromkeys(("candidates", "promptFeedback", "prompt_feedback"), "gemini"),
    **dict.fromkeys((
        "setupComplete", "setup_complete", "serverContent", "server_content", "toolCall", "tool_call",
        "toolCallCancellation", "tool_call_cancellation", "goAway", "go_away", "sessionResumptionUpdate",
        "session_resumption_update",
    ), "live"),
}  # fmt: skip


def format_of(fields: Mapping[str, Any]) -> str | None:
    """The format of a message; `None` if it could be of several."""
    kind = fields.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            response = fields_of(fields.get("response")).get("object")
            return "realtime" if fields.get("event_id") or response == "realtime.response" else "responses"
        if kind == "error":
            return "realtime" if fields.get("event_id") else "responses"  # a failure is one in any format
        if found := _TYPES.get(kind) or (_TYPES.get(kind.partition(".")[0]) if "." in kind else None):
            return found
    if fields.get("object") in ("chat.completion.chunk", "error"):
        return "chat"
    if "done" in fields and (fields.get("message") is not None or isinstance(fields.get("response"), str)):
        return "ollama"
    found = next((format_ for name, format_ in _FIELDS.items() if fields.get(name) is not None), None)
    if found is None and fields_of(fields.get("message")) is not NOTHING:
        return "ollama"  # of a server that says `done` at the end alone
    return found or ("chat" if fields.get("error") else None)


class AnyReader:
    """Reads any format of `FORMATS`, as bytes, text, decoded messages or the packages' objects.

    A stream that never decides is Chat Completions. Once a message decides, `feed`, `close` and `fail` are those of the
    format's reader. See `MessageReader` for the parameters and methods.
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
            self._reader = FORMATS[name](self._tools, **self._options).take_over(self._reader)
        self._is_decided = True
        # One call less for each later item.
        self.feed, self.close, self.fail = self._reader.feed, self._reader.close, self._reader.fail  # type: ignore[method-assign]
        return [event for message in self._undecided for event in self._reader.feed(message)]
