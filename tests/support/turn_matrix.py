"""The turns that every pipeline must get right, and what is read from their mixed samples.

A turn is a list of steps on the pipeline's clock. Each pipeline's test plays them with its real package.
"""

from dataclasses import dataclass

import numpy as np

from stream.routing.rules import CueRules, Limits
from tests.support.listening import new_clicks

RATE = 24000
PATIENCE_S, PERIOD_S = 3.5, 2.4
AUDIBLE = 1e-3  # −60 dBFS
SLOW_VOICE_S = 3.7
ASKED_S = 1.0
THINKING = CueRules(thinking="thinking")


@dataclass(frozen=True)
class Call:
    """A tool that runs for `runs_s`, and how it ends: "success", "error", "invented", "timeout", "never"."""

    name: str
    runs_s: float
    ends: str = "success"


@dataclass(frozen=True)
class Turn:
    """A question, its calls in a chain, an answer, and the cues that it must have, in order.

    `think_s` passes before each call and before the answer; `voice_s` from the answer's text to its first sound.
    """

    calls: tuple[Call, ...]
    answer: str = "It is sunny."
    think_s: float = 0.5
    voice_s: float = 0.2
    cues: tuple[str, ...] = ()


CHAIN = Turn(
    (Call("search", 5.0), Call("search", 12.0), Call("search", 2.0, "error")),
    cues=("tool_call", "success", "tool_call", "success", "tool_call", "error"),
)
TURNS = {
    "three chained calls": CHAIN,
    "slow voice": Turn(CHAIN.calls[:1], voice_s=SLOW_VOICE_S, cues=("tool_call", "success")),
    "slow model and voice": Turn(CHAIN.calls[:1], think_s=4.0, voice_s=SLOW_VOICE_S, cues=("tool_call", "success")),
    "unknown tool": Turn((Call("serch", 0.5, "invented"),), cues=("tool_call", "error")),
    "timeout": Turn((Call("search", 6.0, "timeout"),), cues=("tool_call", "error")),
    "plain": Turn((), think_s=8.0, voice_s=1.0),
}


@dataclass(frozen=True)
class Heard:
    """The output: the mix, the speech in the same samples, the spans of its cues, and when the turn began."""

    mixed: np.ndarray
    speech: np.ndarray
    spans: tuple
    asked: int = 0

    @property
    def cues(self):
        return tuple(span.cue for span in self.spans if span.cue not in ("working", "thinking"))

    @property
    def waiting(self):
        """The waiting sounds that were begun."""
        n = len(self.mixed)
        spans = [span for span in self.spans if span.cue in ("working", "thinking") and span.start_samples < n]
        return [span for span in spans if span.end_samples is None or span.end_samples > span.start_samples]

    @property
    def first_word(self):
        return int(np.flatnonzero(np.abs(self.speech) > AUDIBLE)[0])

    def longest_silence_s(self, until=None):
        """The longest silence from the question, or the first cue, to `until`: by default the first word."""
        heard = np.flatnonzero(np.abs(self.mixed) > AUDIBLE)
        until = self.first_word if until is None else until
        edges = np.concatenate([[self.asked], heard[(heard >= self.asked) & (heard < until)], [until]])
        return np.diff(edges).max() / RATE


def check_whole_turn(turn, heard):
    """No dead air, one waiting sound, nothing over the answer or after it, each cue by its rule."""
    assert heard.cues == turn.cues
    assert heard.longest_silence_s() <= PATIENCE_S + PERIOD_S
    assert len(heard.waiting) <= 1
    # From a fade after the first word on there is the answer alone, at full level, and nothing after it.
    begins = heard.first_word
    fade = round(0.05 * RATE)
    assert np.array_equal(heard.mixed[begins + fade :], heard.speech[begins + fade :])
    assert np.abs(heard.mixed[begins : begins + fade] - heard.speech[begins : begins + fade]).max() < 0.03


def check_silent_after(heard, sample, fade_s=0.05):
    """Nothing is heard after `sample` but a fade."""
    assert not heard.mixed[sample + round(fade_s * RATE) :].any()


INTERRUPTED = Turn((Call("search", 5.0),), think_s=5.0, voice_s=1.0)
STATES = {"thinking": 4.0, "working": 9.5, "answering": 14.0, "speaking": 16.7}
"""Seconds from the question of `INTERRUPTED` to a barge-in in each state."""


def check_barge_in(heard, state):
    """Something sounded before the barge-in, and nothing after its fade, without a click."""
    at = round((ASKED_S + STATES[state]) * RATE)
    assert heard.mixed[at - round(PERIOD_S * RATE) : at].any()
    check_silent_after(heard, at, 0.03 + 0.06)
    assert new_clicks(heard.mixed, np.zeros_like(heard.mixed)) == []


def lasts_s(turn, rest_s=70.0):
    """The time from the question, with `rest_s` after the first word: limits end a turn that was left open in 60."""
    return sum(turn.think_s + call.runs_s for call in turn.calls) + turn.think_s + turn.voice_s + rest_s


HANGS = {
    "tool": (Turn((Call("search", 0.0, "never"),)), Limits(tool_s=20.0)),
    "model": (Turn((), think_s=1e6), Limits(model_s=20.0)),
    "voice": (Turn((Call("search", 5.0),), voice_s=1e6), Limits(speech_s=20.0)),
}
"""A part that hangs for ever, and the limit of 20 s that ends it."""


def check_hang(heard, log, *, sounds=True):
    """A turn that hangs ends with the error cue, and there was no dead air before it if a waiting sound is played."""
    assert heard.cues[-1] == "error"
    error = [span for span in heard.spans if span.cue == "error"][-1]
    if sounds:
        assert heard.longest_silence_s(until=error.start_samples) <= PATIENCE_S + PERIOD_S
    assert "has sent nothing for 20 s" in log
    check_silent_after(heard, error.end_samples)
