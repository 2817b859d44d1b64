"""From a stream of Chat Completions to a clean one: `repair` for a program, `ChatRepair` and `SseRepair` for shells.

A chunk in which nothing was held or changed passes as the very object. What was held or changed comes in new chunks,
each with one piece of text, one piece of thoughts or one call.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stream.checks import check_choice
from stream.errors import StreamTypeError, StreamValueError
from stream.events import Event, Finish, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.readers.calls.values import NOTHING, dumps, fields_of, listed, plain, text_of
from stream.readers.formats.chat_completions import OpenAIReader
from stream.readers.formats.failures import failed_by
from stream.readers.formats.message_reader import REASONING_FIELDS
from stream.readers.options import MAX_ARGUMENT_CHARS, MAX_LINE_CHARS, declared_names
from stream.readers.text.dialect import clean_name
from stream.redaction import logged_name
from stream.request_bodies import asks_for_data

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Sequence,
    )

    from stream.readers.options import Tools

__all__ = ["ChatRepair", "SseRepair", "repair", "repair_sync", "repaired", "repaired_sync"]

_Piece: TypeAlias = tuple[dict[str, Any], str | None]  # the delta and the finish reason of a new chunk
_REPLACED = ("index", "delta", "message", "finish_reason", "logprobs")  # fields of a choice
_MOST_CALLS, _MOST_CHOICES = 1 << 14, 128  # that are remembered; what a server sends is endless
_READ = ("content", "tool_calls", *REASONING_FIELDS)  # fields of which a reader makes events

logger = logging.getLogger(__name__)


def repair(
    source: AsyncIterable[Any] | Awaitable[AsyncIterable[Any]],
    *,
    tools: Tools = None,
    told: Literal["hide", "run"] = "hide",
    without_tools: Literal["drop", "pass"] = "drop",
) -> AsyncIterator[Any]:
    """A stream of Chat Completions whose text may be spoken: no call, no thought and no marker is left in it.

    Calls that the model wrote as text become structured ones; thoughts go to `reasoning_content`. Calls that cannot be
    read, and those of tools that were not offered, are dropped and logged by name. A stream that was clean comes as it
    was. The source is closed at the end.

    Parameters
    ----------
    source : async iterable or awaitable of one
        The client's stream: chunks as dicts or as objects of the `openai` package, or server-sent events as `bytes`.
    tools : Tools
        The tools that the request offers: names, OpenAI tool dicts, or objects with a `name`. Calls of other names are
        run by nobody, so they are dropped if they were written as text; structured calls always pass.
    told : {"hide", "run"}
        What becomes of a call that the model only tells of (`ToolCallStart.told`).
    without_tools : {"drop", "pass"}
        With `tools=None`, calls written as text are dropped, or nothing is repaired.

    Returns
    -------
    AsyncIterator
        Chunks of the source's kind. An exception of the source is raised after the text before it.

    Raises
    ------
    StreamTypeError, StreamValueError
        If a parameter is of another type or value.

    Examples
    --------
    >>> text = '<tool_call>{"name": "dim", "arguments": {"percent": 40}}</tool_call>'
    >>> chunks = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}]
    >>> for chunk in repair_sync(chunks, tools=["dim"]):
    ...     (choice,) = chunk["choices"]
    ...     print([call["function"] for call in choice["delta"].get("tool_calls", ())], choice["finish_reason"])
    [{'name': 'dim', 'arguments': '{"percent": 40}'}] None
    [] tool_calls
    """
    if not (inspect.isawaitable(source) or hasattr(source, "__aiter__")):
        raise StreamTypeError(
            f"source is of type {type(source).__name__}; it must be an asynchronous iterable of chunks"
        )
    return repaired(source, ChatRepair(tools, told=told, without_tools=without_tools))


async def repaired(source: Any, chunks_of: ChatRepair) -> AsyncGenerator[Any]:
    """The source's chunks or bytes, repaired; `chunks_of` is used up."""
    chunks = await source if inspect.isawaitable(source) else source
    shell: ChatRepair | SseRepair | None = None
    try:
        try:
            async for chunk in chunks:
                if shell is None:
                    shell = _shell(chunk, chunks_of)
                for clean in shell.feed(chunk):
                    yield clean
        except Exception as error:  # (each client has its own)
            for clean in shell.fail(error) if shell else ():
                yield clean
            raise
        for clean in shell.close() if shell else ():
            yield clean
    finally:
        close = getattr(chunks, "aclose", None) or getattr(chunks, "close", None)
        closing = close() if close is not None else None
        if inspect.isawaitable(closing):
            await closing


