"""Readers for Gemini's `streamGenerateContent`, whose calls may stream, and for its Live API, with many turns."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stream.events import Event, Interrupted, StreamFailed, ToolCallCancelled, TranscriptDelta, Usage
from stream.readers.calls.arguments import PartialArguments
from stream.readers.calls.item_calls import ItemCall
from stream.readers.calls.values import fields_of, listed, name_of, snake_case, text_of
from stream.readers.formats.block_reader import BlockReader
from stream.readers.formats.failures import unwrap
from stream.readers.formats.message_reader import usage_of
from stream.readers.options import LONGEST_NAME, Tools
from stream.readers.text.dialect import Call

__all__ = ["GeminiReader", "LiveReader"]

# The server's own tools: the part that begins one, and the part that ends it.
_BEGINS = {"executable_code": "code_execution", "tool_call": ""}
_ENDS = ("code_execution_result", "tool_response")
_OK = ("OUTCOME_OK", "")
_OF_A_TURN = ("model_turn", "output_transcription", "generation_complete")


class GeminiReader(BlockReader):
    """Reads `GenerateContentResponse`s, as JSON or as the package's objects; see `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = GeminiReader()
    >>> part = {"functionCall": {"name": "lock", "args": {"door": "front"}}}
    >>> answer = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    >>> [event.arguments_json for event in reader.feed(answer)[1:2]], reader.close()
    (['{"door": "front"}'], [])
    """

    COUNTS: ClassVar[tuple[str, str, str]] = ("prompt_token_count", "candidates_token_count", "total_token_count")

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._streaming: tuple[ItemCall, PartialArguments] | None = None
        self._counts: Any = None  # of tokens, as they came last

    def close(self) -> list[Event]:
        """Return the last events; see `MessageReader.close`."""
        if self._counts is not None:
            self._usage = usage_of(_fields(self._counts), *self.COUNTS)
        return super().close()

    def _read(self, fields: Mapping[str, Any]) -> None:
        answer = _fields(fields)
        for candidate in listed(answer.get("candidates")):
            self._candidate(_fields(candidate))
        self._counts = answer.get("usage_metadata") or self._counts
        feedback = _fields(answer.get("prompt_feedback"))
        if reason := _word(feedback.get("block_reason")):
            message = text_of(feedback.get("block_reason_message")) or f"the prompt was blocked: {reason}"
            self._fail(StreamFailed(message, code=reason))
        elif answer.get("error"):
            self._fail(unwrap(answer))

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        if candidate.get("index"):
            return  # one of several answers to one question: the first one is spoken
        self._parts(_fields(candidate.get("content")).get("parts"))
        if reason := _word(candidate.get("finish_reason")):
            self._end_with(reason)

    def _end_with(self, reason: str, usage: Usage | None = None) -> None:
        self._end_streamed(cut=True)
        if reason == "MALFORMED_FUNCTION_CALL":
            self._order.finish(Call(), "malformed")
        self._finish(reason, usage)

    def _parts(self, parts: Any) -> None:
        for part in listed(parts):
            self._part(_fields(part))

    def _part(self, part: Mapping[str, Any]) -> None:
        self._pass_on("reasoning" if part.get("thought") else "text", part.get("text"))
        if part.get("function_call") is not None:
            self._call(_fields(part["function_call"]))
        if part.get("inline_data"):
            blob = _fields(part["inline_data"])
            form = text_of(blob.get("mime_type"))
            if form.startswith("audio/"):
                self._pass_on_audio(blob.get("data"), form)
        for name, tool in _BEGINS.items():
            if (begun := _fields(part.get(name))) or part.get(name) == {}:
                self._task_begins(begun.get("id"), _word(begun.get("tool_type")) or tool)
        for name in _ENDS:
            if (ended := _fields(part.get(name))) or part.get(name) == {}:
                self._task_ends(ended.get("id"), failed=_word(ended.get("outcome")) not in _OK)

    def _call(self, call: Mapping[str, Any]) -> None:
        """Take in a whole call, or the beginning, a piece or the end of one whose arguments stream."""
        goes_on, pieces = bool(call.get("will_continue")), call.get("partial_args")
        if call.get("name"):
            self._end_streamed(cut=True)
            begun = self._items.start(call.get("id"), call["name"])
            if not goes_on and not pieces:
                self._items.end(begun, call.get("args"))
                return
            self._streaming = begun, PartialArguments(call.get("args"), self._order.max_argument_chars)
        if self._streaming:
            self._streaming[1].add(map(_fields, listed(pieces)))
            if not goes_on:
                self._end_streamed()

    def _end_streamed(self, *, cut: bool = False) -> None:
        if self._streaming:
            (call, arguments), self._streaming = self._streaming, None
            self._items.end(call, arguments.json, cut=cut or arguments.goes_on)

    def _end_calls(self, *, was_cut: bool) -> None:
        self._end_streamed(cut=True)
        super()._end_calls(was_cut=was_cut)


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
        message = _fields(fields)
        self._counts = message.get("usage_metadata") or self._counts
        self._content(_fields(message.get("server_content")))
        for call in listed(_fields(message.get("tool_call")).get("function_calls")):
            self._finished = False
            self._call(_fields(call))
        cancelled = listed(_fields(message.get("tool_call_cancellation")).get("ids"))
        for identity in (name_of(one) for one in cancelled if isinstance(one, str)):
            if self._streaming and self._streaming[0].call.id == identity:
                self._end_streamed(cut=True)
            else:
                self._order.emit(ToolCallCancelled(identity))
        if message.get("error"):
            self._fail_with(message)

    def _content(self, content: Mapping[str, Any]) -> None:
        if content.get("interrupted"):
            self._order.emit(Interrupted())
        heard = _fields(content.get("input_transcription")).get("text")
        if heard and isinstance(heard, str):
            self._order.emit(TranscriptDelta(heard, "user"))
        if any(content.get(name) for name in _OF_A_TURN):
            self._finished = False
        self._pass_on("transcript", _fields(content.get("output_transcription")).get("text"))
        self._parts(_fields(content.get("model_turn")).get("parts"))
        if content.get("turn_complete"):
            usage, self._counts, self._last_finish = usage_of(_fields(self._counts), *self.COUNTS), None, None
            self._end_with(_word(content.get("turn_complete_reason")) or "turn_complete", usage)


def _fields(value: Any) -> Mapping[str, Any]:
    """A message's fields by the names that `google-genai` has for them: in snake case."""
    fields = fields_of(value)
    return {_snake(name): inner for name, inner in fields.items()} if fields is value else fields


def _word(value: Any) -> str:
    """The text of a value that is a text, or an enum's; `""` for others."""
    found = getattr(value, "value", value)
    return found if isinstance(found, str) else ""


def _snake(name: Any) -> str:
    """A field's name in snake case; `""` if it is none, or longer than any."""
    return snake_case(name) if isinstance(name, str) and len(name) <= LONGEST_NAME else ""
