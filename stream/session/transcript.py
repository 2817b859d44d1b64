"""Session events for a display or a recorder: pydantic models, JSON on the wire.

Types that an unmute client knows keep their names and fields; our own begin with `cues.`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cues.extras import pip_install
from stream.errors import MissingFeatureError
from stream.events import CallStatus, StreamFailed, TextDelta, ToolCallEnd, ToolResult
from stream.notifying import notify

try:
    from pydantic import BaseModel, Field
except ImportError as error:  # pragma: no cover  (the test extra brings it)
    raise MissingFeatureError(f"transcript events need pydantic: {pip_install('services')}") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream.events import Event
    from stream.routing.spans import Span
    from stream.session.record import TurnRecord

__all__ = [
    "AudioDone",
    "CueSpan",
    "Failed",
    "Interrupted",
    "TextDone",
    "TextReady",
    "ToolCalled",
    "ToolEnded",
    "Transcript",
    "TranscriptEvent",
    "WordHeard",
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


class Transcript:
    """Sends the session events to a listener, in order."""

    def __init__(self, listener: Callable[[BaseModel], None]) -> None:
        self._listener = listener

    def event(self, event: Event) -> None:
        """Send an event of the model's stream."""
        match event:
            case TextDelta(text=text):
                self._publish(TextReady(delta=text))
            case ToolCallEnd(tool_name=name, arguments_json=arguments, status=status):
                self._publish(ToolCalled(tool_name=name, arguments=arguments, status=status))
            case ToolResult(tool_name=name, tool_call_id=call_id, is_error=is_error):
                self._publish(ToolEnded(tool_name=name, tool_call_id=call_id, is_error=is_error))
            case StreamFailed(message=message, code=code):
                self._publish(Failed(message=message, code=code))

    def word(self, text: str, at_s: float) -> None:
        """Send a word that starts to sound."""
        self._publish(WordHeard(delta=text, at_s=at_s))

    def cue(self, span: Span) -> None:
        """Send the span of a cue."""
        self._publish(CueSpan(number=span.number, cue=span.cue, start_s=span.start_s, end_s=span.end_s))

    def interrupted(self) -> None:
        """Send the barge-in."""
        self._publish(Interrupted())

    def done(self, record: TurnRecord) -> None:
        """Send the end of the turn."""
        self._publish(TextDone(text=record.heard_text))
        self._publish(AudioDone())

    def _publish(self, news: BaseModel) -> None:
        notify((self._listener,), news)
