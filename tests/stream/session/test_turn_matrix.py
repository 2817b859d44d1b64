"""The turn matrix in a `VoiceSession`: what is heard between question and answer, read from the mixed samples."""

import asyncio
import logging

import pytest

import cues
from stream.events import Finish, Interrupted, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter
from stream.session import VoiceSession
from stream.speech.speaker import PhraseSpeaker, Speech
from tests.support.turn_matrix import (
    HANGS,
    IN_PROFILES,
    PROFILES,
    RATE,
    STATES,
    VOICE,
    WHOLE_TURNS,
    Played,
    play_barge_in,
    play_gap,
    play_hang,
    play_whole_turn,
    play_whole_turn_in_profile,
)
from tests.support.turns import Source, run_turn


class SlowVoice(PhraseSpeaker):
    """Speaks `VOICE` for any phrase, `delay_s` after it got its text."""

    name = "slow"

    def __init__(self, delay_s):
        super().__init__()
        self._delay_s = delay_s

    async def speak(self, _phrase):
        await asyncio.sleep(self._delay_s)
        yield Speech(VOICE)


def steps(turn):
    """The events of a turn, with their times; a call that never ends is the last."""
    events, at_s = [], 0.0
    for n, call in enumerate(turn.calls):
        at_s += turn.think_s
        events += [(at_s, ToolCallStart(call.name, str(n))), (at_s, ToolCallEnd(call.name, str(n)))]
        events += [(at_s, Finish("tool_calls"))]
        at_s += call.runs_s if call.ends != "never" else 1e6
        is_error = call.ends != "success"
        events += [(at_s, ToolResult(tool_name=call.name, tool_call_id=str(n), is_error=is_error, content=call.ends))]
    at_s += turn.think_s
    return [*events, (at_s, TextDelta(turn.answer)), (at_s, Finish("stop"))]


class SessionTalk:
    holds_s = 0.02

    def __init__(self, turn, clock, *, tools, rules, **options):
        self._turn, self.played, mixer = turn, Played(clock), cues.Mixer(RATE)
        self.router = CueRouter(cues.load_bank(), mixer, rules=rules, tools=tools)
        options = {name: option for name, option in options.items() if option is not None}
        voice = SlowVoice(turn.voice_s)
        self._session = VoiceSession(mixer=mixer, router=self.router, speaker=voice, sink=self, clock=clock, **options)

    def write(self, mixed, _speech):
        self.played.add(mixed)

    async def __aenter__(self):
        return self

    async def ask(self):
        self._running = asyncio.create_task(self._session.run(Source(steps(self._turn))))

    async def interrupt(self):
        self._session.barge_in()

    async def __aexit__(self, *_):
        journal = await self._running
        if journal.failure:
            logging.getLogger("stream").error(journal.failure)


@pytest.mark.parametrize(("name", "thinking"), WHOLE_TURNS)
def test_no_dead_air_from_the_question_to_the_first_word(name, thinking):
    play_whole_turn(SessionTalk, name, thinking=thinking)


@pytest.mark.parametrize(("name", "profile"), IN_PROFILES)
def test_no_dead_air_in_any_profile(name, profile):
    play_whole_turn_in_profile(SessionTalk, name, profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_model_that_hangs_without_a_call_is_heard_to_work_after_four_seconds(profile):
    play_gap(SessionTalk, profile)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state, profile):
    play_barge_in(SessionTalk, state, profile)


@pytest.mark.parametrize("profile", [*PROFILES, "silent"])
@pytest.mark.parametrize("name", HANGS)
def test_a_hang_is_waited_for_with_a_sound_and_ends_with_the_error_cue(name, profile, caplog):
    if profile == "silent":
        play_hang(SessionTalk, name, caplog, sounds=False)
    else:
        play_hang(SessionTalk, name, caplog, profile=profile)


@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
def test_calls_that_are_handed_to_a_client_end_with_the_stream(reason):
    told = run_turn([(0.5, ToolCallStart("search", "1")), (0.6, ToolCallEnd("search", "1")), (0.7, Finish(reason))])
    assert told.cues == ["tool_call"]
    assert len(told.tape.mixed) < 1.0 * RATE


def test_an_interruption_that_the_server_reports_is_a_barge_in():
    turn = [(0.1, TextDelta("It is sunny in all of the north today.")), (1.0, Interrupted()), (3.0, TextDelta("No."))]
    told = run_turn(turn)
    assert told.journal.interrupted
    assert [event["type"] for event in told.events].count("unmute.interrupted_by_vad") == 1
    assert not told.tape.mixed[round(1.05 * RATE) :].any()
