"""A reader for the Gemini Live API: one WebSocket, many turns, with audio and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream.events import Interrupted, ToolCallCancelled, TranscriptDelta
from stream.readers.block_reader import usage_of
from stream.readers.gemini_reader import GeminiReader, google_fields, word_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.readers.options import Tools

__all__ = ["LiveReader"]

_OF_A_TURN = ("model_turn", "output_transcription", "generation_complete")


class LiveReader(GeminiReader):
    """Reads the server's messages of a Live session, as JSON or as the objects of `google-genai`.

    See `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = LiveReader()
    >>> reader.feed(b'{"serverContent": {"outputTranscription": {"text": "Good night."}}}')
    [TranscriptDelta(text='Good night.', speaker='assistant')]
    >>> reader.feed({"serverContent": {"turnComplete": True}}), reader.close()
    ([Finish(reason='turn_complete')], [])
    """

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._finished = True  # a session that closes between turns is complete

    def _read(self, fields: Mapping[str, Any]) -> None:
        message = google_fields(fields)
        if message.get("usage_metadata"):
            usage = google_fields(message["usage_metadata"])
            self._usage = usage_of(usage, "prompt_token_count", "response_token_count", "total_token_count")
        self._content(google_fields(message.get("server_content")))
        calls = google_fields(message.get("tool_call")).get("function_calls")
        for call in calls if isinstance(calls, list | tuple) else ():
            self._finished = False
            self._call(google_fields(call))
        ids = google_fields(message.get("tool_call_cancellation")).get("ids")
        for identity in ids if isinstance(ids, list | tuple) else ():
            self._cancel(identity)
        if message.get("error"):
            self._fail_with(message)

    def _content(self, content: Mapping[str, Any]) -> None:
        if content.get("interrupted"):
            self._turn.emit(Interrupted())
        heard = google_fields(content.get("input_transcription")).get("text")
        if heard and isinstance(heard, str):
            self._turn.emit(TranscriptDelta(heard, "user"))
        if any(content.get(name) for name in _OF_A_TURN):
            self._finished = False
        said = google_fields(content.get("output_transcription")).get("text")
        if said and isinstance(said, str):
            self._pass_on("transcript", said)
        self._parts(google_fields(content.get("model_turn")).get("parts"))
        if content.get("turn_complete"):
            usage, self._usage, self._last_finish = self._usage, None, None
            self._end_with(word_of(content.get("turn_complete_reason")) or "turn_complete", usage)

    def _cancel(self, identity: Any) -> None:
        if not isinstance(identity, str):
            return
        if self._streaming and self._streaming[0].call.id == identity:
            self._end_streamed(cut=True)
        else:
            self._turn.emit(ToolCallCancelled(identity))
