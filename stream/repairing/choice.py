"""One choice of a stream of Chat Completions: from what came, and its events, to what goes out."""

import logging
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stream.events import Event, Finish, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.readers.calls.arguments import fits_types, read_arguments, spelled_out
from stream.readers.calls.fragments import function_of, is_empty_object
from stream.readers.calls.values import dumps, fields_of, listed, name_of, text_of
from stream.readers.formats.chat_completions import OpenAIReader, reason_of
from stream.readers.formats.message_reader import REASONING_FIELDS
from stream.readers.options import LONGEST_NAME, MOST_KEPT
from stream.readers.text.dialect import clean_name
from stream.redaction import logged_name
from stream.repairing.copies import DroppedCalls
from stream.request_bodies import new_call_id

__all__ = ["NOT_OFFERED", "Choice"]

NOT_OFFERED = "not offered"
_REPLACED = ("index", "delta", "message", "finish_reason", "logprobs")  # fields of a choice
_READ = ("content", "tool_calls", *REASONING_FIELDS)  # fields of which a reader makes events

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Fragmented:
    """A structured call that passes as it comes."""

    ordinal: int  # among its reader's calls
    id: str
    name: str
    is_empty: bool  # no arguments have come
    is_open: bool = True
    held: dict[str, Any] | None = None  # its first piece, with `{}`, until it is sure that no other arguments come

    def is_another(self, name: str, identity: str) -> bool:
        """Whether a piece with a name, at the same index, is of another call."""
        return not self.is_open or name != self.name or bool(identity and self.id and identity != self.id)


