"""The turn matrix in a `VoiceSession`: what is heard between question and answer, read from the mixed samples."""

import asyncio

import numpy as np
import pytest

from stream.events import Finish, Interrupted, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import CueRules, Limits
from stream.speech.speaker import Speech
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.listening import new_clicks
from tests.support.turn_matrix import (
    CHAIN,
    PATIENCE_S,
    PERIOD_S,
    RATE,
    TURNS,
    Call,
    Heard,
    Turn,
    check_silent_after,
    check_whole_turn,
)
from tests.support.turns import run_turn

TOOLS = ["search"]
RULES = CueRules(thinking="thinking")


class SlowVoice(VoiceLikeSpeaker):
    """Speaks `delay_s` after it got text."""

    delay_s = 0.2

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    async def speak(self, phrase):
        await self._clock.sleep(self.delay_s)
        async for speech in super().speak(phrase):
            yield speech


def slow(delay_s):
    return type("Slow", (SlowVoice,), {"delay_s": delay_s})


def steps(turn):
    """The events of a turn, with their times; a call that never ends is the last."""
    events, at_s = [], 0.0
    for n, call in enumerate(turn.calls):
        at_s += turn.think_s
        events += [(at_s, ToolCallStart(call.name, str(n))), (at_s, ToolCallEnd(call.name, str(n)))]
        events += [(at_s, Finish("tool_calls"))]
        at_s += call.runs_s
        if call.ends == "never":
            return [*events, (1e6, Finish("stop"))]
        is_error = call.ends != "success"
        events += [(at_s, ToolResult(tool_name=call.name, tool_call_id=str(n), is_error=is_error, content=call.ends))]
    at_s += turn.think_s
    return [*events, (at_s, TextDelta(turn.answer)), (at_s, Finish("stop"))]


def play(turn, **options):
    options = {"rules": RULES, "tools": TOOLS, **options}
    told = run_turn(steps(turn), speaker=options.pop("speaker", slow(turn.voice_s)), **options)
    return Heard(told.tape.mixed, told.tape.speech, tuple(told.router.spans)), told


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("thinking", ["thinking", "working", None])
def test_no_dead_air_from_the_question_to_the_first_word(name, thinking):
    turn = TURNS[name]
    expected = ("error",) if name == "unknown tool" else turn.cues  # The session knows the tools before they run.
    if not turn.calls and thinking is None:
        return
    heard, _ = play(turn, rules=CueRules(thinking=thinking))
    check_whole_turn(Turn(turn.calls, cues=expected), heard)
    assert new_clicks(heard.mixed, heard.speech) == []


def test_the_waiting_sound_is_one_and_begins_after_the_patience():
    heard, _ = play(CHAIN)
    (waiting,) = heard.waiting
    # The question, and half a second later the cue of the first call.
    assert waiting.start_s == pytest.approx(0.5 + 0.18 + PATIENCE_S, abs=0.05)
    assert waiting.end_samples == pytest.approx(heard.first_word, abs=0.05 * RATE)


@pytest.mark.parametrize("state", ["thinking", "working", "answering", "speaking"])
def test_a_barge_in_in_each_state_is_over_after_its_fade(state):
    at_s = {"thinking": 4.0, "working": 9.5, "answering": 14.0, "speaking": 16.7}[state]
    turn = Turn((Call("search", 5.0),), think_s=5.0, voice_s=1.0, answer="It is sunny in all of the north today.")
    heard, told = play(turn, barge_in_s=at_s)
    assert told.journal.interrupted
    before = heard.mixed[round((at_s - PERIOD_S) * RATE) : round(at_s * RATE)]
    assert before.any()
    check_silent_after(heard, round(at_s * RATE))
    assert new_clicks(heard.mixed, heard.speech) == []


@pytest.mark.parametrize(
    ("turn", "limits"),
    [
        (Turn((Call("search", 0.0, "never"),)), Limits(tool_s=20.0)),
        (Turn((), think_s=1e6), Limits(model_s=20.0)),
        (Turn((Call("search", 5.0),), think_s=1e6), Limits(model_s=20.0)),
    ],
    ids=["tool", "model at once", "model after a call"],
)
def test_a_hang_is_waited_for_with_a_sound_and_ends_with_the_error_cue(turn, limits):
    script = steps(turn)
    if turn.think_s == 1e6:
        script = [(at_s - 1e6 if at_s >= 1e6 and turn.calls else at_s, event) for at_s, event in script[:4]]
        script = [*(step for step in script if step[0] < 100.0), (1e6, Finish("stop"))]
    told = run_turn(script, speaker=slow(0.2), rules=RULES, tools=TOOLS, limits=limits)
    heard = Heard(told.tape.mixed, told.tape.speech, tuple(told.router.spans))
    assert "has sent nothing for 20 s" in told.journal.failure
    assert heard.cues[-1] == "error"
    assert heard.longest_silence_s(until=len(heard.mixed)) <= PATIENCE_S + PERIOD_S
    error = next(span for span in heard.spans if span.cue == "error")
    check_silent_after(heard, error.end_samples)


class Mute(SlowVoice):
    """Takes text and never speaks."""

    async def speak(self, _phrase):
        await asyncio.Event().wait()
        yield Speech(np.zeros(0, dtype=np.float32))


def test_a_voice_that_never_speaks_ends_the_sound_with_the_error_cue():
    heard, told = play(Turn((Call("search", 5.0),)), speaker=Mute, limits=Limits(speech_s=10.0))
    assert told.journal.failure == "the speaker has sent nothing for 10 s"
    assert heard.cues == ("tool_call", "success", "error")
    assert heard.longest_silence_s(until=len(heard.mixed)) <= PATIENCE_S + PERIOD_S
    assert len(heard.mixed) < 18 * RATE


@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
def test_calls_that_are_handed_to_a_client_end_with_the_stream(reason):
    told = run_turn([(0.5, ToolCallStart("search", "1")), (0.6, ToolCallEnd("search", "1")), (0.7, Finish(reason))])
    assert told.cues == ["tool_call"]
    assert len(told.tape.mixed) < 1.0 * RATE


def test_a_limit_of_the_session_holds_where_a_minute_would_end_the_sound_of_a_router_alone():
    heard, told = play(Turn((Call("search", 100.0),)))
    assert told.journal.failure is None
    assert heard.longest_silence_s() <= PATIENCE_S + PERIOD_S


def test_an_interruption_that_the_server_reports_is_a_barge_in():
    turn = [(0.1, TextDelta("It is sunny in all of the north today.")), (1.0, Interrupted()), (3.0, TextDelta("No."))]
    told = run_turn(turn)
    heard = Heard(told.tape.mixed, told.tape.speech, tuple(told.router.spans))
    assert told.journal.interrupted
    assert [event.type for event in told.events].count("unmute.interrupted_by_vad") == 1
    check_silent_after(heard, RATE)
