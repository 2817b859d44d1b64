"""A reader for OpenAI's Responses: typed events about the items of one response."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

from stream.readers.calls.item_calls import ItemCall, content
from stream.readers.calls.values import dumps, fields_of, listed, name_of, plain, text_of
from stream.readers.formats.block_reader import BlockReader, Part
from stream.readers.formats.message_reader import usage_of
from stream.readers.options import LONGEST_NAME, MOST_KEPT, Tools
from stream.readers.text.dialect import clean_name

__all__ = ["ResponsesReader"]

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}  # and the field with the arguments
_TASKS = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
# Parts by type: what they are, the field that holds their text, and the one that numbers them.
_PARTS = {
    "output_text": ("text", "text", "content_index"),
    "text": ("text", "text", "content_index"),
    "refusal": ("text", "refusal", "content_index"),
    "output_audio": ("transcript", "transcript", "content_index"),
    "audio": ("transcript", "transcript", "content_index"),
    "summary_text": ("reasoning", "text", "summary_index"),
    "reasoning_text": ("reasoning", "text", "content_index"),
}
# Events by name, without `.delta` and `.done`: the type of the part.
_TEXTS = {
    "response.output_text": "output_text",
    "response.refusal": "refusal",
    "response.reasoning_summary_text": "summary_text",
    "response.reasoning_text": "reasoning_text",
    "response.text": "output_text",  # these are Realtime's, the beta's names too
    "response.output_audio_transcript": "output_audio",
    "response.audio_transcript": "output_audio",
}
_PIECES = {f"{name}.delta": (_PARTS[part][0], _PARTS[part][2]) for name, part in _TEXTS.items()}
_MOST_NUMBERS = 1 << 16


class ResponsesReader(BlockReader):
    """Reads the events of `/v1/responses`; see `MessageReader` for the parameters.

    Texts that come again whole are found by their item, as vLLM and SGLang number and place them otherwise than their
    pieces.

    Examples
    --------
    >>> reader = ResponsesReader()
    >>> reader.feed({"type": "response.output_text.delta", "output_index": 0, "delta": "Good night."})
    [TextDelta(text='Good night.', channel=None)]
    >>> reader.feed({"type": "response.completed", "response": {"status": "completed"}}), reader.close()
    ([Finish(reason='completed')], [])
    """

    EVENTS: ClassVar[Mapping[str, str]] = {
        **{f"{name}.delta": "_text_piece" for name in _TEXTS},
        **{f"{name}.done": "_text_done" for name in _TEXTS},
        "response.content_part.done": "_part_done",
        "response.reasoning_summary_part.done": "_part_done",
        "response.output_item.added": "_item_added",
        "response.output_item.done": "_item_done",
        "response.function_call_arguments.delta": "_call_piece",
        "response.function_call_arguments.done": "_call_done",
        "response.custom_tool_call_input.delta": "_call_piece",
        "response.custom_tool_call_input.done": "_call_done",
        "response.completed": "_ended",
        "response.incomplete": "_ended",
        "response.cancelled": "_ended",
        "response.failed": "_fail_with",
        "error": "_fail_with",
    }

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._calls_at: dict[Hashable, ItemCall] = {}  # by ("call", id), ("item", id) and place
        self._tasks_at: dict[Hashable, str] = {}  # ids by place: those of an item may change
        self._numbers: dict[int, int] = {}  # digests of events by their number
        self._is_numbered = True
        self._ending: str | None = None  # the response that ends, if others go on

    def _read(self, fields: Mapping[str, Any]) -> None:
        kind = fields.get("type")
        if isinstance(kind, str) and kind in self.EVENTS and not self._was_read(fields):
            getattr(self, self.EVENTS[kind])(fields)

    def _was_read(self, event: Mapping[str, Any]) -> bool:
        """Return whether a server that numbers its events sends one again, as it does in a resumed response."""
        number = event.get("sequence_number")
        if type(number) is not int or not self._is_numbered:
            return False
        known, piece = self._numbers.get(number), event.get("delta")
        item, place = event.get("item_id"), event.get("output_index")
        if type(piece) is str and type(item) is str and type(place) is int:
            digest = hash((event["type"], piece, place, item))
        else:
            digest = hash(dumps(plain(event)))
        if known is not None:
            self._is_numbered = known == digest
            return self._is_numbered and len(self._numbers) > 1
        self._numbers[number] = digest
        if len(self._numbers) > _MOST_NUMBERS:
            del self._numbers[next(iter(self._numbers))]
        return False

    def _text_piece(self, event: Mapping[str, Any]) -> None:
        kind, index = _PIECES[event["type"]]
        self._delta(_part_at(event, index, kind), event.get("delta"))

    def _text_done(self, event: Mapping[str, Any]) -> None:
        self._part(event, {**event, "type": _TEXTS[event["type"].removesuffix(".done")]})

    def _part_done(self, event: Mapping[str, Any]) -> None:
        self._part(event, fields_of(event.get("part")))

    def _part(self, event: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        kind, field, index = _PARTS.get(text_of(part.get("type")), ("", "", ""))
        if kind:
            self._repeat(_part_at(event, index, kind), part.get(field))

    def _item_added(self, event: Mapping[str, Any]) -> None:
        item = fields_of(event.get("item"))
        kind = text_of(item.get("type"))
        if kind in _CALLS:
            self._begun(event, item)
        elif kind in _TASKS:
            if len(self._tasks_at) > MOST_KEPT:
                self._tasks_at.clear()
            self._tasks_at[_place(event)] = name_of(item.get("id"))
            self._task_begins(item.get("id"), item.get("name") or kind.removesuffix("_call"))

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item = fields_of(event.get("item"))
        kind = text_of(item.get("type"))
        if kind in _CALLS:
            streamed = self._at_place(event, item)
            self._join([item], [] if streamed is None or streamed.is_whole else [streamed])
            self._whole_call(event, item)
        elif kind in _TASKS:
            identity = self._tasks_at.pop(_place(event), name_of(item.get("id")))
            self._task_ends(identity, failed=item.get("status") in ("failed", "incomplete") or bool(item.get("error")))
        else:
            self._parts_of(event, item)

    def _parts_of(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        for name in ("content", "summary"):
            for number, part in enumerate(listed(item.get(name))):
                self._part({**event, "item_id": item.get("id"), f"{name}_index": number}, fields_of(part))

    def _start(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> ItemCall:
        place = _place(event)
        free_text = item.get("type") == "custom_tool_call"
        call = self._items.start(item.get("call_id"), item.get("name"), free_text=free_text, owner=place[0])
        call.given = item.get(_CALLS[item["type"]])
        if len(self._calls_at) > MOST_KEPT:
            self._calls_at.clear()
        places = (place, ("item", name_of(item.get("id"))), ("call", call.call.id))
        self._calls_at |= {place: call for place in places if place[1] != ""}
        return call

    def _begun(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> ItemCall:
        call = self._call_of(event, item) or self._start(event, item)
        self._items.name(call, item.get("name"))
        return call

    def _call_of(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> ItemCall | None:
        """Return the call that an item or a piece belongs to: by its id, else the item's, else its place."""
        identity = name_of(item.get("call_id"))
        if identity and (known := self._calls_at.get(("call", identity))):
            return known
        call = self._at_place(event, item)
        if call is None or item is event:
            return call
        is_other = identity and call.call.id
        name = clean_name(text_of(item.get("name")))
        return None if is_other or (name and call.call.name not in ("", name)) else call

    def _at_place(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> ItemCall | None:
        places = (("item", name_of(item.get("id") or event.get("item_id"))), _place(event))
        return next((self._calls_at[place] for place in places if place in self._calls_at), None)

    def _join(self, items: Iterable[Mapping[str, Any]], streamed: Iterable[ItemCall]) -> None:
        """Note which whole calls are streamed ones under other ids, one for one: vLLM gives them new ones."""
        places = {("call", name_of(item.get("call_id"))): item for item in items if item.get("call_id")}
        known = {self._calls_at[place] for place in places if place in self._calls_at}
        unknown = [place for place in places if place not in self._calls_at]
        equal: dict[tuple[str, bytes], list[ItemCall]] = defaultdict(list)
        for call in streamed if unknown else ():
            if call not in known:
                equal[call.content_so_far()].append(call)
        for place in unknown if equal else ():
            item = places[place]
            if calls := equal.get(content(item.get("name"), item.get(_CALLS[item["type"]]))):
                self._calls_at[place] = calls.pop()

    def _call_piece(self, event: Mapping[str, Any]) -> None:
        if call := self._call_of(event, event):
            self._items.add(call, event.get("delta"))

    def _call_done(self, event: Mapping[str, Any]) -> None:
        kind = "custom_tool_call" if "custom" in event["type"] else "function_call"
        call = self._call_of(event, event)
        if call is None and event.get("name"):
            call = self._start(event, {**event, "type": kind, "id": event.get("item_id")})
        if call is not None:
            self._items.name(call, event.get("name"))
            self._items.end(call, event.get(_CALLS[kind]))

    def _whole_call(self, event: Mapping[str, Any], item: Mapping[str, Any], *, cut: bool = False) -> None:
        call = self._begun(event, item)
        call.is_whole = True
        self._items.end(call, item.get(_CALLS[item["type"]]), cut=cut or item.get("status") == "incomplete")

    def _ended(self, event: Mapping[str, Any]) -> None:
        response = fields_of(event.get("response"))
        reason = event["type"].removeprefix("response.")
        if reason == "incomplete":
            reason = text_of(fields_of(response.get("incomplete_details")).get("reason")) or reason
        self._end_response(None, response, reason)

    def _end_response(self, owner: str | None, response: Mapping[str, Any], reason: str) -> None:
        """End a response, after what its last snapshot adds; `owner` is its id, None if no other one is open."""
        cut = reason != "completed"
        has_spoken = any(place[0] == owner or owner is None for place in self._said if place[-1] != "reasoning")
        items = [fields_of(entry) for entry in listed(response.get("output"))]
        streamed = dict.fromkeys(call for call in self._calls_at.values() if owner in (None, call.owner))
        self._join((item for item in items if text_of(item.get("type")) in _CALLS), streamed)
        for number, item in enumerate(items):
            kind = text_of(item.get("type"))
            place = {"response_id": owner, "output_index": ("snapshot", number)}
            if kind in _CALLS and item.get("call_id"):
                self._whole_call(place, item, cut=cut and item.get("status") != "completed")
            elif kind == "message" and not has_spoken:
                self._parts_of(place, item)
        self._items.end_all(cut=cut, owner=owner)
        self._said = {place: said for place, said in self._said.items() if owner not in (None, place[0])}
        self._n_said = self._n_said if self._said else 0
        self._calls_at = {place: call for place, call in self._calls_at.items() if owner not in (None, call.owner)}
        self._ending = owner
        self._finish(reason, usage_of(response.get("usage"), "input_tokens", "output_tokens", "total_tokens"))
        self._ending = None

    def _end_calls(self, *, was_cut: bool) -> None:
        self._items.end_all(cut=was_cut, owner=self._ending)


def _place(event: Mapping[str, Any]) -> tuple[str, Hashable]:
    owner, place = event.get("response_id"), event.get("output_index")
    return (owner[:LONGEST_NAME] if isinstance(owner, str) else "", place if isinstance(place, int | tuple) else None)


def _part_at(event: Mapping[str, Any], index: str, kind: str) -> Part:
    owner, place = _place(event)
    number, item = event.get(index), name_of(event.get("item_id"))
    identity = (owner, ("item", item), index, kind) if item else ()
    return Part((owner, place, index, kind), identity, number if isinstance(number, int) else 0, kind)
