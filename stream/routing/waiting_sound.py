"""The waiting sound: one soft loop from the question, or the first call, to the first word of the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cues.errors import MixerClosedError
from cues.library.shaping import LOOP_PERIOD_MS
from cues.mixing.voice import PHRASE_FADE_MS, WAIT_FADE_MS, Wait
from cues.units import ms_to_samples
from stream.routing.turn_state import NEVER

if TYPE_CHECKING:
    from cues import Cue, Voice
    from stream.routing.player import CuePlayer
    from stream.routing.rules import CueRules
    from stream.routing.spans import Span
    from stream.routing.turn_state import TurnState

__all__ = ["WaitingSound"]

_LONGEST_S = 1e6  # Of a wait, where there is no limit.
_AHEAD_S = 0.5  # A span whose start was put off is published again when the old start comes this near.


def _repeatable(cue: Cue) -> Cue:
    """A loop of a cue that does not loop, with silence after it: without a pause it would sound like an alarm."""
    n_missing = ms_to_samples(LOOP_PERIOD_MS, cue.sample_rate) - len(cue)
    return replace(cue, samples=np.pad(cue.samples, (0, max(n_missing, 0))), loop=True)


class WaitingSound:
    """The loop of a turn. It begins a while after anything was heard; the mixer starts, pauses and ends it.

    So no timer and no call is needed when speech begins: the mixer knows from which sample on speech is the answer.
    The loop does not begin before the speech that is queued by then has ended. It grows fainter by the rules' profile.
    """

    def __init__(self, player: CuePlayer, turn: TurnState, rules: CueRules) -> None:
        self._player, self._turn, self._rules = player, turn, rules
        self._mixer, self._spans, self._profile = player.mixer, player.spans, rules.profile_of()
        self._patience_s = min(rules.working_after_s, self._profile.working_after_s)
        self.covers_gap = False  # no call explains the silence that it waits for
        self._ends_by_call = False  # the first call ends this wait, unless the loop sounds
        self._patience = self._heard_before = 0
        self._ahead = round(_AHEAD_S * self._mixer.sample_rate)
        self._cue: Cue | None = None
        self._repeatable = lru_cache(maxsize=4)(_repeatable)  # another copy would begin the wait anew
        self._voice: Voice | None = None
        self._published: list[Span] = []
        self._wait: Wait | None = None
        self._since = self.queued_until = self._settled_until = 0
        self._asked_from = NEVER
        self._mixer.listens = True  # from now on every frame is read, also of an idle mixer

    @property
    def onset(self) -> int | None:
        """The output sample at which the loop that is heard began; `None` if none is."""
        return None if (voice := self._voice) is None or voice.done else voice.onset

    @property
    def sounds(self) -> bool:
        """Whether the loop is heard."""
        return self.onset is not None

    @property
    def answered(self) -> bool:
        """Whether the answer was heard."""
        if (wait := self._wait) is None:
            return False
        if (heard := self._mixer.heard) >= wait.until_heard_from:
            return True
        if wait.begins_again or self._voice is None or self._mixer.position < self._settled_until:
            return False
        if not (stretches := self._voice.stretches):
            return False
        onset = stretches[-1][0]
        return onset <= self._mixer.position and heard >= onset

    @property
    def patience_after_call_s(self) -> float:
        """The silence after a call in which it begins; infinite if it does not sound."""
        name = self._rules.working
        sounds = name is not None and name in self._player.bank and not self._player.is_silent(name)
        return self._patience_s if sounds else math.inf

    def follow(self, limit_s: float, *, has_limits: bool) -> None:
        """Follow the phase of the turn; with limits it waits without a sound, too, as they need to know of speech.

        `limit_s` is the longest wait from now.
        """
        rules, turn, player = self._rules, self._turn, self._player
        # The answer has begun, and its model or voice has stopped. Without limits nobody need report an answer's end.
        stalls = turn.phase == "done" and turn.is_open and turn.is_heard and has_limits
        name = rules.working if turn.had_calls or rules.thinking is None else rules.thinking
        covers_gap = stalls or not (turn.had_calls or rules.thinking)
        after_s = rules.silence_s if covers_gap else self._patience_s
        never = after_s == math.inf
        cue = None if name is None or never or player.is_silent(name) else player.bank.get(name)
        if cue is not None and not (cue.loop or cue.phrases):
            cue = self._repeatable(cue)
        if cue is not None and cue.phrases and turn.has_text and not (stalls or self.sounds):
            cue = None  # words are to be heard, and a phrase is no bridge to them
        needless = cue is None and (stalls or not (has_limits or player.puts_off))
        if needless or (turn.phase == "done" and not stalls):
            self.end()
            return
        if self._ends_by_call and not covers_gap and not self.sounds:
            self.end()  # A call's patience begins with the call.
        self.covers_gap = covers_gap
        self._ends_by_call = stalls or (covers_gap and not has_limits)
        self._go_on(
            cue,
            after_s=min(after_s, _LONGEST_S),
            answer_from=NEVER if stalls or (turn.has_text and turn.calls.has_tasks) else turn.answer_begins,
            blind=not (stalls or any(call.is_complete for call in turn.calls.awaited)),
            limit_samples=round(min(limit_s, _LONGEST_S) * self._mixer.sample_rate),
        )

    def _go_on(self, cue: Cue | None, *, after_s: float, answer_from: int, blind: bool, limit_samples: int) -> None:
        """Wait for speech with `cue`, or with none; a loop that has begun goes on, and does not change its cue.

        It begins `after_s` after anything was heard.
        Speech from sample `answer_from` on is the answer; in a `blind` wait, for calls whose end nobody reports, any
        speech over the loop, too. `limit_samples` is the longest wait from now.
        """
        now, wait = self._mixer.position, self._wait
        self._patience = round(after_s * self._mixer.sample_rate)
        over = wait is None or now >= wait.give_up_at
        until = NEVER if wait is None else wait.until_heard_from
        if answer_from != self._asked_from or over:  # no speech of before counts
            self._asked_from, until = answer_from, max(answer_from, now)
        begins = over or (cue is not self._cue and not (cue and self.sounds))
        if begins:
            self.end()
            self._cue, self._since = cue, now if over else self._since
        self._wait = Wait(
            patience=self._patience,
            not_before=self._not_before,
            until_heard_from=until,
            begins_again=not blind,
            give_up_at=now + limit_samples,
            ducks=self._profile.ducks,
        )
        if self._voice is not None:
            self._voice.wait = self._wait
        elif begins and self._cue is not None:
            try:
                self._voice = self._mixer.play(self._cue, loop=True, gain_db=self._gain_db, wait=self._wait)
            except MixerClosedError:  # such as by a hangup
                return
        self._settled_until = 0
        self.publish()

    @property
    def _not_before(self) -> int:
        return max(self._since + self._patience, self.queued_until)

    def queue(self, until: int) -> None:
        """Note that speech is queued up to an output sample."""
        self.queued_until = max(self.queued_until, until)
        if self._wait is not None and self._voice is not None and self._wait.not_before < self._not_before:
            self._wait = self._voice.wait = replace(self._wait, not_before=self._not_before)

    @property
    def _heard(self) -> int:
        """How long the loop was heard in the session, samples."""
        now = self._mixer.position
        stretches = () if self._voice is None else self._voice.stretches
        return self._heard_before + sum(max(min(end or now, now) - start, 0) for start, end in stretches)

    @property
    def _gain_db(self) -> float:
        """The level of the loop, in whole steps: a ramp a minute."""
        minutes = self._heard // (60 * self._mixer.sample_rate)
        return -min(minutes * self._profile.fainter_db, self._profile.faintest_db)

    def end(self) -> None:
        """Stop waiting: the loop fades out, or never starts."""
        wait, self._wait = self._wait, None
        if self._voice is None:
            return
        if self.covers_gap and wait is not None:  # A turn that is cut while nothing was heard ends at once.
            self._voice.wait = replace(wait, counts=False)
        self._settled_until = 0
        self.publish()
        self._heard_before = self._heard
        voice, self._voice, published, self._published = self._voice, None, self._published, []
        fade_ms = PHRASE_FADE_MS if voice.cue.phrases else WAIT_FADE_MS  # the answer may begin within the fade
        voice.stop(fade_ms=fade_ms)
        if published:
            self._spans.fade(published[-1], self._mixer.position, fade_ms)

    def publish(self) -> None:
        """Publish when the loop sounds, as far as that has changed."""
        position = self._mixer.position
        if self._voice is None or self._cue is None or position < self._settled_until:
            return
        if self._profile.fainter_db and self._voice.gain_db != self._gain_db:
            self._voice.gain_db = self._gain_db
        near = position + self._ahead
        stretches = self._voice.stretches
        for unheard in self._published[len(stretches) :]:  # the answer was in the same frame as its start
            self._spans.change(unheard, unheard.start_samples, unheard.start_samples)
        del self._published[len(stretches) :]
        for number, (start, end) in enumerate(stretches):
            if number == len(self._published):
                self._published.append(self._spans.begin(self._cue.name, start, end))
                continue
            span = self._published[number]
            is_put_off = span.start_samples < start and span.start_samples < near
            if is_put_off or start < span.start_samples or span.end_samples != end:
                self._published[number] = self._spans.change(span, start, end)
        if self._published and self._voice.onset is None:  # its start may be put off, and matters when it is near
            self._settled_until = self._published[-1].start_samples - self._ahead
