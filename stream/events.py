"""The events that every reader returns.

A reader reports a call when its name is known, and again when its arguments are complete. Only a `ToolResult` says
that the tool ran, and whether it failed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "AskedAgain",
    "AudioDelta",
    "CallStatus",
    "EmptyToolCalls",
    "Event",
    "Finish",
    "Interrupted",
    "InvalidToolCall",
    "ReasoningDelta",
    "ServerError",
    "ServiceEvent",
    "StreamFailed",
    "TaskStatus",
    "TextDelta",
    "ToolCallCancelled",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolResult",
    "ToolsLeftOut",
    "TranscriptDelta",
    "Usage",
]

CallStatus: TypeAlias = Literal["ok", "incomplete", "malformed"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of text to be spoken, with the `channel` that some servers name (`"text"`, `"json"`)."""

    text: str
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, which is never spoken.

    `sent_as` is the field of a message that held it, such as `"reasoning_content"`; `==` ignores it.
    """

    text: str
    sent_as: str = field(default="", kw_only=True, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool is being called; sent as soon as its name is certain, so that a cue can start at once.

    Attributes
    ----------
    tool_name : str
        Without a `functions.` prefix.
    tool_call_id : str
        The server's id; `""` if it sent none.
    index : int
        Ordinal of the call in this stream, from 0.
    told : bool
        The model only tells of the call, as in `functions.dim(percent=40)` amid prose. It is not spoken; it has no cue,
        and does not run unless asked for (`ToolRunner(told="run")`).
    from_text : bool
        The model wrote the call as text, and the server passed it on as such; `==` ignores it.
    """

    tool_name: str
    tool_call_id: str = ""
    index: int = 0
    told: bool = field(default=False, kw_only=True, repr=False)
    from_text: bool = field(default=False, kw_only=True, repr=False, compare=False)


class _ReadOnce:
    """A slot that is not a field: comparison, copy, pickle and `repr` ignore it."""

    __slots__ = ("_arguments",)
    _arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolCallEnd(_ReadOnce):
    """The arguments of a call are complete, or were cut off. It does not say that the tool ran.

    Name (`""` if it was cut off), id, index, `told` and `from_text` are those of the `ToolCallStart`.

    Attributes
    ----------
    arguments_json : str
        The arguments as JSON; `"{}"` for none, the raw text if it is not valid.
    status : {"ok", "incomplete", "malformed"}
        `"incomplete"`: cut off. `"malformed"`: not valid JSON, above the size limit, or rejected (`InvalidToolCall`).
        Run only calls that are `"ok"`, and only tools that were offered.
    extra_content : Mapping or None
        What the server sent beside the call and wants back with it in the history, such as Gemini's thought signature;
        `==` ignores it.

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
    told: bool = field(default=False, kw_only=True, repr=False)
    from_text: bool = field(default=False, kw_only=True, repr=False, compare=False)
    extra_content: Mapping[str, Any] | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments, parsed once; `None` unless `status` is `"ok"`, or if Python cannot read that JSON."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A tool has run. Only this event says whether it succeeded.

    `content` is the returned value, as text; name and id are `""` if not known. `by_server` says whether the server ran
    the tool and reported it in its stream; `index` is that of the call, which tells apart calls without an id, or
    `None`. `==` ignores both.
    """

    tool_name: str
    tool_call_id: str
    is_error: bool
    content: str
    by_server: bool = field(default=False, compare=False)
    index: int | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ToolCallCancelled:
    """The server withdraws a complete call; its result is no longer wanted."""

    tool_call_id: str


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """A piece of the model's own voice, with its format, such as `"audio/pcm;rate=24000"`.

    `pcm` holds 16-bit little-endian mono samples (G.711 is decoded), or the bytes as sent if `mime` names another one.
    """

    pcm: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class TranscriptDelta:
    """A piece of what audio says. It is heard already, so it is not spoken again."""

    text: str
    speaker: Literal["assistant", "user"]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The user begins to speak, or the server drops its answer: stop what plays."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """A fault in a session that goes on."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The state of a tool that the server runs itself (`"working"`, then `"completed"` or `"failed"`).

    The server may give an id of the task, and the tool's name or kind (`"web_search"`), which `==` ignores.
    """

    task_id: str
    status: str
    tool_name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Finish:
    """The server's finish reason, as it was sent.

    `reasoning_details` are blocks of thoughts that OpenRouter wants back with the answer in the history; `==` ignores
    them.
    """

    reason: str
    reasoning_details: tuple[Mapping[str, Any], ...] = field(default=(), kw_only=True, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a request, and the timings that the server measured; `None` for those that it did not send."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    load_ms: float | None = None
    prompt_eval_ms: float | None = None
    eval_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True)
class EmptyToolCalls:
    """The stream held an empty `tool_calls` array, and no text and no call. Always the last event."""


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The stream failed. Always the last event.

    Attributes
    ----------
    message : str
        The server's or client's message, or "Request failed".
    code : str or None
        The server's code; `"UpstreamFailure"` if an error of Ollama's form has none. `"unfinished"`: no finish reason.
        `"connection"`: the connection broke. `"timeout"`: the server went silent. `"closed"`: `Connection.close()`.
    status : int or None
        HTTP status.
    retry_after_ms : float or None
        The wait that the server asks for.
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


_WHY_LEFT_OUT = {
    "maximum": "more than the model can tell apart",
    "untrained": "the model calls no tools",
    "refused": "the server refused them",
}


@dataclass(frozen=True, slots=True)
class ToolsLeftOut:
    """A warning: some tools were not offered to the model.

    `reason` is `"maximum"` (more than the model can tell apart), `"untrained"` (its family calls no tools) or
    `"refused"` (the server refused tools).
    """

    tool_names: tuple[str, ...]
    reason: Literal["maximum", "untrained", "refused"]

    @property
    def why(self) -> str:
        """The reason in words."""
        return _WHY_LEFT_OUT[self.reason]


@dataclass(frozen=True, slots=True)
class InvalidToolCall:
    """A call that must not be run; comes just before its `ToolCallEnd`, whose status is `"malformed"`.

    `message` says the fault in words that a model can act on, and does not quote the arguments' values; `suggestions`
    are registered names close to the one called, the closest first.
    """

    tool_name: str
    tool_call_id: str
    index: int
    reason: Literal["unknown_tool", "not_json", "schema"]
    message: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The answer was empty, and the model is asked again; nothing of the empty answer was spoken.

    `attempt` is the number of the attempt that starts now; the first request was 1.
    """

    attempt: int
    how: Literal["without_tools", "fallback"]


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallEnd
    | ToolCallCancelled
    | ToolResult
    | AudioDelta
    | TranscriptDelta
    | Interrupted
    | ServerError
    | TaskStatus
    | Finish
    | Usage
    | EmptyToolCalls
    | StreamFailed
)
"""Events of the readers."""
ServiceEvent: TypeAlias = Event | ToolsLeftOut | InvalidToolCall | AskedAgain
"""Events of the model services, which stand above the readers."""
