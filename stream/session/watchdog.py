"""Whether a turn still waits for its model and its speaker: when each was last heard of, against the limits."""

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

_DRIED_UP_S = 0.2  # Speech of a speaker that tells neither words nor phrases is over after so much silence.


class Watchdog:
    """Begins to wait for both when it is made.

    Parameters
    ----------
    limits : how long each is waited for.
    clock : stream time.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits, self._clock = limits, clock
        self._model_at_s = self._speaker_at_s = clock.now()

    async def attend(self, events: AsyncIterable[Event]) -> AsyncIterator[Event]:
        """Pass on the model's events, each a sign of life: also text that is not spoken, or not yet a word."""
        try:
            async for event in events:
                self.heard_of_model()
                yield event
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()

    def heard_of_model(self) -> None:
        """The model has said something."""
        self._model_at_s = self._clock.now()

    def heard_of_speaker(self) -> None:
        """The speaker speaks, or has only now been given something to say."""
        self._speaker_at_s = self._clock.now()

    @property
    def speech_dried_up(self) -> bool:
        """Whether there was no speech for so long that more is not to be expected."""
        return self._clock.now() - self._speaker_at_s > _DRIED_UP_S

    def end_with_model(self, *, a_tool_runs: bool) -> StreamFailed | None:
        """What to tell of a model that has said nothing for too long."""
        limit_s = self._limits.tool_s if a_tool_runs else self._limits.model_s
        if self._clock.now() - self._model_at_s <= limit_s:
            return None
        return StreamFailed(f"the model has said nothing for {limit_s:g} s", code="stalled")

    def end_with_speaker(self) -> SpeakerError | None:
        """What to tell of a speaker that has text and has said nothing for too long."""
        if self._clock.now() - self._speaker_at_s <= self._limits.speech_s:
            return None
        return SpeakerError(f"the speaker has said nothing for {self._limits.speech_s:g} s")
