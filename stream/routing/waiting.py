"""The waiting sound: one soft loop from the question, or the first call, to the first word of the answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cues.errors import MixerClosedError
from cues.units import db_to_gain
from stream.routing.turn import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues import Cue, Mixer, Voice
    from stream.routing.spans import Span, Spans

__all__ = ["WaitingSound"]

_QUIET = db_to_gain(-50.0)  # Speech below this sample peak is breath and noise, and not heard.
_FADE_MS = 30.0
_AHEAD_S = 0.5  # An onset that speech has postponed is moved when it comes this near, not with every frame.


class _Wait:
    """One wait and its loop. `answer_from` is the first sample whose speech is the answer.

    A `blind` wait is for calls whose end nobody reports: any speech after its onset is the answer.
    """

    def __init__(self, cue: Cue | None, since: int) -> None:
        self.cue, self.since = cue, since
        self.voice: Voice | None = None
        self.span: Span | None = None
        self.onset = self.give_up_at = self.answer_from = NEVER
        self.blind = self.held = self.ended = False


class WaitingSound:
    """The loop of a turn. It begins `patience_s` after anything was heard, and is scheduled ahead: no timer is needed.

    The mixer shows each frame's speech before it mixes it, so the loop ends in the frame of the first audible sample.
    Speech that is not the answer postpones it; while a cue sounds, it is silent. A wait may be changed by the thread
    that mixes and the one that handles events at once: the first schedules, the other begins and ends waits.

    `answered` says whether the answer was heard, since `go_on` began to wait. The loop does not begin before
    `queued_until`, the output sample at which the queued speech ends.
    """

    def __init__(self, mixer: Mixer, spans: Spans, *, patience_s: float) -> None:
        self._mixer, self._spans = mixer, spans
        self._patience = round(patience_s * mixer.sample_rate)
        self._ahead = round(_AHEAD_S * mixer.sample_rate)
        self._wait: _Wait | None = None
        self._heard_until = self.queued_until = 0
        self._cues: tuple[tuple[int, int], ...] = ()
        self.answered = False

    @property
    def sounds(self) -> bool:
        """Whether the loop has begun."""
        return (wait := self._wait) is not None and wait.voice is not None and self._mixer.position >= wait.onset

    def go_on(self, cue: Cue | None, *, answer_from: int, blind: bool, limit_samples: int) -> None:
        """Wait for speech with `cue`, or with none; a loop that has begun goes on, and does not change its cue.

        `limit_samples` is the longest wait from now.
        """
        wait = self._wait
        if wait is None or wait.ended or (wait.cue is not cue and not (cue and self.sounds)):
            since = self._mixer.position if wait is None or wait.ended else wait.since
            self.end()
            self.answered, wait = False, _Wait(cue, since)
            self._schedule(wait)
            self._wait = wait
            self._mixer.observe(self._hear)
        wait.answer_from, wait.blind = answer_from, blind
        wait.give_up_at = self._mixer.position + limit_samples

    def end(self) -> None:
        """Stop waiting: the loop fades out, or never starts."""
        wait, self._wait = self._wait, None
        if wait is not None:
            self._mixer.observe(None)
            self._end(wait)

    def cue_sounds(self, start: int, end: int) -> None:
        """Be silent while a cue sounds."""
        now = self._mixer.position
        self._cues = (*(pair for pair in self._cues if pair[1] > now), (start, end))
        self._heard_until = max(self._heard_until, end)

    def forget(self) -> None:
        """Cues were cut, and queued speech was dropped."""
        now = self._mixer.position
        self._heard_until, self.queued_until, self._cues = min(self._heard_until, now), 0, ()

    # In the thread that mixes.

    def _hear(self, speech: NDArray[np.float32]) -> None:
        """Look at the speech of the next frame."""
        wait, now = self._wait, self._mixer.position
        if wait is None or wait.ended:
            return
        if now >= wait.give_up_at:
            self._end(wait)
            return
        begun = wait.voice is not None and now >= wait.onset
        if speech.max() > _QUIET or speech.min() < -_QUIET:
            last = now + int(np.flatnonzero(np.abs(speech) > _QUIET)[-1])
            self._heard_until = max(self._heard_until, last + 1)
            if last >= wait.answer_from or (begun and wait.blind):
                self.answered = True
                self._end(wait)
                return
            if begun:
                self._schedule(wait)
                return
        if begun:
            self._make_way(wait, now, now + len(speech))
        elif wait.onset < min(self._earliest(wait), now + len(speech) + self._ahead):
            self._schedule(wait)

    def _earliest(self, wait: _Wait) -> int:
        return max(max(wait.since, self._heard_until) + self._patience, self.queued_until)

    def _make_way(self, wait: _Wait, now: int, until: int) -> None:
        """Silence the loop while a cue sounds between `now` and `until`."""
        held = any(start < until and end > now for start, end in self._cues)
        voice = wait.voice  # once: the other thread may take it away
        if held != wait.held and voice is not None:
            wait.held = held
            voice.gain_db = -math.inf if held else 0.0

    def _schedule(self, wait: _Wait) -> None:
        self._stop(wait)
        if wait.ended or wait.cue is None:
            return
        wait.onset, wait.held = max(self._earliest(wait), self._mixer.position), False
        try:
            voice = self._mixer.play(wait.cue, at=wait.onset, loop=True)
        except MixerClosedError:  # such as by a hangup
            return
        span = self._spans.begin(wait.cue.name, wait.onset, None)
        wait.voice, wait.span = voice, span
        if wait.ended:  # meanwhile, by the other thread, which may have seen neither, one or both
            self._silence(voice, span)

    def _end(self, wait: _Wait) -> None:
        wait.ended = True
        self._stop(wait)

    def _stop(self, wait: _Wait) -> None:
        voice, span, wait.voice, wait.span = wait.voice, wait.span, None, None
        self._silence(voice, span)

    def _silence(self, voice: Voice | None, span: Span | None) -> None:
        """Stop a voice and end its span; a second time changes nothing."""
        if voice is not None:
            voice.stop(fade_ms=_FADE_MS)
        if span is not None:
            self._spans.fade(span, self._mixer.position, _FADE_MS)
