"""The calls under way, identified by id, or by name if they have no id."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["CallUnderWay", "CallsUnderWay"]


@dataclass(slots=True, eq=False)
class CallUnderWay:
    """A call whose outcome is not known yet.

    A call `is_settled` if its outcome makes no sound: its failure has sounded already, or its turn was given up. It
    `is_over` if its turn is, `is_complete` when its arguments are, and `is_task` if the server runs it by itself.
    """

    tool_name: str
    tool_call_id: str
    is_settled: bool = False
    is_over: bool = False
    is_complete: bool = False
    is_task: bool = False


class CallsUnderWay:
    """Calls in the order of their starts; `in_answer` says whether the answer that is read has one of the client's."""

    __slots__ = ("_calls", "_given_up", "in_answer")

    def __init__(self) -> None:
        self.in_answer = False
        self._calls: list[CallUnderWay] = []
        self._given_up: deque[CallUnderWay] = deque(maxlen=64)

    @property
    def awaited(self) -> list[CallUnderWay]:
        """The calls whose outcome will sound."""
        return [call for call in self._calls if not call.is_settled]

    @property
    def has_tasks(self) -> bool:
        """Whether the server runs a tool by itself."""
        return any(call.is_task for call in self._calls)

    def begin(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """Add a call; `None` if a call with that id is under way."""
        if tool_call_id and any(call.tool_call_id == tool_call_id for call in self._calls):
            return None
        call = CallUnderWay(tool_name, tool_call_id)
        self._calls.append(call)
        return call

    def find(self, tool_call_id: str, tool_name: str, *, is_task: bool = False) -> CallUnderWay | None:
        """The call with this id; else the oldest of this name; else, without a name, the oldest.

        `is_task` looks among the server's tasks alone, and for a name or an id in any case.
        """
        known = [call for call in (*self._calls, *self._given_up) if call.is_task or not is_task]
        for call in known:
            if tool_call_id and call.tool_call_id == tool_call_id:
                return call
        for call in known:
            # Without an id on both sides, the name decides.
            is_named = tool_name == call.tool_name or not (tool_name or is_task)
            if is_named and not (tool_call_id and call.tool_call_id):
                return call
        return None

    def end(self, tool_call_id: str, tool_name: str, *, is_task: bool = False) -> CallUnderWay | None:
        """Remove the call that `find` finds, and return it."""
        call = self.find(tool_call_id, tool_name, is_task=is_task)
        if call is not None:
            (self._calls if call in self._calls else self._given_up).remove(call)
        return call

    def clear(self, *, tasks: bool = True) -> None:
        """Await no outcomes, of `tasks` too. Settled calls are kept, so that their late results make no sound."""
        self.in_answer = False
        kept = [call for call in self._calls if call.is_task and not tasks]
        for call in self._calls:
            call.is_over = call not in kept
        self._given_up.extend(call for call in self._calls if call.is_settled and call not in kept)
        self._calls[:] = kept

    def give_up(self) -> None:
        """Settle all calls under way: their late results make no sound."""
        for call in self._calls:
            call.is_settled = True
        self.clear()
