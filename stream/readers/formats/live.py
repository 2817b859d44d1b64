"""A reader for the Gemini Live API: one WebSocket, many turns, with audio and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stream.events import Interrupted, ToolCallCancelled, TranscriptDelta
from stream.readers.calls.values import listed
from stream.readers.formats.gemini import GeminiReader, google_fields, word_of
from stream.readers.formats.message_reader import usage_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.readers.options import Tools

__all__ = ["LiveReader"]

_OF_A_TURN = ("model_turn", "output_transcription", "generation_complete")


class LiveReader(GeminiReader):
    """Reads a Live session's messages, as JSON or as the package's objects; see `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = LiveReader()
    >>> reader.feed(b'{"serverContent": {"outputTranscription": {"text": "Good night."}}}')
    [TranscriptDelta(text='Good night.', speaker='assistant')]
    >>> reader.feed({"serverContent": {"turnComplete": True}}), reader.close()
    ([Finish(reason='turn_complete')], [])
    """

    COUNTS: ClassVar[tuple[str, str, str]] = ("prompt_token_count", "response_token_count", "total_token_count")

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._finished = True  # a session that closes between turns is complete

    def _read(self, fields: Mapping[str, Any]) -> None:
        message = google_fields(fields)
        self._counts = message.get("usage_metadata") or self._counts
        self._content(google_fields(message.get("server_content")))
        for call in listed(google_fields(message.get("tool_call")).get("function_calls")):
            self._finished = False
            self._call(google_fields(call))
        for identity in listed(google_fields(message.get("tool_call_cancellation")).get("ids")):
            if self._streaming and self._streaming[0].call.id == identity:
                self._end_streamed(cut=True)
            elif isinstance(identity, str):
                self._order.emit(ToolCallCancelled(identity))
        if message.get("error"):
            self._fail_with(message)

    def _content(self, content: Mapping[str, Any]) -> None:
        if content.get("interrupted"):
            self._order.emit(Interrupted())
        heard = google_fields(content.get("input_transcription")).get("text")
        if heard and isinstance(heard, str):
            self._order.emit(TranscriptDelta(heard, "user"))
        if any(content.get(name) for name in _OF_A_TURN):
            self._finished = False
        self._pass_on("transcript", google_fields(content.get("output_transcription")).get("text"))
        self._parts(google_fields(content.get("model_turn")).get("parts"))
        if content.get("turn_complete"):
            usage, self._counts, self._last_finish = google_fields(self._counts), None, None
            self._end_with(
                word_of(content.get("turn_complete_reason")) or "turn_complete", usage_of(usage, *self.COUNTS)
            )
