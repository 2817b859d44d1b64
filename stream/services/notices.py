"""What the services add to a stream's events: nothing to speak, but worth knowing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stream.events import Event

__all__ = ["AskedAgain", "InvalidToolCall", "ServiceEvent", "ToolsLeftOut"]


@dataclass(frozen=True, slots=True)
class ToolsLeftOut:
    """A warning: some tools were not offered to the model.

    Attributes
    ----------
    tool_names : which.
    reason : `"maximum"` (more than the model can tell apart), `"untrained"` (its family calls no tools) or
        `"refused"` (the server said that the model takes none).
    """

    tool_names: tuple[str, ...]
    reason: Literal["maximum", "untrained", "refused"]


@dataclass(frozen=True, slots=True)
class InvalidToolCall:
    """A call that must not be run. It comes directly before the call's `ToolCallEnd`, whose status is `"malformed"`.

    Attributes
    ----------
    tool_name, tool_call_id, index : as in the call's `ToolCallEnd`.
    reason : `"unknown_tool"`, `"not_json"` or `"schema"`.
    message : what is wrong, in words a model can act on; without the arguments' values.
    suggestions : registered names close to the one that was called, the closest first.
    """

    tool_name: str
    tool_call_id: str
    index: int
    reason: Literal["unknown_tool", "not_json", "schema"]
    message: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The answer came empty and the model is asked once more; what came so far was not spoken.

    Attributes
    ----------
    attempt : the number of the attempt that begins now; the first question was 1.
    how : `"without_tools"` or `"fallback"`.
    """

    attempt: int
    how: Literal["without_tools", "fallback"]


ServiceEvent: TypeAlias = Event | ToolsLeftOut | InvalidToolCall | AskedAgain
