"""Session events for a display or a recorder: pydantic models, JSON on the wire.

Types that an unmute client knows keep their names and fields; our own begin with `cues.`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import stream.events
from cues.extras import pip_install
from stream.errors import MissingFeatureError
from stream.events import CallStatus, StreamFailed, TextDelta, ToolCallEnd, ToolResult
from stream.notifying import notify
from stream.routing.spans import Span
from stream.session.record import HeardWord, TurnRecord

try:
    from pydantic import BaseModel, Field
except ImportError as error:  # pragma: no cover  (the test extra brings it)
    raise MissingFeatureError(f"transcript events need pydantic: {pip_install('services')}") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream.events import Event

__all__ = [
    "AudioDone",
    "CueSpan",
    "Failed",
    "Interrupted",
    "TextDone",
    "TextReady",
    "ToolCalled",
    "ToolEnded",
    "TranscriptEvent",
    "WordHeard",
    "transcript_to",
]


class ToolCalled(BaseModel):
    """A tool was called; `status` says whether its arguments are complete, cut off or not valid."""

    type: Literal["unmute.tool_call"] = "unmute.tool_call"
    tool_name: str
    arguments: str
    status: CallStatus = "ok"


class TextReady(BaseModel):
    """Text was sent to the speaker."""

    type: Literal["unmute.response.text.delta.ready"] = "unmute.response.text.delta.ready"
    delta: str


class WordHeard(BaseModel):
    """A word starts to sound, if the speaker marks words; `at_s` in seconds of output."""

    type: Literal["response.text.delta"] = "response.text.delta"
    delta: str
    at_s: float


class TextDone(BaseModel):
    """All text of the answer that was heard."""

    type: Literal["response.text.done"] = "response.text.done"
    text: str


class AudioDone(BaseModel):
    """The answer's sound has ended."""

    type: Literal["response.audio.done"] = "response.audio.done"


class Interrupted(BaseModel):
    """The user spoke, and the answer ended."""

    type: Literal["unmute.interrupted_by_vad"] = "unmute.interrupted_by_vad"


class ToolEnded(BaseModel):
    """A tool has run."""

    type: Literal["cues.tool_result"] = "cues.tool_result"
    tool_name: str
    tool_call_id: str
    is_error: bool


class CueSpan(BaseModel):
    """A cue sounds from `start_s` to `end_s` of output; sent again, with its number, when its end changes."""

    type: Literal["cues.span"] = "cues.span"
    number: int
    cue: str
    start_s: float
    end_s: float | None


class Failed(BaseModel):
    """The answer failed."""

    type: Literal["error"] = "error"
    message: str
    code: str | None = None


TranscriptEvent: TypeAlias = Annotated[
    ToolCalled | TextReady | WordHeard | TextDone | AudioDone | Interrupted | ToolEnded | CueSpan | Failed,
    Field(discriminator="type"),
]


def transcript_to(listener: Callable[[BaseModel], None]) -> Callable[[Event | HeardWord | Span | TurnRecord], None]:
    """A function that takes what happens in a turn, and calls `listener` with each transcript event of it."""

    def tell(news: Event | HeardWord | Span | TurnRecord) -> None:
        for event in _events_of(news):
            notify((listener,), event)

    return tell


def _events_of(news: Event | HeardWord | Span | TurnRecord) -> Iterator[BaseModel]:
    match news:
        case TextDelta():
            yield TextReady(delta=news.text)
        case ToolCallEnd():
            yield ToolCalled(tool_name=news.tool_name, arguments=news.arguments_json, status=news.status)
        case ToolResult():
            yield ToolEnded(tool_name=news.tool_name, tool_call_id=news.tool_call_id, is_error=news.is_error)
        case StreamFailed():
            yield Failed(message=news.message, code=news.code)
        case stream.events.Interrupted():
            yield Interrupted()
        case HeardWord():
            yield WordHeard(delta=news.text, at_s=news.onset_s)
        case Span():
            yield CueSpan(number=news.number, cue=news.cue, start_s=news.start_s, end_s=news.end_s)
        case TurnRecord():
            yield TextDone(text=news.heard_text)
            yield AudioDone()
