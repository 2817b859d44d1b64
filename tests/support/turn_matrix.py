"""The turns that every pipeline must get right, `play`, and what is read from their mixed samples.

A turn is a list of steps on the pipeline's clock. `tests/support/talks` has a `Talk` for each pipeline's real package.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.signal import correlate

from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.routing.rules import CueRules, Limits
from tests.support.listening import new_clicks, steady_voice
from tests.support.virtual_loop import LoopClock, run_virtually

RATE = 24000
PATIENCE_S, PERIOD_S, SILENCE_S = 3.5, 2.4, 4.0
AUDIBLE = 1e-3  # −60 dBFS
TICK = 0.088  # the peak of the built-in `working`
SLOW_VOICE_S = 3.7
ASKED_S = 1.0
THINKING = CueRules(thinking="thinking")
VOICE = float_of_pcm16(pcm16_of_float(steady_voice(2.0)))
"""The answer of all pipelines, as 16-bit samples have it."""


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
    "slow model and voice": Turn(CHAIN.calls[:1], think_s=3.8, voice_s=SLOW_VOICE_S, cues=("tool_call", "success")),
    "unknown tool": Turn((Call("serch", 0.5, "invented"),), cues=("tool_call", "error")),
    "timeout": Turn((Call("search", 6.0, "timeout"),), cues=("tool_call", "error")),
    "plain": Turn((), think_s=8.0, voice_s=1.0),
}


def calls_to_run(turn):
    """The calls that reach a tool, and the tools' time limit."""
    timeout_s = next((call.runs_s for call in turn.calls if call.ends == "timeout"), None)
    return iter([call for call in turn.calls if call.ends != "invented"]), timeout_s


async def result_of(call):
    """The tool's own work."""
    await asyncio.sleep(call.runs_s if call.ends in ("success", "error") else 1e6)
    if call.ends == "error":
        raise RuntimeError("no such page")
    return "found"


class Talk(Protocol):
    """A conversation in one pipeline, made with its turn, its clock and the adapter's options.

    Attributes
    ----------
    router, played : the router, and the frames that left.
    holds_s : the longest sound that is still heard after a barge-in.
    """

    async def __aenter__(self): ...

    async def ask(self): ...

    async def interrupt(self): ...

    async def __aexit__(self, *_): ...


def play(kind, turn, *, lasts_s, interrupt_s=None, tools=("search",), **options):
    """What was heard, whether the turn was over after `lasts_s` from the question, and the conversation."""

    async def go():
        clock = LoopClock()
        async with kind(turn, clock, tools=tools, **options) as talk:
            await clock.sleep_until(ASKED_S)
            await talk.ask()
            if interrupt_s is not None:
                await clock.sleep_until(ASKED_S + interrupt_s)
                await talk.interrupt()
            await clock.sleep_until(ASKED_S + lasts_s)
            heard = talk.played.heard(talk.router.spans, None if interrupt_s else VOICE, asked_s=ASKED_S)
            return heard, talk.router.is_over, talk

    return run_virtually(go)


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


def check_whole_turn(turn, heard, *, tick=0.03):
    """No dead air, one waiting sound, nothing over the answer or after it, each cue by its rule.

    The fade of the waiting sound may reach `tick` over the first word.
    """
    assert heard.cues == turn.cues
    assert heard.longest_silence_s() <= PATIENCE_S + PERIOD_S
    assert len(heard.waiting) <= 1
    # From a fade after the first word on there is the answer alone, at full level, and nothing after it.
    begins = heard.first_word
    fade = round(0.05 * RATE)
    assert np.array_equal(heard.mixed[begins + fade :], heard.speech[begins + fade :])
    assert np.abs(heard.mixed[begins : begins + fade] - heard.speech[begins : begins + fade]).max() < tick


def play_whole_turn(kind, name, *, thinking):
    """From the question, or without a sound for thinking from the first call, to the answer's end."""
    turn = TURNS[name]
    if name == "unknown tool":
        turn = replace(turn, cues=("error",))  # The tools are declared: the name alone decides.
    heard, is_over, _ = play(kind, turn, lasts_s=lasts_s(turn), rules=THINKING if thinking else CueRules())
    check_whole_turn(turn, heard if thinking else replace(heard, asked=heard.spans[0].start_samples))
    assert new_clicks(heard.mixed, heard.speech) == []
    assert is_over


def play_whole_turn_in_profile(kind, name, profile):
    """From the question to the answer's end, with a waiting sound as the only sign where the profile wants no more."""
    turn = TURNS[name]
    heard, is_over, _ = play(kind, turn, lasts_s=lasts_s(turn), rules=CueRules(profile=profile))
    errors = tuple(cue for cue in turn.cues if cue == "error")
    # A chained call is made over the waiting sound of the first one.
    calls = ("tool_call",) if profile == "normal" and name != "unknown tool" else ()
    # The waiting sound begins sooner than in `full`, so one of its ticks meets the first word of a turn.
    check_whole_turn(replace(turn, cues=calls + errors), heard, tick=TICK)
    assert new_clicks(heard.mixed, heard.speech) == []
    assert is_over


