"""What a model's stream says, as values: the events that every reader returns.

The readers say when a call is known and when its arguments are complete. Whether the tool ran, and how that went,
is only ever in a `ToolResult`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "AskedAgain",
    "CallStatus",
    "EmptyToolCalls",
    "Event",
    "Finish",
    "InvalidToolCall",
    "ReasoningDelta",
    "ServiceEvent",
    "StreamFailed",
    "TaskStatus",
    "TextDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolResult",
    "ToolsLeftOut",
    "Usage",
]

CallStatus: TypeAlias = Literal["ok", "incomplete", "malformed"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of text to be spoken; `channel` where the server marks one (`"text"`, `"json"`)."""

    text: str
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's thinking, which is never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool is being called: sent as soon as its name is certain, so that a cue can sound at once.

    Attributes
    ----------
    tool_name : the tool's name, without a `functions.` prefix.
    tool_call_id : the id that the wire gave; `""` where it gave none.
    index : the ordinal of the call in this stream, from 0.
    """

    tool_name: str
    tool_call_id: str = ""
    index: int = 0


class _ReadOnce:
    """Room for a value that is no field: comparing, copying, pickling and `repr` do not see it."""

    __slots__ = ("_arguments",)
    _arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolCallEnd(_ReadOnce):
    """The arguments of a call are complete, or never will be. It does not say that the tool ran.

    Attributes
    ----------
    tool_name, tool_call_id, index : as in the call's `ToolCallStart`; the name is `""` where it was cut off.
    arguments_json : the arguments as JSON text; `"{}"` if there are none, the raw text if they cannot be read.
    status : `"ok"`, `"incomplete"` (cut off) or `"malformed"` (cannot be read, past the size cap, or invalid: see
        `InvalidToolCall`). Only a call that is `"ok"` may be run, and only if a tool of that name was offered.

    Examples
    --------
    >>> ToolCallEnd("dim", arguments_json='{"percent": 40}').arguments
    {'percent': 40}
    """

    tool_name: str
    tool_call_id: str = ""
    index: int = 0
    arguments_json: str = "{}"
    status: CallStatus = "ok"

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments as a value, the same one each time.

        `None` unless `status` is `"ok"`, and for JSON that nests deeper, or has longer numbers, than Python reads.
        """
        try:
            return self._arguments
        except AttributeError:
            object.__setattr__(self, "_arguments", _object(self.arguments_json) if self.status == "ok" else None)
        return self._arguments


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool has run. Only this decides between success and error.

    Attributes
    ----------
    tool_call_id, tool_name : as far as they are known; `""` otherwise.
    is_error : whether the tool failed.
    content : what it returned, as text.
    by_server : whether the server ran it and reported so in its stream; two results are equal without regard to it.
    """

    tool_call_id: str
    tool_name: str
    is_error: bool
    content: str
    by_server: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The state of a task that the server itself works on (`"working"`, `"completed"`)."""

    task_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The server gave a finish reason: the wire's own string."""

    reason: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request cost, where the server says so; `None` where it does not.

    Attributes
    ----------
    prompt_tokens, completion_tokens, total_tokens : counts.
    load_ms, prompt_eval_ms, eval_ms, total_ms : the server's own timings, milliseconds.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    load_ms: float | None = None
    prompt_eval_ms: float | None = None
    eval_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True)
class EmptyToolCalls:
    """The stream held an empty `tool_calls` array and nothing to speak or call. Always the last event."""


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The stream did not end as it should. Nothing follows.

    Attributes
    ----------
    message : what the server or the client said; "Request failed" where it said nothing.
    code : the server's code, `"UpstreamFailure"` where an error in Ollama's form has none; `"unfinished"` for a stream
        that ended without a finish reason, `"connection"` for one that broke, `"timeout"` for one that fell silent.
    status : the HTTP status, where there is one.
    retry_after_ms : how long the server asks to wait, milliseconds.
    request_id : the server's id of the request.
    """

    message: str
    code: str | None = None
    status: int | None = None
    retry_after_ms: float | None = None
    request_id: str | None = None

    def __str__(self) -> str:
        """The failure in one line, as `[BadGateway] Request failed (status=502)`."""
        code = "" if self.code is None else f"[{self.code}] "
        return f"{code}{self.message}{'' if self.status is None else f' (status={self.status})'}"


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


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallEnd
    | ToolResult
    | TaskStatus
    | Finish
    | Usage
    | EmptyToolCalls
    | StreamFailed
)
"""What the readers return."""
ServiceEvent: TypeAlias = Event | ToolsLeftOut | InvalidToolCall | AskedAgain
"""What the parts above the readers return."""