class Choice:
    """One of the answers of a stream: its reader, and what of it has gone out.

    A structured call passes as it comes, fragment by fragment. One that may repeat a call written as text, or whose
    fragments are not plain, goes out whole when its reader is sure of it. `fault` says why a call written as text is
    dropped; `""` if it goes out. `drop` gets those that are.
    """

    def __init__(
        self,
        reader: OpenAIReader,
        fault: Callable[[ToolCallEnd], str],
        drop: Callable[[ToolCallEnd], None],
        properties: Mapping[str, Mapping[str, Any]],
        index: object = 0,
    ) -> None:
        self._fault, self._drop, self._properties, self._index = fault, drop, properties, index
        self.reader = reader
        reader.reads_one = True
        self._calls = 0  # that have gone out
        self._indices: dict[int, int] = {}  # of those that went out in pieces, by their ordinals
        self._fragmented: dict[
            object, _Fragmented | None
        ] = {}  # by the index that came; None for a call that goes out whole
        self._passing: dict[int, _Fragmented | None] = {}  # calls that pass as they come, by their ordinal
        self._custom: dict[str, None] = {}  # names of the custom tools among them, whose arguments are text
        self._dropped = DroppedCalls()
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
            known = self._fragmented[index]
            ordinal = known.ordinal  # type: ignore[union-attr]  # of None: AttributeError
            if self._indices[ordinal] != index or not known.is_open or known.held is not None or known.is_empty:  # type: ignore[union-attr]  # of None: as above
                return False
            return is_more and ordinal not in self.reader.waiting_ends and type(function["arguments"]) is str
        except (AttributeError, LookupError, TypeError, ValueError):
            return False

    def replaced(
        self, choice: Mapping[str, Any], events: list[Event], *, of_whole: bool = False
    ) -> list[dict[str, Any]] | None:
        """Return the choices that take the place of one, each with one text or call; None if it passes as it is."""
        delta, reason = fields_of(self.reader.delta_of(choice)), reason_of(choice)
        content, calls = delta.get("content") or delta.get("refusal"), delta.get("tool_calls")
        for event in events:  # a copy of it may stand beside it, as a structured call
            if isinstance(event, ToolCallEnd) and event.from_text and self._fault(event) == NOT_OFFERED:
                self._dropped.drop(event)
        given = [calls] if isinstance(calls, Mapping) else listed(calls)
        fragments = passing = self._fragments(given, events)
        if delta.get("function_call") is not None and not calls:  # the older form passes with the rest of its delta
            begun: dict[int, None] = {event.index: None for event in events if isinstance(event, ToolCallStart)}
            self._passing |= begun
            self._calls, self._may_await = self._calls + len(begun), True
        own = next(((name, delta[name]) for name in REASONING_FIELDS if delta.get(name)), ("", ""))
        said, thought, new_calls = "", "", 0
        found, late = list[dict[str, Any]](), list[dict[str, Any]]()
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
                    self._dropped.begins(event)
                    if event.index in self._passing:
                        found, fragments = found + fragments, []
                case ToolCallEnd() if held := self._held_back(event):
                    late.append(held)
                case ToolCallEnd():
                    ended = self._end_call(event)
                    new_calls += len(ended)
                    found += ended
                case ToolResult():  # the server runs its calls
                    self._awaits_client = self._may_await = False
                case Finish():
                    new_calls += len(self._dropped)
                    found += [self._written(*wanted) for wanted in self._dropped]
                    self._end_round()
        found += fragments
        self._number(late + found)
        is_a_result = delta.get("role") == "tool"
        is_same = not calls or (len(given) == len(passing) == 1 and passing[0]["tool_calls"] == given)
        is_same &= not new_calls and thought == own[1] and said == ("" if is_a_result else _text_of(content))
        last = self._reason(reason)
        index = choice.get("index") or self._index
        before = [{"index": index, "delta": piece, "finish_reason": None} for piece in late]
        if is_same and last == reason and not (said and calls and not of_whole):
            self._has_role = self._has_role or "role" in delta
            return [*before, dict(choice)] if before and choice else before or None
        rest = {name: value for name, value in delta.items() if name not in _READ and value is not None}
        if self._has_role:
            rest.pop("role", None)
        if calls and not found:
            rest.pop("function_call", None)  # a copy of a call that is held
        if rest:
            self._has_role = True
            found = [{**rest, **found[0]}, *found[1:]] if found else [{"content": "", **rest}]
        pieces = [{"index": index, "delta": piece, "finish_reason": None} for piece in found]
        if reason:
            pieces.append({"index": index, "delta": {}, "finish_reason": last})
        if pieces:  # what is said of all of them comes with the last
            pieces[-1] |= {name: value for name, value in choice.items() if name not in _REPLACED}
        return before + pieces

    def _number(self, deltas: list[dict[str, Any]]) -> None:
        """Give calls their indices, in the order in which they go out, for their ordinals; a whole one has none."""
        for call in (call for delta in deltas for call in delta.get("tool_calls", ())):
            ordinal, index = call["index"], self._indices.get(call["index"], self._calls)
            call["index"], self._calls = index, max(self._calls, index + 1)
            if ordinal is not None:
                self._indices[ordinal] = index

    def _fragments(self, given: Sequence[Any], events: list[Event]) -> list[dict[str, Any]]:
        """The fragments of structured calls that pass, each as a delta."""
        if not given:
            return []
        for kept in (self._fragmented, self._passing, self._custom, self._indices):
            if len(kept) > MOST_KEPT:
                for key in [*kept][: MOST_KEPT // 2]:
                    del kept[key]
        starts = [event for event in events if isinstance(event, ToolCallStart) and not event.from_text]
        ends = {
            event.index: event.arguments_json if event.status == "ok" else None
            for event in events
            if isinstance(event, ToolCallEnd)
        }
        ended = ChainMap(ends, self.reader.waiting_ends)
        passing = (self._fragment(came, starts, ended) for came in given if isinstance(came, dict))
        found = [fragment for fragment in passing if fragment is not None]
        for known in (self._fragmented.get(_index_of(came)) for came in given if isinstance(came, dict)):
            if known is not None and known.ordinal in self.reader.waiting_ends:
                known.is_open = False
        return [{"tool_calls": [one]} for one in found]

    def _fragment(
        self, came: dict[str, Any], starts: list[ToolCallStart], ended: Mapping[int, str | None]
    ) -> dict[str, Any] | None:
        """What passes of a fragment; None if its call goes out whole, or repeats another one."""
        fragment, own_id, index = came, came.get("id"), _index_of(came)
        function, field = function_of(came)
        place = "custom" if field == "input" else "function"
        function = fields_of(came.get(place))
        name, arguments = text_of(function.get("name")), function.get(field)
        name = "" if name == "null" else name
        if place == "custom" and name:
            self._custom[clean_name(name[:LONGEST_NAME])] = None
        fits = (
            one for one in starts if name and (one.tool_name, one.tool_call_id) == (clean_name(name), name_of(own_id))
        )
        start = next((one for one in fits if _ends_with(arguments, field, ended.get(one.index))), None)
        if index not in self._fragmented and not (name or own_id):
            self._join_to_last(index)
        known = self._fragmented.get(index)
        is_plain = type(index) is int and isinstance(arguments, str | None) and isinstance(own_id, str | None)
        is_plain = is_plain and "parameters" not in function and not (index in self._fragmented and known is None)
        if known is not None and known.held is not None and is_empty_object(ended.get(known.ordinal) or ""):
            known = None  # it has ended as it came: the fragment is of another call
        if start is not None:
            is_plain = is_plain and start is starts[0]  # what starts before it goes out whole, and first
            starts.remove(start)
            known = None
        elif name and (known is None or known.is_another(name, name_of(own_id))):
            self._dropped.want(name, index, name_of(own_id), arguments)
            known = None
        elif not name:
            self._dropped.go_on(index, arguments)
        if known is None:
            if start is None or start.tool_name != name or not is_plain:
                self._fragmented[index] = None
                return None
            known = self._fragmented[index] = self._passing[start.index] = _Fragmented(
                start.index, name_of(own_id), name, is_empty=not arguments, is_open=start.index not in ended
            )
            self._may_await = True
            if not own_id:  # clients give a result back by its call's id
                fragment = {**fragment, "id": new_call_id()}
            if place == "function" and start.index not in ended and (empty := _empty_object(arguments)):
                known.held = {**fragment, "index": known.ordinal, place: {**fragment[place], field: empty}}
                return None
        elif known.held is not None:
            if not _goes_on(arguments):
                return None
            first, known.held = known.held, None
            fragment = {**first, "function": {**first["function"], "arguments": arguments}}
        elif not known.is_open and arguments:
            return None
        elif (
            known.is_empty
            and place == "function"
            and _empty_object(arguments)
            and not is_empty_object(ended.get(known.ordinal) or "")
        ):
            known.held, known.is_empty = {place: {field: "{}"}, "index": known.ordinal}, False
            return None
        elif function.get("name") or own_id or not isinstance(arguments, str | None):
            # Names and ids are not sent twice.
            written = arguments if isinstance(arguments, str) else dumps(arguments)
            fragment = {place: {field: "" if arguments is None else written}}
        known.is_empty = known.is_empty and not arguments
        if arguments and place == "function" and known.ordinal in ended:
            whole = fragment["function"]["arguments"]
            if (cut := _without_token(whole)) != whole:
                fragment = {**fragment, "function": {**fragment["function"], "arguments": cut}}
        return {**fragment, "index": known.ordinal}

    def _join_to_last(self, index: object) -> None:
        """Take an index that comes with arguments alone for that of the last call, as its reader does."""
        last = next(reversed(self._fragmented.values()), None)
        if last is not None and last.is_empty and last.is_open:
            self._fragmented[index] = last

    def _held_back(self, call: ToolCallEnd) -> dict[str, Any] | None:
        """The first piece of a call that passes, as a delta, if it was held until the call has ended."""
        fragmented = self._passing.get(call.index) if not call.from_text else None
        if fragmented is None or fragmented.held is None:
            return None
        del self._passing[call.index]
        held, fragmented.held, fragmented.is_open = fragmented.held, None, False
        return {"tool_calls": [held]}

    def _end_call(self, call: ToolCallEnd) -> list[dict[str, Any]]:
        """What goes out at the end of a call: nothing, or the call as a delta."""
        if not call.from_text:
            if call.index in self._passing:
                fragmented = self._passing.pop(call.index)
                if fragmented is not None:
                    fragmented.is_open = False
                return []
            self._may_await = True
            return [self._written(call)] if call.tool_name else []
        why = self._fault(call)
        if not why:
            self._awaits_client = True
            return [self._written(call)]
        logger.warning("dropped a call that was written as text: %s (%s)", logged_name(call.tool_name), why)
        self._drop(call)
        return []

    def _written(self, call: ToolCallEnd, own_id: str = "") -> dict[str, Any]:
        """A whole call as a delta, with the server's id, or one of its own if it was written as text."""
        kind, arguments = "function", {"arguments": call.arguments_json}
        if call.from_text and call.arguments and (properties := self._properties.get(call.tool_name)):
            spelled = spelled_out(call.arguments, fits_types(properties))
            arguments = arguments if spelled == call.arguments else {"arguments": dumps(spelled)}
        if not call.from_text and call.tool_name in self._custom:
            kind, arguments = "custom", {"input": (call.arguments or {}).get("input", call.arguments_json)}
        # In its text a model may count from 0 in each answer; clients know the calls of a conversation by their ids.
        own_id = own_id or (call.tool_call_id if not call.from_text else "") or new_call_id()
        written = {"index": None, "id": own_id, "type": kind, kind: {"name": call.tool_name, **arguments}}
        return {"tool_calls": [written | ({"extra_content": call.extra_content} if call.extra_content else {})]}

    def _end_round(self) -> None:
        self._may_await = self._may_await or bool(self._dropped)
        for kept in (self._fragmented, self._passing, self._custom, self._dropped):
            kept.clear()

    def _reason(self, reason: str) -> str:
        if reason == "stop" and (self._awaits_client or self._may_await):
            return "tool_calls"
        return "stop" if reason == "tool_calls" and not self._calls else reason


def _index_of(fragment: Mapping[str, Any]) -> int | str:
    index = fragment.get("index")
    return index if type(index) is int else name_of(index)


def _empty_object(arguments: object) -> str:
    """The empty object that a piece of arguments is, without a token after it; else `""`."""
    written = arguments.partition("<|")[0] if isinstance(arguments, str) else ""
    return written if is_empty_object(written) else ""


def _without_token(arguments: str) -> str:
    """Arguments without a control token after their object."""
    text, brace, after = arguments.rpartition("}")
    return text + brace if "<|" in after else arguments


def _ends_with(arguments: object, field: str, whole: str | None) -> bool:
    """Whether a call may be of this piece alone: the start of one that has ended may be of a namesake before it.

    `whole` is None while it is open, and if it cannot be read.
    """
    if whole is None:
        return True
    written = arguments if isinstance(arguments, str) else dumps(arguments)
    if field == "input":
        return dumps({field: written}) == whole
    return whole in (written, read_arguments(_without_token(written)) if written else "")


def _goes_on(arguments: object) -> bool:
    """Whether a piece begins the arguments of a call that has come as `{}`."""
    written = arguments if isinstance(arguments, str) else ""
    return written.lstrip().startswith("{") and not is_empty_object(written)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (fields_of(part).get("text") for part in listed(content))
    return "".join(text for text in texts if isinstance(text, str))