def play_gap(kind, profile):
    """A turn whose model is silent for 8 s, and calls nothing."""
    turn = TURNS["plain"]
    heard, is_over, _ = play(kind, turn, lasts_s=lasts_s(turn), rules=CueRules(profile=profile))
    check_whole_turn(turn, heard)
    (waiting,) = heard.waiting
    assert abs((waiting.start_samples - heard.asked) / RATE - SILENCE_S) <= 0.1
    assert is_over


def play_barge_in(kind, state, profile="full"):
    rules = CueRules(thinking="thinking", profile=profile)
    heard, is_over, talk = play(kind, INTERRUPTED, lasts_s=30.0, interrupt_s=STATES[state], rules=rules)
    check_barge_in(heard, state, kind.holds_s)
    assert is_over
    return talk


def play_hang(kind, name, log, *, sounds=True, profile="full"):
    turn, limits = HANGS[name]
    rules = CueRules(thinking="thinking", profile=profile) if sounds else CueRules(working=None)
    heard, *_ = play(kind, turn, lasts_s=45.0, interrupt_s=40.0, rules=rules, limits=limits)
    check_hang(heard, log.text, sounds=sounds)


def check_silent_after(heard, sample, fade_s=0.05):
    """Nothing is heard after `sample` but a fade."""
    assert not heard.mixed[sample + round(fade_s * RATE) :].any()


INTERRUPTED = Turn((Call("search", 5.0),), think_s=5.0, voice_s=1.0)
STATES = {"thinking": 4.0, "working": 9.5, "answering": 14.0, "speaking": 16.7}
"""Seconds from the question of `INTERRUPTED` to a barge-in in each state."""


def check_barge_in(heard, state, holds_s=0.06):
    """Something sounded before the barge-in, and nothing after its fade, without a click."""
    at = round((ASKED_S + STATES[state]) * RATE)
    assert heard.mixed[at - round(PERIOD_S * RATE) : at].any()
    check_silent_after(heard, at, 0.03 + holds_s)
    assert new_clicks(heard.mixed, np.zeros_like(heard.mixed)) == []


def lasts_s(turn, rest_s=8.0):
    """The time from the question, with `rest_s` after the first word."""
    return sum(turn.think_s + call.runs_s for call in turn.calls) + turn.think_s + turn.voice_s + rest_s


WHOLE_TURNS = [(name, True) for name in TURNS] + [(name, False) for name, turn in TURNS.items() if turn.calls]
"""Names of turns, from the question or from the first call."""

PROFILES = ("full", "normal", "minimal")
IN_PROFILES = [(name, profile) for name, turn in TURNS.items() if turn.calls for profile in PROFILES[1:]]
"""Names of turns, and a profile that is not the default."""

HANGS = {
    "tool": (Turn((Call("search", 0.0, "never"),)), Limits(tool_s=20.0)),
    "model": (Turn((), think_s=1e6), Limits(model_s=20.0)),
    "voice": (Turn((Call("search", 5.0),), voice_s=1e6), Limits(model_s=20.0, speech_s=20.0)),
}
"""A part that hangs forever, and the limit of 20 s that ends it."""


def check_hang(heard, log, *, sounds=True):
    """A turn that hangs ends with the error cue, and there was no dead air before it if a waiting sound is played."""
    assert heard.cues[-1] == "error"
    error = [span for span in heard.spans if span.cue == "error"][-1]
    if sounds:
        assert heard.longest_silence_s(until=error.start_samples) <= PATIENCE_S + PERIOD_S
    assert "has sent nothing for 20 s" in log
    check_silent_after(heard, error.end_samples)


class Played:
    """Frames as they left, each with its time and its place among all mixed samples."""

    def __init__(self, clock=None):
        self._clock, self._pieces, self.n_mixed, self._end = clock, [], 0, 0

    def add(self, samples, at_s=None):
        start = max(self._end, round((self._clock.now() if at_s is None else at_s) * RATE))
        self._pieces.append((self.n_mixed, start, np.array(samples, dtype=np.float64)))
        self.n_mixed, self._end = self.n_mixed + len(samples), start + len(samples)

    @property
    def ends_s(self):
        """When the last frame has been heard."""
        return self._end / RATE

    def signal(self):
        """The sound from time 0 on: frames one after the other, silence where none came in time."""
        out = np.zeros(self._end)
        for _, start, samples in self._pieces:
            out[start : start + len(samples)] = samples
        return out

    def heard(self, spans, speech, *, asked_s=0.0):
        """The signal with the places of its cues and of `speech` in it."""
        signal = self.signal()
        in_time = tuple(
            replace(span, start_samples=self._time_of(span.start_samples), end_samples=self._time_of(span.end_samples))
            for span in spans
        )
        return Heard(signal, _placed(speech, signal), in_time, round(asked_s * RATE))

    def _time_of(self, mixed):
        """The output sample in time of one among the mixed ones."""
        if mixed is None:
            return None
        before = [piece for piece in self._pieces if piece[0] <= mixed]
        return mixed if not before else before[-1][1] + mixed - before[-1][0]


def _placed(speech, signal):
    """`speech` where it is found in `signal`, by correlation; silence elsewhere."""
    out = np.zeros(len(signal))
    if speech is None or len(speech) > len(signal):
        return out
    at = int(np.argmax(correlate(signal.astype(np.float32), speech, "valid", method="fft")))
    out[at : at + len(speech)] = speech
    return out
