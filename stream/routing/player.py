"""Plays a session's cues on the mixer: throttling, placement, mute switches and a record of onsets."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cues.errors import MixerClosedError
from cues.mixing.voice import Wait
from stream.events import StreamFailed, TaskStatus, ToolResult
from stream.routing.spans import Spans
from stream.routing.turn_state import NEVER
from stream.routing.words_ahead import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cues import Cue, Mixer, Voice
    from stream.events import ServiceEvent
    from stream.routing.rules import CueRules, Placement
    from stream.routing.spans import Span
    from stream.routing.words_ahead import WordsAhead

__all__ = ["CuePlayer", "Played", "RouterStats"]

FADE_MS = 30.0
_BREATH_S = 0.25  # A phrase that follows words comes where a speaker would take a breath.
_STALE_S = 2.0
_LONGEST_WORDS_S = 20.0  # Without a pause.
_HELD_OFF_S = 0.1  # Longer than a frame.


@dataclass(frozen=True, slots=True)
class Played:
    """A cue that the router started for `event`; it begins at output sample `onset_samples`."""

    cue: str
    event: ServiceEvent
    onset_samples: int
    placement: Placement = "now"


@dataclass(slots=True)
class RouterStats:
    """Counts of the router's decisions: cues started, coalesced, thinned out of a burst, muted or not heard."""

    played: int = 0
    coalesced: int = 0
    thinned: int = 0
    muted: int = 0


class _Throttle:
    """Coalesces repeated cues and thins bursts (a token bucket): users turn off what beeps for each of ten calls."""

    def __init__(self, rules: CueRules, sample_rate: int, now: int) -> None:
        self._rules, self._rate = rules, sample_rate
        self.last_onset: dict[str, int] = {}
        self._tokens, self._tokens_at = float(rules.burst), now
        self._minute: deque[int] = deque()

    def admit(self, cue: str, now: int, most_per_minute: float = inf) -> Literal["play", "coalesce", "thin"]:
        """The verdict on `cue` at output sample `now`; `count` one that plays."""
        last = self.last_onset.get(cue)
        if last is not None and (now - last) * 1000.0 < self._rules.coalesce_ms * self._rate:
            return "coalesce"
        refill = (now - self._tokens_at) / self._rate * self._rules.sustained_per_s
        self._tokens = min(self._tokens + refill, float(self._rules.burst))
        self._tokens_at = now
        while self._minute and now - self._minute[0] >= 60 * self._rate:
            self._minute.popleft()
        if self._tokens < 1.0 or len(self._minute) >= most_per_minute:
            return "thin"
        return "play"

    def count(self, cue: str, at: int, most_per_minute: float) -> None:
        """Count `cue`, which begins at sample `at`, and among those of a minute if they are limited."""
        self._tokens -= 1.0
        if most_per_minute < inf:
            self._minute.append(at)
        self.last_onset[cue] = at


class _Waiting(NamedTuple):
    """A cue that waits for a pause; one that waits for silence also has its limit, and is counted when it sounds.

    Of the phrases, only the latest of those with the highest `rank` waits, as with `Follower`; a call's begins with 0.
    """

    voice: Voice
    cue: str
    event: ServiceEvent
    most_per_minute: float | None = None
    rank: tuple[int, bool] = (0, False)

    @property
    def is_next_phrase(self) -> bool:
        """Whether it is a phrase that waits for words to end."""
        is_speech = bool(self.voice.cue.phrases) and self.most_per_minute is None
        return is_speech and self.voice.onset is None and not self.voice.done


def _is_success(event: ServiceEvent) -> bool:
    """Whether an outcome is that of a tool that has run well; a call that cannot run has none."""
    match event:
        case ToolResult(is_error=is_error):
            return not is_error
        case TaskStatus(status=status):
            return status != "failed"
    return False


