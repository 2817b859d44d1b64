"""Calls of the formats in which each call is an item, block or part with a beginning and an end."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from stream.events import CallStatus
from stream.readers.calls.arguments import canonical
from stream.readers.calls.order import CallOrder
from stream.readers.calls.values import name_of, text_of
from stream.readers.options import LONGEST_NAME, MOST_KEPT
from stream.readers.text.dialect import Call, clean_name
from stream.readers.text.scanner import JsonScanner, Pieces

__all__ = ["ItemCall", "ItemCalls", "content"]


def content(name: object, arguments: object) -> tuple[str, bytes]:
    """The name of a call, and what is the same for equal arguments: they may be long."""
    key = canonical(text_of(arguments).strip() or "{}")
    return clean_name(name_of(name)), blake2b(key.encode("utf-8", "surrogatepass")).digest()


@dataclass(slots=True, eq=False)
class ItemCall:
    """One call as far as it has come."""

    call: Call
    pieces: Pieces
    free_text: bool  # the arguments are a custom tool's text, and no JSON
    owner: str  # the response that it belongs to
    given: Any = None  # arguments that came with its beginning; they count if no piece comes
    content: tuple[str, bytes] | None = None  # once it has ended, see `content`
    is_whole: bool = False  # its item has come whole

    def content_so_far(self) -> tuple[str, bytes]:
        return self.content or content(self.call.name, self.pieces.text or self.given)


class ItemCalls:
    """The open calls of a stream; `announce` is called just before a call begins."""

    def __init__(self, order: CallOrder, announce: Callable[[], None]) -> None:
        self._order, self._announce = order, announce
        self._open: dict[ItemCall, None] = {}
        self._count = 0

    def start(self, identity: object, name: object, *, free_text: bool = False, owner: str = "") -> ItemCall:
        """Begin a call, which is announced as soon as it has a name."""
        if len(self._open) >= MOST_KEPT:
            for call in list(self._open)[: MOST_KEPT // 2]:
                self.end(call, cut=True)
        self._count += 1
        known = identity[:LONGEST_NAME] if isinstance(identity, str) else ""
        # A repeated id with name and arguments is a duplicate; each call without an id stands for itself.
        token = ("item", known or self._count)
        made = Call(id=known, array=self._order.new_array(), token=token)
        call = ItemCall(made, Pieces(self._order.max_argument_chars), free_text, owner)
        self._open[call] = None
        self.name(call, name)
        return call

    def name(self, call: ItemCall, name: object) -> None:
        """Take in the name, where it comes later than the call or is repeated."""
        if isinstance(name, str) and name and not call.call.name and not call.call.status:
            call.call.name = clean_name(name[:LONGEST_NAME])
            if call.call.name:
                self._announce()
                self._order.begin(call.call)

    def add(self, call: ItemCall, piece: object) -> None:
        if isinstance(piece, str) and not call.call.status:
            call.pieces.add(piece)

    def end(self, call: ItemCall, whole: Any = None, *, cut: bool = False) -> None:
        """End a call, with its whole arguments if the server repeats them; `cut` if it was not completed."""
        if call.call.status:
            return
        del self._open[call]
        most = self._order.max_argument_chars
        pieces = call.pieces.take()
        written, call.given = [text_of(whole), pieces if pieces.strip() else text_of(call.given)], None
        raw = next((text for text in written if text.strip() and (call.free_text or _status(text, most) == "ok")), None)
        raw = next(filter(str.strip, written), "") if raw is None else raw
        call.content = content(call.call.name, raw)
        if cut or not call.call.name:
            self._order.finish(call.call, "incomplete", raw)
        elif call.free_text and len(raw) <= most:
            self._order.finish(call.call, "ok", json.dumps({"input": raw}, ensure_ascii=False))
        else:
            self._order.finish(call.call, _status(raw, most), raw)

    def end_all(self, *, cut: bool, owner: str | None = None) -> None:
        """End what is open, of one response if `owner` is given."""
        for call in list(self._open):
            if owner is None or call.owner == owner:
                self.end(call, cut=cut)


def _status(raw: str, most: int) -> CallStatus:
    """Whether arguments are cut off; `CallOrder` finds those that cannot be read."""
    scanner = JsonScanner()
    if len(raw) > most or not raw.strip():
        return "ok"
    scanner.scan(raw, 0)
    return "ok" if scanner.failed or scanner.finish() else "incomplete"
