"""Calls that a model wrote as text and nobody runs, and the structured calls that may be copies of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from stream.events import ToolCallEnd, ToolCallStart
from stream.readers.calls.arguments import read_arguments
from stream.readers.calls.values import dumps
from stream.readers.options import MAX_ARGUMENT_CHARS

__all__ = ["DroppedCalls"]

_CHARS_BESIDE = 1024  # of a call, beside its arguments: at most so much of names and ids


@dataclass(slots=True, eq=False)
class _Wanted:
    """A structured call at its index, with its id and arguments, and the dropped call that it may be a copy of."""

    copy: ToolCallEnd
    index: object
    id: str
    size: int  # characters that it keeps
    arguments: list[str] = field(default_factory=list)

    def whole(self) -> ToolCallEnd:
        """The call; with the copy's arguments if its own cannot be read."""
        arguments = "".join(self.arguments)
        own = read_arguments(arguments) if arguments.strip() else None
        return replace(self.copy, tool_call_id=self.id, arguments_json=own or self.copy.arguments_json)


class DroppedCalls:
    """Calls written as text that are dropped in a round, and the structured calls of which a reader may tell nothing.

    A reader takes a structured call for the copy of one in the text, and has no event for it; but if that one is
    dropped, the structured call is wanted. Of both the latest are kept that fit into the longest arguments: a server's
    calls may have no end.
    """

    def __init__(self) -> None:
        self._dropped: dict[int, ToolCallEnd] = {}  # by their ordinal
        self._wanted: list[_Wanted] = []
        self._dropped_size = self._wanted_size = 0

    def __len__(self) -> int:
        """How many structured calls are wanted."""
        return len(self._wanted)

    def __iter__(self) -> Iterator[tuple[ToolCallEnd, str]]:
        """The structured calls that are wanted, and their ids."""
        return ((one.whole(), one.id) for one in self._wanted)

    def drop(self, call: ToolCallEnd) -> None:
        """Note a call that is dropped."""
        self._dropped[call.index] = call
        self._dropped_size += _size(call)
        while self._dropped_size > MAX_ARGUMENT_CHARS and len(self._dropped) > 1:
            self._take(next(iter(self._dropped)))

    def want(self, name: str, index: object, own_id: str, arguments: object) -> None:
        """Note the first piece of a structured call of which no event tells, if a call of its tool was dropped."""
        ordinal = next((number for number, call in self._dropped.items() if call.tool_name == name), None)
        if ordinal is not None:
            copy = self._take(ordinal)
            self._wanted.append(_Wanted(copy, index, own_id, _size(copy)))
            self._wanted_size += _size(copy)
            self.go_on(index, arguments)

    def go_on(self, index: object, arguments: object) -> None:
        """Take more arguments of the structured call at an index, if it is wanted."""
        wanted = next((one for one in reversed(self._wanted) if one.index == index), None)
        if wanted is None or arguments is None:
            return
        wanted.arguments.append(arguments if isinstance(arguments, str) else dumps(arguments))
        wanted.size += len(wanted.arguments[-1])
        self._wanted_size += len(wanted.arguments[-1])
        while self._wanted_size > MAX_ARGUMENT_CHARS:
            self._forget(self._wanted[0])

    def begins(self, start: ToolCallStart) -> None:
        """Want a structured call no more that is no copy: it goes out by its own events."""
        own = (one for one in self._wanted if (one.copy.tool_name, one.id) == (start.tool_name, start.tool_call_id))
        if (wanted := next(own, None)) is not None:
            self._forget(wanted)

    def clear(self) -> None:
        """Forget all: the round has ended."""
        self._dropped.clear()
        self._wanted.clear()
        self._dropped_size = self._wanted_size = 0

    def _take(self, ordinal: int) -> ToolCallEnd:
        call = self._dropped.pop(ordinal)
        self._dropped_size -= _size(call)
        return call

    def _forget(self, wanted: _Wanted) -> None:
        self._wanted.remove(wanted)
        self._wanted_size -= wanted.size


def _size(call: ToolCallEnd) -> int:
    return _CHARS_BESIDE + len(call.arguments_json)