def repair_sync(
    source: Iterable[Any],
    *,
    tools: Tools = None,
    told: Literal["hide", "run"] = "hide",
    without_tools: Literal["drop", "pass"] = "drop",
) -> Iterator[Any]:
    """The chunks of a stream of Chat Completions, clean; see `repair`.

    Raises
    ------
    StreamTypeError, StreamValueError
        If a parameter is of another type or value.
    """
    if not hasattr(source, "__iter__"):
        raise StreamTypeError(f"source is a {type(source).__name__}; it must be an iterable of chunks")
    return repaired_sync(source, ChatRepair(tools, told=told, without_tools=without_tools))


def repaired_sync(source: Iterable[Any], chunks_of: ChatRepair) -> Iterator[Any]:
    """The twin of `repaired`."""
    shell: ChatRepair | SseRepair | None = None
    try:
        try:
            for chunk in source:
                if shell is None:
                    shell = _shell(chunk, chunks_of)
                yield from shell.feed(chunk)
        except Exception as error:
            yield from shell.fail(error) if shell else ()
            raise
        yield from shell.close() if shell else ()
    finally:
        if hasattr(source, "close"):
            source.close()


def _shell(chunk: object, repair: ChatRepair) -> ChatRepair | SseRepair:
    return SseRepair(repair) if isinstance(chunk, bytes | bytearray | memoryview) else repair


class ChatRepair:
    """Repairs one stream, chunk by chunk, without input or output.

    An adapter feeds it each chunk and passes on what comes back; `events` are those of the last call, of the first
    choice, for a `CueRouter`. Each request needs an object of its own. See `repair` for the parameters and errors.

    Parameters
    ----------
    not_offered : {"drop", "pass"}
        What becomes of a call written as text whose tool was not offered: `"pass"` is for frameworks that answer such
        calls themselves.
    """

    def __init__(
        self,
        tools: Tools = None,
        *,
        told: Literal["hide", "run"] = "hide",
        without_tools: Literal["drop", "pass"] = "drop",
        not_offered: Literal["drop", "pass"] = "drop",
    ) -> None:
        check_choice("told", told, ("hide", "run"))
        check_choice("without_tools", without_tools, ("drop", "pass"))
        check_choice("not_offered", not_offered, ("drop", "pass"))
        self.offered = declared_names(tools)
        self.runs_told, self.passes_unknown = told == "run", not_offered == "pass"
        self.events: list[Event] = []
        self._passes_all = self.offered is None and without_tools == "pass"
        self._first = _Choice(self)
        self._choices = {"0": self._first}
        self._read, self._passes = self._first.reader.feed, self._first.passes
        self._last: Any = {}  # chunk, whose other fields what is held at the end gets

    @classmethod
    def of_request(cls, body: Mapping[str, Any], **options: Any) -> ChatRepair:
        """A repair for the answer to a request: offered is what its body says, and JSON that it asks for stays."""
        offered = [*listed(body.get("tools")), *listed(body.get("functions"))]
        named = [fields_of(tool.get(str(tool.get("type")))) or tool for tool in map(fields_of, offered)]
        names = [tool["name"] for tool in named if isinstance(tool.get("name"), str) and tool["name"]]
        is_none = body.get("tool_choice") == "none"
        made = cls(None if not offered else [] if is_none else names, **options)
        made._passes_all |= asks_for_data(body)
        return made

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
        events = self.events = self._read(chunk)  # which passes over other choices than the first
        if self._passes(chunk, events):
            self._last = chunk
            return [chunk]
        one = self._first
        choices = listed(fields_of(chunk).get("choices"))
        choice = fields_of(choices[0]) if choices else NOTHING
        if len(choices) > 1 or choice.get("index"):
            return self._several(chunk, choices)
        pieces = one.pieces(choice, events)
        if pieces is None:
            self._last = chunk
            return [chunk]
        if not choices:  # an error ends what was held
            return [*self._from_last(0, pieces), chunk]
        self._last = chunk
        return _chunks(chunk, [(choice, pieces)])

    def _several(self, chunk: Any, choices: Sequence[Any]) -> list[Any]:
        """The chunks in place of one with several choices, or with another than the first."""
        found: list[tuple[Mapping[str, Any], list[_Piece] | None]] = []
        self._last = chunk
        for choice in map(fields_of, choices):
            index, events = choice.get("index") or 0, self.events
            known = dumps(index) if len(self._choices) < _MOST_CHOICES else next(reversed(self._choices))  # the rest
            one = self._choices.setdefault(known, _Choice(self, index))
            if one is not self._first:  # which has been read
                events = one.reader.feed({"choices": [plain({**choice, "index": 0})]})
            found.append((choice, one.pieces(choice, events)))
        return [chunk] if all(pieces is None for _, pieces in found) else _chunks(chunk, found)

    def close(self) -> list[Any]:
        """Return the last chunks: what was still held."""
        return self._end(lambda reader: reader.close())

    def fail(self, error: Exception) -> list[Any]:
        """Return the last chunks of a stream that failed for its client, whose error is the caller's to raise."""
        return self._end(lambda reader: reader.fail(failed_by(error)))

    def _end(self, end: Callable[[OpenAIReader], list[Event]]) -> list[Any]:
        chunks: list[Any] = []
        for one in self._choices.values():
            events = end(one.reader)
            chunks += self._from_last(one.index, one.pieces(NOTHING, events) or [])
            if one is self._first:
                self.events = events
        return chunks

    def _from_last(self, index: object, pieces: list[_Piece]) -> list[Any]:
        like = {name: value for name, value in _as_dict(self._last).items() if name != "usage"}
        return [_like(self._last, chunk) for chunk in _chunks(like, [({"index": index}, pieces)])]

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
        one, message = _Choice(self), fields_of(fields_of(choice).get("message"))
        if not message:
            return choice
        calls = [{"index": at, **fields_of(call)} for at, call in enumerate(listed(message.get("tool_calls")))]
        delta = {**message, "tool_calls": calls or None}
        given = {"delta": delta, "finish_reason": choice.get("finish_reason") or "stop"}
        events = one.reader.feed({"choices": [given]})
        pieces = one.pieces(given, events, of_whole=True)
        if pieces is None:
            return choice
        deltas = [delta for delta, _ in pieces]
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        text = "".join(delta.get("content") or "" for delta in deltas)
        thoughts = "".join(delta.get("reasoning_content") or "" for delta in deltas)
        clean = {name: value for name, value in message.items() if name != "tool_calls"}
        clean["content"] = (text.strip() or None) if calls else text
        clean |= {"reasoning_content": thoughts} if thoughts else {}
        clean |= {"tool_calls": [{k: v for k, v in call.items() if k != "index"} for call in calls]} if calls else {}
        kept = {name: value for name, value in choice.items() if name != "logprobs"}
        return {**kept, "message": clean, "finish_reason": pieces[-1][1]}