class CuePlayer:
    """Plays cues for events, and keeps those that sound or wait; parameters and attributes as in `CueRouter`.

    `words` tells when words end, for a router that was told no `after_words`.
    """

    def __init__(
        self,
        bank: Mapping[str, Cue],
        mixer: Mixer,
        rules: CueRules,
        now_samples: Callable[[], int] | None,
        words: WordsAhead,
    ) -> None:
        self._rules, self._given_clock = rules, now_samples
        self._clock: Callable[[], int] = lambda: self.mixer.position
        self._ahead = 0  # of that clock: what earlier ones have counted
        self._muted_cues: set[str] = set()
        self._turn = self._n_texts = self._n_failures = 0
        self.muted = False
        self.stats = RouterStats()
        self.spans = Spans(mixer.sample_rate)
        self.after_words: Callable[[Callable[[int], None]], None] | None = None
        self._words = words
        self.on_played: Callable[[Played], None] | None = None
        self.is_heard: Callable[[], bool] = lambda: True
        self.use_mixer(bank, mixer)

    def use_mixer(self, bank: Mapping[str, Cue], mixer: Mixer) -> None:
        """Continue on another mixer: switches, counts and subscribers stay."""
        self.bank, self.mixer = bank, mixer
        self.spans.sample_rate = mixer.sample_rate
        self._throttle = _Throttle(self._rules, mixer.sample_rate, self.now_samples())
        self._sounding: list[tuple[Voice, Span]] = []
        self._in_pause: list[_Waiting] = []
        self._put_off: Voice | None = None
        self._of_use_s = 0.0  # the silence after its onset that it announces

    def now_samples(self) -> int:
        """The time for coalescing, bursts and limits, samples."""
        return self._clock() + self._ahead if self._given_clock is None else self._given_clock()

    def use_clock(self, now_samples: Callable[[], int]) -> None:
        """Count by this clock from now on, unless the router was made with one; the time so far stays."""
        self._ahead = self.now_samples() - now_samples()
        self._clock = now_samples

    @property
    def now_s(self) -> float:
        """The same time, seconds."""
        return self.now_samples() / self.mixer.sample_rate

    def play(
        self,
        name: str | None,
        event: ServiceEvent,
        priority: int = 0,
        *,
        most_per_minute: float = inf,
        quiet_s: float | None = None,
        speech_s: float = 0.0,
        after_s: float = 0.0,
    ) -> Played | None:
        """Play a cue at the placement of the rules; returns it if it starts at once.

        With `quiet_s`, it waits until nothing was heard for so long after `speech_s` of speech, or for `drop`. It is of
        use if words follow it more than `after_s` later.
        """
        if name is None or name not in self.bank:
            return None
        if self.is_silent(name) or not self.is_heard():
            self.stats.muted += 1
            return None
        if quiet_s is not None and self.puts_off:
            return None
        self.drop()
        now = self.now_samples()
        verdict = self._throttle.admit(name, now, most_per_minute)
        if isinstance(event, StreamFailed) and (verdict == "thin" or self._may_give_way(name)):
            verdict = "play"  # it ends the turn, and nothing else would say so
        if verdict != "play":
            self.stats.coalesced += verdict == "coalesce"
            self.stats.thinned += verdict == "thin"
            return None
        if quiet_s is not None:
            rate = self.mixer.sample_rate
            not_before = self.mixer.position + round((speech_s + quiet_s) * rate)
            wait = Wait(patience=round(quiet_s * rate), not_before=not_before, begins_again=False)
            if (voice := self._play(name, priority=priority, wait=wait)) is not None:
                self._put_off, self._of_use_s = voice, after_s
                self._in_pause.append(_Waiting(voice, name, event, most_per_minute))
            return None
        self._throttle.count(name, now, most_per_minute)
        is_speech = bool(self.bank[name].phrases)
        placement = "after_words" if is_speech else self._rules.placement_of(name)
        if placement == "now":
            onset = self.mixer.position
            voice = self._play(name, priority=priority)
            return None if voice is None else self._note(voice, Played(name, event, onset))
        if placement == "after_words":
            self._follow_words(name, event, priority, is_speech=is_speech)
        elif (voice := self._play(name, priority=priority, placement="in_pause")) is not None:
            self._in_pause.append(_Waiting(voice, name, event))
        return None

    @property
    def waits_for_pause(self) -> bool:
        """Whether a cue waits for a pause, or for the end of the words; not for silence."""
        in_pause = (entry.voice for entry in self._in_pause if entry.most_per_minute is None)
        return self._words.is_followed or any(voice.onset is None and not voice.done for voice in in_pause)

    @property
    def puts_off(self) -> bool:
        """Whether a cue waits for silence."""
        return self._put_off is not None and self._put_off.onset is None and not self._put_off.done

    def hold_off(self) -> None:
        """Let the cue that waits for silence wait on, as words are on their way; call it after each frame."""
        voice, not_before = self._put_off, self.mixer.position + round(_HELD_OFF_S * self.mixer.sample_rate)
        if voice is not None and voice.wait is not None and voice.wait.not_before < not_before:
            voice.wait = replace(voice.wait, not_before=not_before)

    def drop(self, words_in_s: float = -inf) -> None:
        """Cancel the cue that waits for silence, unless the words are expected long enough after its onset.

        One that sounds goes on.
        """
        if self._put_off is not None and self.puts_off:
            of_use_s = (self._put_off.stretches[-1][0] - self.mixer.position) / self.mixer.sample_rate + self._of_use_s
            if words_in_s > of_use_s:
                return
            self._put_off.stop()
        self._put_off = None

    def is_silent(self, name: str) -> bool:
        """Whether a cue is muted."""
        return self.muted or name in self._muted_cues

    def begin_turn(self) -> None:
        """Coalesce nothing with earlier cues; the burst count stays."""
        self._throttle.last_onset.clear()

    def end_turn(self) -> None:
        """Drop the cues that wait for the end of words."""
        self._turn += 1

    def poll(self) -> None:
        """Note the cues that have started in a pause."""
        for number, (sounding, span) in enumerate(self._sounding):
            if sounding.cue.phrases and span.end_samples != (end := sounding.stretches[-1][1]):  # words have cut it
                self._sounding[number] = sounding, self.spans.change(span, span.start_samples, end)
        if not self._in_pause:
            return
        waiting = self._in_pause
        self._in_pause = [entry for entry in waiting if entry.voice.onset is None and not entry.voice.done]
        for voice, name, event, most_per_minute, _ in waiting:
            if voice.onset is not None:
                if most_per_minute is not None:
                    ago = self.mixer.position - voice.onset
                    self._throttle.count(name, self.now_samples() - ago, most_per_minute)
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
        now = self.mixer.position
        for voice, span in self._sounding:
            if only is None or span.cue in only:
                voice.stop(fade_ms=fade_ms)
                self.spans.fade(span, now, fade_ms)
        for entry in self._in_pause:
            if only is None or entry.cue in only:
                entry.voice.stop(fade_ms=fade_ms)
        self._words.drop(only)
        self._sounding = [pair for pair in self._sounding if only is not None and pair[1].cue not in only]
        self._in_pause = [entry for entry in self._in_pause if only is not None and entry.cue not in only]

    def give_way(self) -> None:
        """Drop phrases that wait, for a pause or for the words before them: more words come."""
        self._n_texts += 1
        for entry in self._in_pause:
            if entry.is_next_phrase:
                entry.voice.stop()

    def drop_calls(self) -> None:
        """Drop phrases of calls that wait: the turn has failed."""
        self._n_failures += 1
        for entry in self._in_pause:
            if entry.is_next_phrase and not entry.rank[0]:
                entry.voice.stop()

    def _follow_words(self, name: str, event: ServiceEvent, priority: int, *, is_speech: bool) -> None:
        """Play a cue where the words before now end, unless the turn has ended or the cue was muted meanwhile."""
        turn, n_texts, n_failures = self._turn, self._n_texts, self._n_failures
        rank = priority, bool(priority) and not _is_success(event)

        def then(at: int, more_come: bool = False) -> None:
            gives_way = n_texts != self._n_texts or (n_failures != self._n_failures and not priority)
            if turn == self._turn and not ((is_speech and gives_way) or self.is_silent(name)):
                self._play_after_words(name, event, max(at, self.mixer.position), rank, more_come=more_come)

        if self.after_words is not None:
            self.after_words(then)
        else:
            self._words.follow(Follower(name, rank, then))

    def _may_give_way(self, name: str) -> bool:
        """Whether a cue is a phrase that was counted, and yet may never sound: none of its name does now."""
        cue = self.bank[name]
        return bool(cue.phrases) and all(voice.cue.name != cue.name for voice in self._sounding_phrases())

    def _sounding_phrases(self) -> list[Voice]:
        """The phrases that have begun and not ended."""
        voices = [voice for voice, _ in self._sounding] + [entry.voice for entry in self._in_pause]
        return [one for one in voices if one.cue.phrases and one.onset is not None and not one.done]

    def _play_after_words(
        self, name: str, event: ServiceEvent, onset: int, rank: tuple[int, bool], *, more_come: bool
    ) -> None:
        """Play a cue after the words, which end at `onset`; a tone in a pause, if more of them come."""
        cue, rate, (priority, _) = self.bank[name], self.mixer.sample_rate, rank
        if cue.phrases:
            for entry in self._in_pause:
                if entry.is_next_phrase:
                    if entry.rank > rank:
                        return
                    entry.voice.stop()
            said = max(onset, *(voice.stretches[-1][1] or 0 for voice in self._sounding_phrases()), 0)
            breath, longest = round(_BREATH_S * rate), len(cue) * rate // cue.sample_rate
            wait = Wait(
                patience=breath,
                not_before=onset,
                until_heard_from=NEVER if more_come else onset + breath,  # more words take its place
                begins_again=False,
                give_up_at=said + round((_LONGEST_WORDS_S if more_come else _STALE_S) * rate) + longest,
            )
            voice = self._play(name, priority=priority, wait=wait)
        else:
            voice = self._play(name, at=onset, priority=priority, placement="in_pause" if more_come else "overlay")
        if voice is not None and (cue.phrases or more_come):
            self._in_pause.append(_Waiting(voice, name, event, rank=rank))
        elif voice is not None:
            self._note(voice, Played(name, event, onset, "after_words"))

    def _play(self, name: str, **options: Any) -> Voice | None:
        """Play a cue once; None after the mixer was closed, such as by a hangup."""
        try:
            return self.mixer.play(self.bank[name], loop=False, **options)
        except MixerClosedError:
            return None

    def _note(self, voice: Voice, played: Played) -> Played:
        """Count and publish a cue whose onset is known."""
        cue = self.bank[played.cue]
        end: int | None = played.onset_samples + ceil(len(cue) * self.mixer.sample_rate / cue.sample_rate)
        if cue.phrases:
            end = voice.stretches[-1][1]
        span = self.spans.begin(played.cue, played.onset_samples, end)
        self._sounding = [pair for pair in self._sounding if not pair[0].done]
        self._sounding.append((voice, span))
        self.stats.played += 1
        if self.on_played is not None:
            self.on_played(played)
        return played
