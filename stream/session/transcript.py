"""Session events for a display or a recorder: JSON-ready dicts.

Types that an unmute client knows keep their names and fields; our own begin with `cues.`.
"""

from typing import Any, TypeAlias

from stream.events import Event, Interrupted, StreamFailed, TextDelta, ToolCallEnd, ToolResult
from stream.routing.spans import Span
from stream.session.turn_record import HeardWord, TurnRecord

__all__ = ["News", "transcript_of"]

News: TypeAlias = Event | HeardWord | Span | TurnRecord

_TYPES: dict[type, tuple[str, dict[str, str]]] = {
    TextDelta: ("unmute.response.text.delta.ready", {"delta": "text"}),  # sent to the speaker
    HeardWord: (
        "response.text.delta",
        {"delta": "text", "at_s": "onset_s"},
    ),  # starts to sound, if the speaker marks words
    ToolCallEnd: ("unmute.tool_call", {"tool_name": "tool_name", "arguments": "arguments_json", "status": "status"}),
    ToolResult: ("cues.tool_result", {name: name for name in ("tool_name", "tool_call_id", "is_error")}),
    Span: ("cues.span", {name: name for name in ("number", "cue", "start_s", "end_s")}),
    Interrupted: ("unmute.interrupted_by_vad", {}),
    StreamFailed: ("error", {"message": "message", "code": "code"}),
}
"""The type of the event for each class, and its fields with the attributes that they hold."""


def transcript_of(news: News) -> list[dict[str, Any]]:
    """The transcript events of what happens in a turn.

    Times (`at_s`, `start_s`, `end_s`) are seconds of output. A `cues.span` is sent again, with its number, when its end
    changes. A `TurnRecord` is the end of a turn.
    """
    if isinstance(news, TurnRecord):
        return [{"type": "response.text.done", "text": news.heard_text}, {"type": "response.audio.done"}]
    if type(news) not in _TYPES or getattr(news, "told", False):
        return []
    kind, fields = _TYPES[type(news)]
    return [{"type": kind, **{field: getattr(news, attribute) for field, attribute in fields.items()}}]