@dataclass(slots=True)
class _Fragmented:
    """A structured call that passes as it comes, with the index that goes out."""

    index: int
    id: str
    open_at: int | None  # the index; None once it is complete


class _Choice:
    """One of the answers of a stream: its reader, and what of it has gone out.

    A structured call passes as it comes, fragment by fragment. One that may repeat a call written as text, or whose
    fragments are not plain, goes out whole when its reader is sure of it.
    """

    def __init__(self, repair: ChatRepair, index: object = 0) -> None:
        self._repair, self.index = repair, index
        self.reader = OpenAIReader(repair.offered)
        self._calls = 0  # that have gone out
        self._fragmented: dict[object, _Fragmented] = {}  # calls that pass as they come, by their index
        self._passing: dict[int, _Fragmented | None] = {}  # the same by their ordinal
        self._odd: dict[object, None] = {}  # indices of other calls
        self._dropped: dict[str, ToolCallEnd] = {}  # calls written as text that nobody runs, by name
        self._wanted: dict[tuple[str, str], ToolCallEnd] = {}  # of these, those that came as structured calls, by id
        self._awaits_client = False  # a recovered call has gone out
        self._may_await = False  # a structured one has, and no text after it
        self._has_role = False

    def passes(self, chunk: Any, events: list[Event]) -> bool:
        """Whether a chunk is one piece of text, thoughts or arguments that stays as it is; false for a few that do."""
        try:  # nearly all chunks: this way they cost a third (bench.stream_repair)
            if type(chunk) is dict:
                (choice,) = chunk["choices"]
                extra = delta = choice["delta"]
            else:
                (choice,) = chunk.__dict__["choices"]
                choice = choice.__dict__
                extra, delta = choice["delta"].__pydantic_extra__, choice["delta"].__dict__
            if choice["finish_reason"] or choice["index"]:
                return False
            if events:
                (event,) = events
                if type(event) is TextDelta and event.text == delta["content"] and not delta.get("tool_calls"):
                    self._may_await = False
                    return True
                return (
                    type(event) is ReasoningDelta
                    and event.text in map(extra.get, REASONING_FIELDS)
                    and not (delta.get("content") or delta.get("tool_calls"))
                )
            (call,) = delta["tool_calls"]
            if type(call) is dict:
                function = call["function"]
                is_more = len(delta) == len(function) == 1 and len(call) == 2
            else:
                call = call.__dict__
                function = call["function"].__dict__
                is_more = not (call["id"] or function["name"] or delta["content"] or extra)
            index = call["index"]
            return is_more and self._fragmented[index].open_at == index and type(function["arguments"]) is str
        except (AttributeError, LookupError, TypeError, ValueError):
            return False

    def pieces(self, choice: Mapping[str, Any], events: list[Event], *, of_whole: bool = False) -> list[_Piece] | None:
        """Return what goes out in place of a choice of a chunk, one text or call each; None if it passes as it is."""
        delta, reason = fields_of(choice.get("delta") or choice.get("message")), choice.get("finish_reason")
        content, calls = delta.get("content"), delta.get("tool_calls")
        fragments, is_same = self._fragments(calls, events)
        if delta.get("function_call") is not None and not calls:  # the older form passes with the rest of its delta
            begun: dict[int, None] = {event.index: None for event in events if isinstance(event, ToolCallStart)}
            self._passing |= begun
            self._calls, self._may_await = self._calls + len(begun), True
        own = next(((name, delta[name]) for name in REASONING_FIELDS if delta.get(name)), ("", ""))
        said, thought, new_calls, found = "", "", 0, list[dict[str, Any]]()
        for event in events:
            match event:
                case TextDelta():
                    said += event.text
                    self._may_await = self._may_await and not event.text.strip()
                    found.append({"content": event.text})
                case ReasoningDelta():
                    thought += event.text
                    found.append({own[0] if event.text == own[1] else "reasoning_content": event.text})
                case ToolCallStart() if not event.from_text:  # a call of its own
                    self._wanted.pop((event.tool_name, event.tool_call_id), None)
                    if event.index in self._passing:
                        found, fragments = found + fragments, []
                case ToolCallEnd():
                    ended = self._end_call(event)
                    new_calls += len(ended)
                    found += ended
                case ToolResult():  # the server runs its calls
                    self._awaits_client = self._may_await = False
                case Finish():
                    new_calls += len(self._wanted)
                    found += map(self._written, self._wanted.values())
                    self._end_round()
        found += fragments
        is_a_result = delta.get("role") == "tool"
        is_same &= not new_calls and thought == own[1] and said == ("" if is_a_result else _text_of(content))
        last = self._reason(reason)
        if is_same and last == reason and not (said and calls and not of_whole):
            self._has_role = self._has_role or "role" in delta
            return None
        rest = {name: value for name, value in delta.items() if name not in _READ and value is not None}
        if self._has_role:
            rest.pop("role", None)
        if rest:
            self._has_role = True
            found = [{**rest, **found[0]}, *found[1:]] if found else [{"content": "", **rest}]
        pieces: list[_Piece] = [(piece, None) for piece in found]
        return [*pieces, ({}, last)] if reason else pieces

    def _fragments(self, calls: Any, events: list[Event]) -> tuple[list[dict[str, Any]], bool]:
        """The fragments of structured calls that pass, each as a delta, and whether they are one that is as it came."""
        if not calls:
            return [], True
        for kept in (self._fragmented, self._passing, self._odd):
            if len(kept) > _MOST_CALLS:
                for key in [*kept][: _MOST_CALLS // 2]:
                    del kept[key]
        starts = [event for event in events if isinstance(event, ToolCallStart) and not event.from_text]
        ended = {event.index for event in events if isinstance(event, ToolCallEnd)}
        given = [calls] if isinstance(calls, Mapping) else listed(calls)
        found: list[dict[str, Any]] = []
        for came in given:
            fragment = _set_fields(came)
            if not isinstance(fragment, dict):
                continue
            function, index = fields_of(fragment.get("function")), fragment.get("index")
            name, own_id, arguments = text_of(function.get("name")), fragment.get("id"), function.get("arguments")
            index = index if type(index) is int else dumps(index)
            start = next((one for one in starts if name and one.tool_name == clean_name(name)), None)
            known = self._fragmented.get(index)
            if start is not None:
                starts.remove(start)
            elif name and (known is None or known.open_at is None or (own_id and known.id and own_id != known.id)):
                if name in self._dropped:  # perhaps the server made a structured call of one that was dropped
                    wanted = replace(self._dropped.pop(name), tool_call_id=text_of(own_id))
                    _remember(self._wanted, (name, wanted.tool_call_id), wanted)
                known = None
            if start is not None or known is None:
                is_plain = type(index) is int and isinstance(arguments, str | None) and isinstance(own_id, str | None)
                is_plain = is_plain and index not in self._odd and "parameters" not in function
                if start is None or start.tool_name != name or not is_plain:
                    self._odd[index] = None  # it goes out whole when it ends; or it repeats another call
                    self._fragmented.pop(index, None)
                    continue
                known = self._fragmented[index] = _Fragmented(self._calls, own_id or "", self._calls)
                self._passing[start.index] = known
                self._calls, self._may_await = self._calls + 1, True
            elif known.open_at is None and arguments:
                continue
            elif name or own_id or not isinstance(arguments, str | None):  # names and ids are not sent twice
                written = arguments if isinstance(arguments, str) else dumps(arguments)
                fragment = {"function": {"arguments": "" if arguments is None else written}}
            if arguments and any(self._passing.get(ordinal) is known for ordinal in ended):
                text, brace, after = fragment["function"]["arguments"].rpartition("}")
                fragment["function"] |= {"arguments": text + brace} if "<|" in after else {}
            found.append({"tool_calls": [{**fragment, "index": known.index}]})
        is_same = len(given) == len(found) == 1 and found[0]["tool_calls"][0] == _set_fields(given[0])
        return found, is_same

    def _end_call(self, call: ToolCallEnd) -> list[dict[str, Any]]:
        """What goes out at the end of a call: nothing, or the call as a delta."""
        if not call.from_text:
            if call.index in self._passing:
                fragmented = self._passing.pop(call.index)
                if fragmented is not None:
                    fragmented.open_at = None
                return []
            self._may_await = True
            return [self._written(call)] if call.tool_name else []
        offered, why = self._repair.offered, ""
        if call.status != "ok":
            why = call.status
        elif call.told and not self._repair.runs_told:
            why = "only told of"
        elif not self._repair.passes_unknown and (offered is None or call.tool_name not in offered):
            _remember(self._dropped, call.tool_name, call)
            why = "not offered"
        else:
            self._awaits_client = True
            return [self._written(call)]
        logger.warning("dropped a call that was written as text: %s (%s)", logged_name(call.tool_name), why)
        return []

    def _written(self, call: ToolCallEnd) -> dict[str, Any]:
        """A whole call as a delta."""
        index, self._calls = self._calls, self._calls + 1
        function = {"name": call.tool_name, "arguments": call.arguments_json}
        own_id = call.tool_call_id or f"call_{secrets.token_hex(12)}"
        return {"tool_calls": [{"index": index, "id": own_id, "type": "function", "function": function}]}

    def _end_round(self) -> None:
        self._may_await = self._may_await or bool(self._wanted)
        for kept in (self._fragmented, self._passing, self._odd, self._dropped, self._wanted):
            kept.clear()

    def _reason(self, reason: str | None) -> str | None:
        if reason == "stop" and (self._awaits_client or self._may_await):
            return "tool_calls"
        return "stop" if reason == "tool_calls" and not self._calls else reason


def _remember(kept: dict[Any, ToolCallEnd], key: object, call: ToolCallEnd) -> None:
    """Keep a call, and of older ones what fits into the longest arguments; a server's calls may have no end."""
    kept[key] = call
    while len(kept) > 1 and sum(1024 + len(one.arguments_json) for one in kept.values()) > MAX_ARGUMENT_CHARS:
        del kept[next(iter(kept))]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (fields_of(part).get("text") for part in listed(content))
    return "".join(text for text in texts if isinstance(text, str))


def _chunks(like: Any, found: Sequence[tuple[Mapping[str, Any], list[_Piece] | None]]) -> list[Any]:
    """Chunks with the other fields of `like`, one for each piece; what is said of all of them comes with the last."""
    around = {name: value for name, value in _as_dict(like).items() if name not in ("choices", "usage")}
    chunks: list[dict[str, Any]] = []
    for choice, pieces in found:
        if pieces is None:
            chunks.append({**around, "choices": [_set_fields(choice)]})
            continue
        index = choice.get("index") or 0
        for delta, reason in pieces:
            chunks.append({**around, "choices": [{"index": index, "delta": delta, "finish_reason": reason}]})
        if pieces:
            rest = {k: v for k, v in choice.items() if k not in _REPLACED}
            chunks[-1]["choices"][0] |= plain(rest)
    usage = fields_of(like).get("usage")
    if chunks and usage is not None:
        chunks[-1]["usage"] = plain(usage)
    return [_like(like, chunk) for chunk in chunks]


def _set_fields(value: Any) -> Any:
    """A value as JSON has it, without the fields of objects that were not set: `None` would take their place."""
    if isinstance(value, Mapping):
        return {name: _set_fields(one) for name, one in value.items()}
    return _as_dict(value) if hasattr(value, "model_dump") else plain(value)


def _as_dict(chunk: Any) -> dict[str, Any]:
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


class SseRepair:
    """Repairs the bytes of one answer: server-sent events (unchanged ones pass as they came), or one object.

    The methods are those of `ChatRepair`, and take and return `bytes`. An object of more than 64 MiB passes as it is.
    """

    def __init__(self, repair: ChatRepair) -> None:
        self._repair = repair
        self._held = bytearray()  # of the event, or of the answer that is one object
        self._searched = 0
        self._kind: Literal["unknown", "events", "object", "passing"] = "unknown"
        self._closed = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return what takes the place of a network read.

        Raises
        ------
        StreamValueError
            If an event is longer than 4 MiB.
        """
        self._held += data
        if self._kind == "unknown" and (start := self._held.removeprefix(_BOM).lstrip()):
            self._kind = "object" if start.startswith(b"{") else "events"
        if self._kind == "object" and len(self._held) > _LONGEST_OBJECT:
            logger.warning("an answer of more than %d bytes passes without repair", _LONGEST_OBJECT)
            self._kind = "passing"
        if self._kind == "passing":
            return self._all()
        found = []
        while self._kind == "events" and (end := _END_OF_EVENT.search(self._held, max(self._searched - 3, 0))):
            event = bytes(self._held[: end.end()])
            del self._held[: end.end()]
            self._searched = 0
            found += self._clean(event)
        self._searched = len(self._held)
        if self._kind == "events" and self._searched > MAX_LINE_CHARS:
            raise StreamValueError(f"an event is longer than {MAX_LINE_CHARS} bytes")
        return found

    def _all(self) -> list[bytes]:
        whole, self._held = bytes(self._held), bytearray()
        return [whole] if whole else []

    def _clean(self, event: bytes) -> list[bytes]:
        fields, value = _parsed(event)
        if value is _DONE and not self._closed:
            self._closed = True
            return [*map(_event, self._repair.close()), event]
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
        found = [out for event in left if _parsed(event)[1] is not None for out in self._clean(event + b"\n\n")]
        is_cut = not found and all(_parsed(event)[1] is None for event in left)
        if not self._closed:
            self._closed = True
            found += map(_event, end())
        # The half of an event says nothing; a page without events has no half.
        return found or (left if is_cut else [])


_DONE = object()
_BOM = b"\xef\xbb\xbf"
_LINE_END = rb"(?:\r\n|\n|\r(?!\n))"
_END_OF_EVENT, _LINES = re.compile(_LINE_END + b"{2}"), re.compile(_LINE_END)
_LONGEST_OBJECT = 64 * 2**20


def _parsed(event: bytes) -> tuple[bytes, Any]:
    """The lines of an event beside its data, and its JSON value: `_DONE` for the last one, None for any other."""
    lines = _LINES.split(event.removeprefix(_BOM))
    texts = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    fields = b"".join(line + b"\n" for line in lines if line and not line.startswith(b"data:"))
    data = b"\n".join(texts).strip()
    try:
        return fields, _DONE if data == b"[DONE]" else json.loads(data)
    except (ValueError, RecursionError):
        return fields, None


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + _json(chunk) + b"\n\n"


def _json(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a pair of surrogates
        return json.dumps(value, separators=(",", ":")).encode()
