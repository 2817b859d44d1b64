"""Repairs the chunks of Chat Completions, without input or output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from stream.checks import check_choice
from stream.errors import StreamTypeError
from stream.events import Event, ToolCallEnd
from stream.readers.calls.arguments import properties_of
from stream.readers.calls.values import NOTHING, dumps, fields_of, listed
from stream.readers.formats.chat_completions import OpenAIReader, reason_of
from stream.readers.formats.failures import failed_by
from stream.readers.options import Start, Tools, checked_start, declared_name, declared_names
from stream.repairing.choice import NOT_OFFERED, Choice
from stream.request_bodies import asks_for_data

__all__ = ["ChatRepair"]

_MOST_DROPPED = 16
_MOST_CHOICES = 128  # that have a reader each; what a server sends is endless


class ChatRepair:
    """Repairs one stream, chunk by chunk, without input or output.

    An adapter feeds it each chunk and passes on what comes back. Each request needs an object of its own. See
    `stream.repair` for the parameters and errors.

    Parameters
    ----------
    not_offered : {"drop", "pass"}
        What becomes of a call written as text whose tool was not offered: `"pass"` is for frameworks that answer such
        calls themselves.
    calls_in_text : bool
        Whether text is searched for calls; not if the request asked for JSON: only thoughts before it leave it then.

    Attributes
    ----------
    dropped : deque of ToolCallEnd
        The last calls written as text that did not go out, without their arguments.
    """

    def __init__(
        self,
        tools: Tools = None,
        *,
        told: Literal["hide", "run"] = "hide",
        without_tools: Literal["drop", "pass"] = "drop",
        not_offered: Literal["drop", "pass"] = "drop",
        start: Start = "text",
        calls_in_text: bool = True,
    ) -> None:
        check_choice("told", told, ("hide", "run"))
        check_choice("without_tools", without_tools, ("drop", "pass"))
        check_choice("not_offered", not_offered, ("drop", "pass"))
        tools = tuple(tools) if isinstance(tools, Iterable) and not isinstance(tools, str | bytes | Mapping) else tools
        self.offered = declared_names(tools)
        self._properties = {declared_name(tool): properties_of(tool) for tool in tools or ()}
        self._runs_told, self._passes_unknown = told == "run", not_offered == "pass"
        self._passes_all = self.offered is None and without_tools == "pass"
        self._start, self._calls_in_text = checked_start(start), calls_in_text
        self.dropped = deque[ToolCallEnd](maxlen=_MOST_DROPPED)
        self._first = self._choice()
        self._choices = {"0": self._first}
        self._read, self._passes = self._first.reader.feed, self._first.passes
        self._last: Any = {}  # chunk, whose other fields what is held at the end gets

    @classmethod
    def of_request(cls, body: Mapping[str, Any], **options: Any) -> ChatRepair:
        """A repair for the answer to a request: offered is what its body says, and JSON that it asks for stays."""
        offered = [*listed(body.get("tools")), *listed(body.get("functions"))]
        named = [fields_of(tool.get(str(tool.get("type")))) or tool for tool in map(fields_of, offered)]
        tools = [tool for tool in named if isinstance(tool.get("name"), str) and tool["name"]]
        is_none = body.get("tool_choice") == "none"
        given = None if not offered else [] if is_none else tools
        return cls(given, calls_in_text=not asks_for_data(body), **options)

    def feed(self, chunk: Any) -> list[Any]:
        """Return the chunks that take the place of this one, of its type; a chunk without a change is returned itself.

        Parameters
        ----------
        chunk : dict or pydantic model
            A chunk of `/v1/chat/completions`.

        Raises
        ------
        StreamTypeError
            If it is of another type.
        """
        if self._passes_all:
            return [chunk]
        events = self._read(chunk)  # which passes over other choices than the first
        if self._passes(chunk, events):
            self._last = chunk
            return [chunk]
        fields = _as_dict(chunk)
        choices = [fields_of(choice) for choice in listed(fields.get("choices"))]
        if not choices:  # an error ends what was held
            return [*self._from_last(self._first.replaced(NOTHING, events) or []), chunk]
        self._last = chunk
        found = [self._replaced(choice, events) for choice in choices]
        if all(new is None for new in found):
            return [chunk]
        written = [[choice] if new is None else new for choice, new in zip(choices, found, strict=True)]
        return _chunks(chunk, fields, [choice for new in written for choice in new])

    def _replaced(self, choice: Mapping[str, Any], events: list[Event]) -> list[dict[str, Any]] | None:
        """What takes the place of a choice; None if it stays. `events` are those of the first choice."""
        index = choice.get("index") or 0
        name = dumps(index)
        if name not in self._choices and len(self._choices) < _MOST_CHOICES:
            self._choices[name] = self._choice(index)
        one = self._choices.get(name) or next(reversed(self._choices.values()))
        own = events if one is self._first else one.reader.feed({"choices": [{**choice, "index": 0}]})
        return one.replaced(choice, own)

    def _choice(self, index: object = 0) -> Choice:
        reader = OpenAIReader(self.offered, start=self._start, calls_in_text=self._calls_in_text)
        return Choice(reader, self._fault, self._drop, self._properties, index)

    def _drop(self, call: ToolCallEnd) -> None:
        self.dropped.append(replace(call, arguments_json=""))

    def _fault(self, call: ToolCallEnd) -> str:
        """Why a call written as text is dropped; `""` if it goes out."""
        if call.status != "ok":
            return call.status
        if call.told and not self._runs_told:
            return "only told of"
        is_known = self._passes_unknown or (self.offered is not None and call.tool_name in self.offered)
        return "" if is_known else NOT_OFFERED

    def close(self) -> list[Any]:
        """Return the last chunks: what was still held."""
        return self._end(lambda reader: reader.close())

    def fail(self, error: Exception) -> list[Any]:
        """Return the last chunks of a stream that failed for its client, whose error is the caller's to raise."""
        return self._end(lambda reader: reader.fail(failed_by(error)))

    def _end(self, end: Callable[[OpenAIReader], list[Event]]) -> list[Any]:
        ended = [one.replaced(NOTHING, end(one.reader)) or () for one in self._choices.values()]
        return self._from_last([choice for held in ended for choice in held])

    def _from_last(self, choices: Sequence[Any]) -> list[Any]:
        return _chunks(self._last, {**_as_dict(self._last), "usage": None}, choices)

    def whole(self, answer: Any) -> Any:
        """Return an answer that did not come as a stream, repaired alike; one without a change is returned itself.

        Raises
        ------
        StreamTypeError
            If it is neither a dict nor a pydantic model.
        """
        choices = listed(fields_of(answer).get("choices"))
        if self._passes_all or not choices:
            return answer
        fields = _as_dict(answer)
        written = [self._whole_choice(choice) for choice in listed(fields["choices"])]
        is_same = all(new is choice for new, choice in zip(written, fields["choices"], strict=True))
        return answer if is_same else _like(answer, {**fields, "choices": written})

    def _whole_choice(self, choice: Any) -> Any:
        one, message = self._choice(), fields_of(fields_of(choice).get("message"))
        if not message:
            return choice
        calls = [{"index": at, **fields_of(call)} for at, call in enumerate(listed(message.get("tool_calls")))]
        given = {"delta": {**message, "tool_calls": calls or None}, "finish_reason": reason_of(choice) or "stop"}
        pieces = one.replaced(given, one.reader.feed({"choices": [given]}), of_whole=True)
        if pieces is None:
            return choice
        deltas = [piece["delta"] for piece in pieces]
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        text = "".join(delta.get("content") or "" for delta in deltas)
        thoughts = "".join(delta.get("reasoning_content") or "" for delta in deltas)
        clean = {name: value for name, value in message.items() if name != "tool_calls"}
        clean["content"] = (text.strip() or None) if calls else text
        clean |= {"reasoning_content": thoughts} if thoughts else {}
        clean |= {"tool_calls": [{k: v for k, v in call.items() if k != "index"} for call in calls]} if calls else {}
        kept = {name: value for name, value in choice.items() if name != "logprobs"}
        return {**kept, "message": clean, "finish_reason": pieces[-1]["finish_reason"]}


