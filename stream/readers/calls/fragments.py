"""Structured calls: fragments on the wire, put together by index and id."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from stream.events import Event, ToolCallEnd
from stream.readers.calls.order import CallOrder
from stream.readers.calls.values import dumps, fields_of, name_of
from stream.readers.options import LONGEST_NAME, MOST_KEPT
from stream.readers.text.dialect import Call, clean_name
from stream.readers.text.scanner import JsonScanner, Pieces

__all__ = ["CallAssembler", "complete_calls", "function_of", "is_empty_object"]

_MOST_HELD = 64  # pieces
_LONGEST_HELD = 64  # characters of a piece


def complete_calls(events: Iterable[Event]) -> Iterator[ToolCallEnd]:
    """Yield the calls among some events that are complete and can be run; not those that the model only tells of.

    Examples
    --------
    >>> from stream import TextReader
    >>> reader = TextReader()
    >>> events = reader.feed('{"name": "lock", "arguments": {}} Locked.') + reader.close()
    >>> [call.tool_name for call in complete_calls(events)]
    ['lock']
    """
    ends = (event for event in events if isinstance(event, ToolCallEnd))
    return (end for end in ends if end.status == "ok" and not end.told)


def function_of(fragment: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The object that holds a fragment's name and arguments, and the key of the arguments.

    A call of a custom tool, OpenAI's, has text in place of arguments: its `input`.
    """
    for place, arguments in (("function", "arguments"), ("custom", "input")):
        if isinstance(found := fragment.get(place), Mapping):
            return found, arguments
    return fragment, "arguments"


def is_empty_object(arguments: str) -> bool:
    """Whether arguments are `{}`, with or without white space."""
    return len(arguments) <= _LONGEST_HELD and "".join(arguments.split()) == "{}"


@dataclass(slots=True, eq=False)
class _Assembly:
    call: Call
    pieces: Pieces
    scanner: JsonScanner = field(default_factory=JsonScanner)
    free_text: bool = False  # the arguments are a custom tool's text, and no JSON

    def take(self) -> str:
        """The arguments as JSON, as far as they have come; they are forgotten."""
        raw = self.pieces.take()
        return json.dumps({"input": raw}, ensure_ascii=False) if self.free_text else raw


