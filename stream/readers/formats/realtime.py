"""A reader for OpenAI's Realtime, and xAI's: one WebSocket, many responses, with audio and what it says."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stream.events import Interrupted, ServerError, TranscriptDelta
from stream.readers.calls.values import count, fields_of, name_of, text_of
from stream.readers.formats.failures import unwrap
from stream.readers.formats.responses import ResponsesReader
from stream.readers.options import MOST_KEPT, Tools

__all__ = ["RealtimeReader"]

_OF_RESPONSES = ("response.completed", "response.incomplete", "response.cancelled", "response.failed")


class RealtimeReader(ResponsesReader):
    """Reads a Realtime session, by the names of today and of the beta; see `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = RealtimeReader()
    >>> reader.feed({"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": "Good night."})
    [TranscriptDelta(text='Good night.', speaker='assistant')]
    >>> reader.feed('{"type": "response.done", "response": {"id": "r", "status": "completed"}}'), reader.close()
    ([Finish(reason='completed')], [])
    """

    EVENTS: ClassVar[Mapping[str, str]] = {
        **{name: method for name, method in ResponsesReader.EVENTS.items() if name not in _OF_RESPONSES},
        "session.created": "_session",
        "session.updated": "_session",
        "response.created": "_begins",
        "response.done": "_ended",
        "response.output_audio.delta": "_audio",
        "response.audio.delta": "_audio",
        "input_audio_buffer.speech_started": "_interrupted",
        "conversation.item.input_audio_transcription.completed": "_heard",
        "error": "_fault",
    }

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._finished = True  # a session that closes between responses is complete
        self._is_numbered = False  # nor resumed
        self._open: set[str] = set()  # responses, by their ids
        self._audio_form, self._audio_hz = "audio/pcm", 24_000

    def _session(self, event: Mapping[str, Any]) -> None:
        session = fields_of(event.get("session"))
        audio = fields_of(fields_of(session.get("audio")).get("output")).get("format")
        fields, older = fields_of(audio), session.get("output_audio_format")
        self._audio_form = text_of(fields.get("type")) or text_of(older) or self._audio_form
        self._audio_hz = count(fields.get("rate")) or self._audio_hz

    def _begins(self, event: Mapping[str, Any]) -> None:
        if len(self._open) >= MOST_KEPT:
            self._open.clear()
        self._open.add(name_of(fields_of(event.get("response")).get("id")))
        self._finished, self._last_finish = False, None

    def _ended(self, event: Mapping[str, Any]) -> None:
        response = fields_of(event.get("response"))
        owner = name_of(response.get("id"))
        reason = text_of(response.get("status")) or "completed"
        details = fields_of(response.get("status_details"))
        if reason == "incomplete":
            reason = text_of(details.get("reason")) or reason
        elif reason == "failed":
            self._items.end_all(cut=True, owner=owner)
            self._fault(details)
        self._open.discard(owner)
        self._last_finish = None
        self._end_response(owner if self._open else None, response, reason)
        self._finished = not self._open

    def _fault(self, error: Mapping[str, Any]) -> None:
        failed = unwrap(error)
        self._order.emit(ServerError(failed.message, failed.code))

    def _audio(self, event: Mapping[str, Any]) -> None:
        self._pass_on_audio(event.get("delta"), self._audio_form, self._audio_hz)

    def _interrupted(self, _event: Mapping[str, Any]) -> None:
        self._order.emit(Interrupted())

    def _heard(self, event: Mapping[str, Any]) -> None:
        said = event.get("transcript")
        if isinstance(said, str) and said and event.get("status") != "in_progress":
            self._order.emit(TranscriptDelta(said, "user"))
