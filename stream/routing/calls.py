"""The calls that are under way: known by their id where they have one, else by their name."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["CallUnderWay", "CallsUnderWay"]


@dataclass(slots=True, eq=False)
class CallUnderWay:
    """A call whose outcome is not known yet.

    Attributes
    ----------
    tool_name, tool_call_id : as in its start.
    known_at : output sample at which it was known.
    is_told : its outcome makes no sound: its failure has been told already (cut off, unreadable, invented), or its turn
        was given up.
    """

    tool_name: str
    tool_call_id: str
    known_at: int
    is_told: bool = False


class CallsUnderWay:
    """Calls in the order in which they came."""

    __slots__ = ("_calls", "_given_up")

    def __init__(self) -> None:
        self._calls: list[CallUnderWay] = []
        self._given_up: deque[CallUnderWay] = deque(maxlen=64)

    @property
    def awaited(self) -> list[CallUnderWay]:
        """The calls whose outcome will sound."""
        return [call for call in self._calls if not call.is_told]

    def begin(self, tool_call_id: str, tool_name: str, known_at: int) -> CallUnderWay | None:
        """Note a call; `None` if one of that id is under way already."""
        if tool_call_id and any(call.tool_call_id == tool_call_id for call in self._calls):
            return None
        call = CallUnderWay(tool_name, tool_call_id, known_at)
        self._calls.append(call)
        return call

    def find(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """The call meant: by its id; else the oldest of its name; else, if no name is given either, the oldest."""
        known = [*self._calls, *self._given_up]
        for call in known:
            if tool_call_id and call.tool_call_id == tool_call_id:
                return call
        for call in known:
            # Where one side knows no id, the name has to do.
            if not (tool_call_id and call.tool_call_id) and tool_name in (call.tool_name, ""):
                return call
        return None

    def end(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """Forget a call and return it, if it is known."""
        call = self.find(tool_call_id, tool_name)
        if call in self._calls:
            self._calls.remove(call)
        elif call is not None:
            self._given_up.remove(call)
        return call

    def clear(self) -> None:
        """Await no outcome of what is under way. Calls whose failure was told are kept: their results make no sound."""
        self._given_up.extend(call for call in self._calls if call.is_told)
        self._calls.clear()

    def give_up(self) -> None:
        """Want no outcome of what is under way any more: a result that comes nevertheless finds its call told."""
        for call in self._calls:
            call.is_told = True
        self.clear()
