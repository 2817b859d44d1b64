"""Plays a session's cues on the mixer: throttling, placement, mute switches and a record of onsets."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from cues.errors import MixerClosedError
from stream.routing.spans import Spans
from stream.routing.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cues import Cue, Mixer, Voice
    from stream.events import ServiceEvent
    from stream.routing.rules import CueRules, Placement
    from stream.routing.spans import Span

__all__ = ["CuePlayer", "Played", "RouterStats"]

FADE_MS = 30.0


@dataclass(frozen=True, slots=True)
class Played:
    """A cue that the router started for `event`; it begins at output sample `onset_samples`."""

    cue: str
    event: ServiceEvent
    onset_samples: int
    placement: Placement = "now"


@dataclass(slots=True)
class RouterStats:
    """Counts of the router's decisions: cues started, coalesced, thinned out of a burst, muted."""

    played: int = 0
    coalesced: int = 0
    thinned: int = 0
    muted: int = 0


class CuePlayer:
    """Plays cues for events, and keeps those that sound or wait.

    `bank`, `mixer`, `rules`, `now_samples`, `stats`, `spans`, `after_words` and `on_played` are those of `CueRouter`.
    `on_span` gets the first and last sample of each cue.
    """

    def __init__(self, bank: Mapping[str, Cue], mixer: Mixer, rules: CueRules, now_samples: Callable[[], int]) -> None:
        self._bank, self._mixer, self._rules, self._now_samples = bank, mixer, rules, now_samples
        self._throttle = Throttle(rules, mixer.sample_rate, now_samples())
        self._muted_cues: set[str] = set()
        self._sounding: list[tuple[Voice, Span]] = []
        self._in_pause: list[tuple[Voice, str, ServiceEvent]] = []
        self._turn = 0
        self.muted = False
        self.stats = RouterStats()
        self.spans = Spans(mixer.sample_rate)
        self.after_words: Callable[[Callable[[int], None]], None] | None = None
        self.on_played: Callable[[Played], None] | None = None
        self.on_span: Callable[[int, int], None] = lambda _start, _end: None

    def succeed(self, other: CuePlayer) -> None:
        """Replace a player on another mixer: its switches, counts and subscribers stay."""
        self.muted, self._muted_cues, self.stats = other.muted, other._muted_cues, other.stats
        self.after_words, self.on_played = other.after_words, other.on_played
        self.spans, self.spans.sample_rate = other.spans, self._mixer.sample_rate

    def play(self, name: str | None, event: ServiceEvent, priority: int = 0) -> Played | None:
        """Play a cue at the placement of the rules; returns it if it starts at once."""
        if name is None or name not in self._bank:
            return None
        if self.is_silent(name):
            self.stats.muted += 1
            return None
        verdict = self._throttle.admit(name, self._now_samples())
        if verdict != "play":
            self.stats.coalesced += verdict == "coalesce"
            self.stats.thinned += verdict == "thin"
            return None
        placement = self._rules.placement_of(name)
        if placement == "now":
            return self._start(name, event, None, priority, placement)
        if placement == "after_words" and self.after_words is not None:
            turn = self._turn
            self.after_words(lambda at: self._start_later(name, event, at, priority, turn))
        elif (voice := self._play(name, priority=priority, placement="in_pause")) is not None:
            self._in_pause.append((voice, name, event))
        return None

    def is_silent(self, name: str) -> bool:
        """Whether a cue is muted."""
        return self.muted or name in self._muted_cues

    def begin_turn(self) -> None:
        """Coalesce nothing with earlier cues."""
        self._throttle.forget()

    def end_turn(self) -> None:
        """Drop the cues that wait for the end of words."""
        self._turn += 1

    def poll(self) -> None:
        """Note the cues that have started in a pause."""
        if not self._in_pause:
            return
        waiting = self._in_pause
        self._in_pause = [entry for entry in waiting if entry[0].onset is None and not entry[0].done]
        for voice, name, event in waiting:
            if voice.onset is not None:
                self._note(voice, Played(name, event, voice.onset, "in_pause"))

    def mute(self, cues: Collection[str]) -> None:
        """Mute some cues, and stop those that sound or wait."""
        self._muted_cues.update(cues)
        self.silence(FADE_MS, only=cues)

    def unmute(self, cues: Collection[str]) -> None:
        """Unmute some cues; without names, all."""
        self._muted_cues.difference_update(cues or tuple(self._muted_cues))

    def silence(self, fade_ms: float, only: Collection[str] | None = None) -> None:
        """Stop the cues that sound or wait: all, or those named."""
        now = self._mixer.position
        fade = round(fade_ms * self._mixer.sample_rate / 1000.0)
        for voice, span in self._sounding:
            if only is None or span.cue in only:
                voice.stop(fade_ms=fade_ms)
                self.spans.end(span.number, now + fade if span.start_samples <= now else now)
        for voice, name, _ in self._in_pause:
            if only is None or name in only:
                voice.stop(fade_ms=fade_ms)
        self._sounding = [pair for pair in self._sounding if only is not None and pair[1].cue not in only]
        self._in_pause = [entry for entry in self._in_pause if only is not None and entry[1] not in only]

    def _start_later(self, name: str, event: ServiceEvent, at: int, priority: int, turn: int) -> None:
        """Start a cue after its words, unless the turn has ended or the cue was muted meanwhile."""
        if turn == self._turn and not self.is_silent(name):
            self._start(name, event, at, priority, "after_words")

    def _start(
        self, name: str, event: ServiceEvent, at: int | None, priority: int, placement: Placement
    ) -> Played | None:
        onset = self._mixer.position if at is None else max(at, self._mixer.position)
        voice = self._play(name, at=None if at is None else onset, priority=priority)
        return None if voice is None else self._note(voice, Played(name, event, onset, placement))

    def _play(self, name: str, **options: Any) -> Voice | None:
        """Play a cue once; None after the mixer was closed, such as by a hangup."""
        try:
            return self._mixer.play(self._bank[name], loop=False, **options)
        except MixerClosedError:
            return None

    def _note(self, voice: Voice, played: Played) -> Played:
        """Count and publish a cue whose onset is known."""
        cue = self._bank[played.cue]
        n_samples = ceil(len(cue) * self._mixer.sample_rate / cue.sample_rate)
        span = self.spans.begin(played.cue, played.onset_samples, played.onset_samples + n_samples)
        self.on_span(played.onset_samples, played.onset_samples + n_samples)
        self._sounding = [pair for pair in self._sounding if not pair[0].done]
        self._sounding.append((voice, span))
        self.stats.played += 1
        if self.on_played is not None:
            self.on_played(played)
        return played
