"""The watchdog of a turn: time since the model and the speaker were last active, against the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.errors import SpeakerError
from stream.events import StreamFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator

    from stream.clock import Clock
    from stream.events import Event
    from stream.session.limits import Limits

__all__ = ["Watchdog"]

_SPEECH_END_S = 0.2  # A speaker that marks neither words nor phrases has finished after this silence.


class Watchdog:
    """Watches the model and the speaker from the moment it is made."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits, self._clock = limits, clock
        self._model_at_s = self._speaker_at_s = clock.now()

    async def attend(self, events: AsyncIterable[Event]) -> AsyncIterator[Event]:
        """Pass on the model's events and note each one, also text that is not spoken or not yet a word."""
        try:
            async for event in events:
                self.note_model()
                yield event
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()

    def note_model(self) -> None:
        """Note that the model is active."""
        self._model_at_s = self._clock.now()

    def note_speaker(self) -> None:
        """Note that the speaker is active, or has just been given text."""
        self._speaker_at_s = self._clock.now()

    @property
    def speech_has_ended(self) -> bool:
        """Whether the silence has lasted so long that no more speech is expected."""
        return self._clock.now() - self._speaker_at_s > _SPEECH_END_S

    def failure_of_model(self, *, tool_runs: bool) -> StreamFailed | None:
        """The failure of a model that was silent for too long, or `None`."""
        limit_s = self._limits.tool_s if tool_runs else self._limits.model_s
        if self._clock.now() - self._model_at_s <= limit_s:
            return None
        return StreamFailed(f"the model has sent nothing for {limit_s:g} s", code="stalled")

    def error_of_speaker(self) -> SpeakerError | None:
        """The error of a speaker that has text and was silent for too long, or `None`."""
        if self._clock.now() - self._speaker_at_s <= self._limits.speech_s:
            return None
        return SpeakerError(f"the speaker has sent nothing for {self._limits.speech_s:g} s")
