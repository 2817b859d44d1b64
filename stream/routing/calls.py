"""The calls under way, identified by id, or by name if they have no id."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["CallUnderWay", "CallsUnderWay"]


@dataclass(slots=True, eq=False)
class CallUnderWay:
    """A call whose outcome is not known yet.

    `known_at` is the output sample at which its start was handled. A call `is_settled` if its outcome makes no sound:
    its failure has sounded already, or its turn was given up.
    """

    tool_name: str
    tool_call_id: str
    known_at: int
    is_settled: bool = False


class CallsUnderWay:
    """Calls in the order of their starts."""

    __slots__ = ("_calls", "_given_up")

    def __init__(self) -> None:
        self._calls: list[CallUnderWay] = []
        self._given_up: deque[CallUnderWay] = deque(maxlen=64)

    @property
    def awaited(self) -> list[CallUnderWay]:
        """The calls whose outcome will sound."""
        return [call for call in self._calls if not call.is_settled]

    def begin(self, tool_call_id: str, tool_name: str, known_at: int) -> CallUnderWay | None:
        """Add a call; `None` if a call with that id is under way."""
        if tool_call_id and any(call.tool_call_id == tool_call_id for call in self._calls):
            return None
        call = CallUnderWay(tool_name, tool_call_id, known_at)
        self._calls.append(call)
        return call

    def find(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """The call with this id; else the oldest of this name; else, without a name, the oldest."""
        known = [*self._calls, *self._given_up]
        for call in known:
            if tool_call_id and call.tool_call_id == tool_call_id:
                return call
        for call in known:
            # Without an id on both sides, the name decides.
            if not (tool_call_id and call.tool_call_id) and tool_name in (call.tool_name, ""):
                return call
        return None

    def end(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """Remove a call and return it, if it is known."""
        call = self.find(tool_call_id, tool_name)
        if call in self._calls:
            self._calls.remove(call)
        elif call is not None:
            self._given_up.remove(call)
        return call

    def clear(self) -> None:
        """Await no outcomes. Settled calls are kept, so that their late results make no sound."""
        self._given_up.extend(call for call in self._calls if call.is_settled)
        self._calls.clear()

    def give_up(self) -> None:
        """Settle all calls under way: their late results make no sound."""
        for call in self._calls:
            call.is_settled = True
        self.clear()