class CallAssembler:
    """Puts the fragments of a round's structured calls together."""

    __slots__ = ("_by_id", "_by_index", "_held", "_last", "_open", "_order", "_text_followed", "_unsure", "held_at")

    def __init__(self, order: CallOrder) -> None:
        self._order = order
        self._reset()

    def _reset(self) -> None:
        # The index of a call whose arguments are an open object. Only a `}` can end them: pieces without one are held,
        # and scanned together (bench/stream_readers.py).
        self.held_at: int | None = None
        self._held: list[str] = []
        self._open: list[_Assembly] = []
        self._text_followed = False  # text has come after the calls that are open
        # A call whose first piece is `{}`: some servers (Bedrock's gateways) write that where the arguments come later.
        self._unsure: _Assembly | None = None
        self._by_index: dict[object, _Assembly] = {}
        self._by_id: dict[str, _Assembly] = {}
        self._last: _Assembly | None = None

    def go_on(self, fragments: Any) -> bool:
        """Take in what nearly all fragments are: one piece of an open call's arguments; return False for others."""
        if type(fragments) is not list or len(fragments) != 1:
            return False
        call = fragments[0] if type(fragments[0]) is dict else fields_of(fragments[0])
        function = fields_of(call.get("function"))
        piece, index = function.get("arguments"), call.get("index")
        if type(piece) is not str or call.get("id") or function.get("name"):
            return False
        self._scan_held()
        assembly = self._by_index.get(index) if type(index) is int else None
        if assembly is None or assembly.call.status:
            return False
        if assembly is not self._unsure:
            self.settle()
        self._append(assembly, piece)
        self.held_at = index if assembly.scanner.in_object else None
        return True

    def hold(self, index: Any, piece: Any) -> bool:
        """Hold a piece that cannot end the arguments; return False for others."""
        held = self._held
        is_its_piece = index == self.held_at and type(index) is int and type(piece) is str
        if not is_its_piece or "}" in piece or len(held) >= _MOST_HELD or len(piece) > _LONGEST_HELD:
            return False
        held.append(piece)
        return True

    def _scan_held(self) -> None:
        if self.held_at is not None:
            held_at, held, self.held_at, self._held = self.held_at, self._held, None, []
            self._append(self._by_index[held_at], "".join(held))

    def take(self, fragments: Iterable[Any], index: object = None) -> None:
        """Take in one array of fragments, as decoded JSON."""
        self._scan_held()
        array = self._order.new_array()
        for fragment in fragments:
            if not isinstance(fragment, Mapping):
                continue
            function, _ = function_of(fragment)
            number = fragment.get("index", function.get("index", index))
            if isinstance(number, bool) or not isinstance(number, int | str):
                number = index
            number = name_of(number) if isinstance(number, str) else number
            identity, name = fragment.get("id"), function.get("name")
            identity = str(identity)[:LONGEST_NAME] if isinstance(identity, str | int | float) else ""
            name = clean_name(name[:LONGEST_NAME]) if isinstance(name, str) and name != "null" else ""  # (LiteLLM)
            self._fragment(array, number, identity, name, fragment)

    def _fragment(
        self, array: int, index: int | str | None, identity: str, name: str, fragment: Mapping[str, Any]
    ) -> None:
        (function, field_), extra = function_of(fragment), fragment.get("extra_content")
        arguments = function.get("parameters") if function.get(field_) is None else function[field_]
        if not (identity or name or arguments is not None):
            return
        assembly = self._find(index, identity, name)
        beside = assembly is not None and index is None and not identity and assembly.call.array == array
        is_new = assembly is None or (name and (beside or self._is_new(assembly, identity, name, arguments)))
        if is_new or assembly is not self._unsure:
            self.settle()
        if assembly is None or is_new:
            assembly = self._start(array, index, identity)
        elif assembly.call.status:
            return
        if identity and not assembly.call.id:
            assembly.call.id = identity
            self._by_id[identity] = assembly
        if isinstance(extra, Mapping) and len(dumps(extra)) <= self._order.max_argument_chars:
            assembly.call.extra_content = extra
        if name and not assembly.call.name:
            assembly.call.name = name
            self._order.begin(assembly.call)
        assembly.free_text |= field_ == "input"
        if isinstance(arguments, str):
            self._append(assembly, arguments)
        elif arguments is not None:
            if not assembly.pieces.size:
                assembly.pieces.add(dumps(arguments) if isinstance(arguments, Mapping) else "")
                self._complete(assembly, malformed=not assembly.pieces.size)
        elif assembly.scanner.done and assembly is not self._unsure:
            self._complete(assembly)

    def _find(self, index: int | str | None, identity: str, name: str) -> _Assembly | None:
        known = self._by_id.get(identity) if identity else None
        if index is not None:
            if known and known.call.token == ("index", index):
                return known
            if index not in self._by_index and not (identity or name) and self._lacks_arguments(self._last):
                self._by_index[index] = self._last  # some servers give arguments another index than the id and name
            return self._by_index.get(index)
        if known or (name and identity):
            return known
        return self._last

    @staticmethod
    def _lacks_arguments(last: _Assembly | None) -> TypeGuard[_Assembly]:
        return last is not None and bool(last.call.name) and not last.call.status and not last.pieces.size

    def _is_new(self, assembly: _Assembly, identity: str, name: str, arguments: Any) -> bool:
        """Return whether a fragment with a name opens another call than the one at its index."""
        call = assembly.call
        if (call.name and name != call.name) or (identity and call.id and identity != call.id):
            return True
        if assembly is self._unsure and call.name and arguments not in ("", None):
            return not identity or identity != call.id
        # A fragment that only repeats the name is not a new call.
        goes_on = arguments in ("", None) or (call.status == "malformed" and isinstance(arguments, str))
        if identity and call.status == "ok" and isinstance(arguments, str):
            goes_on = not arguments.lstrip().startswith("{")  # what is left over of its arguments (vLLM)
        is_repeated = identity == call.id and goes_on
        return call.status != "" and not is_repeated

    def _start(self, array: int, index: int | str | None, identity: str) -> _Assembly:
        if self._text_followed:
            # Text and another call have come after these: they have no arguments.
            for assembly in self._open:
                if not assembly.pieces.size and assembly.call.name and not assembly.call.status:
                    self._complete(assembly)
            self._open = [assembly for assembly in self._open if not assembly.call.status]
            self._text_followed = False
        if len(self._open) >= MOST_KEPT:
            self._forget_half()
        call = Call(id=identity, array=array, token=None if index is None else ("index", index))
        assembly = _Assembly(call, Pieces(self._order.max_argument_chars))
        self._open.append(assembly)
        self._last = assembly
        if index is not None:
            self._by_index[index] = assembly
        if identity:
            self._by_id[identity] = assembly
        return assembly

    def _forget_half(self) -> None:
        """End the older half of the calls: a server that begins so many and ends none must not fill the memory."""
        half, self._open = dict.fromkeys(self._open[: MOST_KEPT // 2]), self._open[MOST_KEPT // 2 :]
        for assembly in half:
            self._end(assembly, was_cut=True)
        self._by_index = {index: one for index, one in self._by_index.items() if one not in half}
        self._by_id = {identity: one for identity, one in self._by_id.items() if one not in half}

    def _append(self, assembly: _Assembly, piece: str) -> None:
        scanner = assembly.scanner
        if assembly.free_text:  # which ends with its round
            assembly.pieces.add(piece)
            return
        if assembly is self._unsure:
            if not piece.lstrip().startswith("{"):
                return
            self._unsure = None
            assembly.pieces = Pieces(self._order.max_argument_chars)
            assembly.scanner = scanner = JsonScanner()
        is_first = not assembly.pieces.size
        end = scanner.scan(piece, 0)
        assembly.pieces.add(piece[:end])
        if scanner.done and is_first and is_empty_object(piece[:end]):
            self._unsure = assembly
        elif scanner.done or scanner.failed:
            self._complete(assembly, malformed=scanner.failed)

    def _complete(self, assembly: _Assembly, *, malformed: bool = False) -> None:
        if not assembly.call.name:
            return  # its name may still come
        self._order.finish(assembly.call, "malformed" if malformed else "ok", assembly.take())

    def settle(self) -> None:
        """End a call that has come as `{}`, now that something else follows: these were its arguments."""
        if self._unsure is not None:
            assembly, self._unsure = self._unsure, None
            self._complete(assembly)

    def text_follows(self, text: str) -> None:
        """Note text that comes after the calls that are open."""
        self._text_followed = True
        if not text.isspace():
            self.settle()

    def end_round(self, *, was_cut: bool) -> None:
        """End what is still open; `was_cut` if a limit, an error or a closed connection ended the round."""
        self._scan_held()
        for assembly in self._open:
            self._end(assembly, was_cut=was_cut)
        self._reset()

    def _end(self, assembly: _Assembly, *, was_cut: bool) -> None:
        raw, call = assembly.pieces.text, assembly.call
        if call.status:
            return
        is_whole = not was_cut and (assembly.free_text or not raw.strip())
        if call.name and (is_whole or assembly.scanner.finish()):
            self._order.finish(call, "ok", assembly.take())
        else:
            self._order.finish(call, "malformed" if assembly.scanner.failed else "incomplete", raw)