def _chunks(like: Any, fields: Mapping[str, Any], choices: Sequence[Any]) -> list[Any]:
    """Chunks of the type of `like`, one for each choice, with the other `fields`; the usage comes with the last."""
    around = {name: value for name, value in fields.items() if name not in ("choices", "usage")}
    chunks = [{**around, "choices": [choice]} for choice in choices]
    if chunks and fields.get("usage") is not None:
        chunks[-1]["usage"] = fields["usage"]
    return [_like(like, chunk) for chunk in chunks]


def _as_dict(chunk: Any) -> dict[str, Any]:
    """A chunk's fields, without those of objects that were not set: `None` would take their place."""
    if isinstance(chunk, dict):
        return chunk
    if hasattr(chunk, "model_dump"):
        fields: dict[str, Any] = chunk.model_dump(exclude_unset=True, warnings=False)
        return fields
    raise StreamTypeError(
        f"chunk is of type {type(chunk).__name__}; it must be a dict, or an object of the openai package"
    )


def _like(chunk: Any, fields: dict[str, Any]) -> Any:
    """The fields as an object of the chunk's type."""
    if isinstance(chunk, dict):
        return fields
    try:
        return type(chunk).model_validate(fields)
    except ValueError:  # of a server with values of its own
        return type(chunk).model_construct(**fields)
