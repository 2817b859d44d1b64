"""The watchdog of a speaker: time since it was last active. The router watches the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.errors import SpeakerError

if TYPE_CHECKING:
    from stream.clock import Clock

__all__ = ["Watchdog"]

_SPEECH_END_S = 0.2  # A speaker that marks neither words nor phrases has finished after this silence.


class Watchdog:
    """Watches the speaker from the moment it is made."""

    def __init__(self, speech_s: float, clock: Clock) -> None:
        self._speech_s, self._clock = speech_s, clock
        self._at_s = clock.now()

    def note(self) -> None:
        """Note that the speaker is active, or has just been given text."""
        self._at_s = self._clock.now()

    @property
    def speech_has_ended(self) -> bool:
        """Whether the silence has lasted so long that no more speech is expected."""
        return self._clock.now() - self._at_s > _SPEECH_END_S

    def error(self) -> SpeakerError | None:
        """The error of a speaker that has text and was silent for too long, or `None`."""
        if self._clock.now() - self._at_s <= self._speech_s:
            return None
        return SpeakerError(f"the speaker has sent nothing for {self._speech_s:g} s")
