"""The calls that are under way: known by their id where they have one, else by their name."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallUnderWay", "CallsUnderWay"]


@dataclass(slots=True)
class CallUnderWay:
    """A call whose outcome is not known yet.

    Attributes
    ----------
    tool_name, tool_call_id : as in its start.
    known_at : output sample at which it was known.
    has_failed : its failure has been told already (cut off, unreadable, invented); its result will say so again.
    """

    tool_name: str
    tool_call_id: str
    known_at: int
    has_failed: bool = False


class CallsUnderWay:
    """Calls in the order in which they came."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[CallUnderWay] = []

    @property
    def awaited(self) -> list[CallUnderWay]:
        """The calls that may still succeed."""
        return [call for call in self._calls if not call.has_failed]

    def begin(self, tool_call_id: str, tool_name: str, known_at: int) -> CallUnderWay | None:
        """Note a call; `None` if one of that id is under way already."""
        if tool_call_id and any(call.tool_call_id == tool_call_id for call in self._calls):
            return None
        call = CallUnderWay(tool_name, tool_call_id, known_at)
        self._calls.append(call)
        return call

    def find(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """The call meant: by its id; else the oldest of its name; else, if neither is given, the oldest."""
        for call in self._calls:
            if tool_call_id and call.tool_call_id == tool_call_id:
                return call
        for call in self._calls:
            # Where one side knows no id, the name has to do.
            if not (tool_call_id and call.tool_call_id) and tool_name in (call.tool_name, ""):
                return call
        return None

    def end(self, tool_call_id: str, tool_name: str) -> CallUnderWay | None:
        """Forget a call and return it, if it is known."""
        call = self.find(tool_call_id, tool_name)
        if call is not None:
            self._calls.remove(call)
        return call

    def clear(self) -> None:
        """Forget all."""
        self._calls.clear()
