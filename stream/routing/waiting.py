"""The waiting sound: a soft loop that starts when a tool has run for a while in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues import Cue, Mixer, Voice
    from stream.routing.spans import Span, Spans

__all__ = ["WaitingSound"]

_STEP_S = 0.5  # During speech the loop's onset is postponed in steps, so that not every frame costs a command.


class WaitingSound:
    """One loop for all calls under way; a further call does not restart it.

    It starts `after_s` seconds after the first call, and `pause_s` seconds after speech. `cue` returns it, or `None`
    for silence. It is scheduled in the mixer as soon as a call is known, so no timer is needed.
    """

    __slots__ = (
        "_after",
        "_cue",
        "_earliest",
        "_mixer",
        "_onset",
        "_pause",
        "_span",
        "_spans",
        "_speech_end",
        "_voice",
    )

    def __init__(
        self, mixer: Mixer, spans: Spans, cue: Callable[[], Cue | None], *, after_s: float, pause_s: float
    ) -> None:
        self._mixer, self._spans, self._cue = mixer, spans, cue
        self._after = round(after_s * mixer.sample_rate)
        self._pause = round(pause_s * mixer.sample_rate)
        self._earliest: int | None = None
        self._speech_end = 0
        self._voice: Voice | None = None
        self._span: Span | None = None
        self._onset = 0

    @property
    def sounds(self) -> bool:
        """Whether the loop has started."""
        return self._voice is not None and self._mixer.position >= self._onset

    def arm(self, known_at: int) -> None:
        """Wait for a call that started at that output sample; a wait under way continues."""
        if self._earliest is None:
            self._earliest = known_at + self._after
            self._schedule()

    def disarm(self) -> None:
        """Stop waiting: the loop fades out, or never starts."""
        self._earliest = None
        self._stop()

    def speech(self, until: int) -> None:
        """Note that speech lasts up to an output sample: the loop stops for it and returns in the pause."""
        if until <= self._speech_end:
            return
        self._speech_end = until
        if self._voice is not None and (self.sounds or self._onset < until + self._pause):
            self._stop()
            self._schedule()

    def _schedule(self) -> None:
        if self._earliest is None or (cue := self._cue()) is None:
            return
        now = self._mixer.position
        self._onset = max(self._earliest, now)
        if self._speech_end and self._speech_end + self._pause > self._onset:
            self._onset = self._speech_end + self._pause + round(_STEP_S * self._mixer.sample_rate)
        self._voice = self._mixer.play(cue, at=self._onset, loop=True)
        self._span = self._spans.begin(cue.name, self._onset, None)

    def _stop(self) -> None:
        if self._voice is not None:
            self._voice.stop(fade_ms=30.0)
            fade = round(0.03 * self._mixer.sample_rate)
            now = self._mixer.position
            assert self._span is not None
            self._spans.end(self._span.number, now + fade if now >= self._onset else now)
        self._voice = self._span = None
