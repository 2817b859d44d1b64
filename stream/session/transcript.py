"""Session events for a display or a recorder: JSON-ready dicts.

Types that an unmute client knows keep their names and fields; our own begin with `cues.`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from stream.events import Event, Interrupted, StreamFailed, TextDelta, ToolCallEnd, ToolResult
from stream.routing.spans import Span
from stream.session.record import HeardWord, TurnRecord

__all__ = ["News", "transcript_of"]

News: TypeAlias = Event | HeardWord | Span | TurnRecord


def transcript_of(news: News) -> list[dict[str, Any]]:
    """The transcript events of what happens in a turn.

    Times (`at_s`, `start_s`, `end_s`) are seconds of output. A `cues.span` is sent again, with its number, when its end
    changes. A `TurnRecord` is the end of a turn.
    """
    match news:
        case TextDelta():  # sent to the speaker
            return [{"type": "unmute.response.text.delta.ready", "delta": news.text}]
        case HeardWord():  # starts to sound, if the speaker marks words
            return [{"type": "response.text.delta", "delta": news.text, "at_s": news.onset_s}]
        case ToolCallEnd(told=False):
            call = {"tool_name": news.tool_name, "arguments": news.arguments_json, "status": news.status}
            return [{"type": "unmute.tool_call", **call}]
        case ToolResult():
            result = {"tool_name": news.tool_name, "tool_call_id": news.tool_call_id, "is_error": news.is_error}
            return [{"type": "cues.tool_result", **result}]
        case Span():
            return [
                {
                    "type": "cues.span",
                    "number": news.number,
                    "cue": news.cue,
                    "start_s": news.start_s,
                    "end_s": news.end_s,
                }
            ]
        case Interrupted():
            return [{"type": "unmute.interrupted_by_vad"}]
        case StreamFailed():
            return [{"type": "error", "message": news.message, "code": news.code}]
        case TurnRecord():
            return [{"type": "response.text.done", "text": news.heard_text}, {"type": "response.audio.done"}]
        case _:
            return []
