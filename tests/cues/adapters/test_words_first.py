"""Phrases, and cues placed after the words, in pipelines: once the words that are on their way have been heard."""

import asyncio

import numpy as np
import pytest
from livekit.agents import Agent, AgentSession, ToolError, function_tool
from pipecat.frames.frames import (
    FunctionCallFromLLM,
    FunctionCallResultFrame,
    FunctionCallsStartedFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
)

import cues
from cues.adapters.livekit import attach, guarded
from cues.adapters.pipecat import create
from cues.adapters.realtime import RealtimeCues
from stream.events import TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import CueRules
from tests.support import pipecat_pipeline
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, steady_voice
from tests.support.livekit_session import ListSink, ScriptedLLM, VoiceLikeTTS, call_of
from tests.support.routing import spoken
from tests.support.turn_matrix import Played
from tests.support.virtual_loop import LoopClock, run_virtually

AFTER_WORDS = CueRules(placement="after_words", working=None, success=None)
AUDIBLE, FRAME_S = 10.0 ** (-50.0 / 20.0), 0.02
LATEST_S = 0.4  # after the words: a breath, or the silence that shows their end, that of the voice, and a frame or two


PHRASES = cues.load_bank("") | {name: spoken(name) for name in ("tool_call", "error")}
SILENT = CueRules(working=None, success=None)
KINDS = pytest.mark.parametrize(
    "options", [{"rules": AFTER_WORDS}, {"rules": SILENT, "bank": PHRASES}], ids=["tone", "phrase"]
)


def onsets(router):
    return [(span.cue, span.start_samples / RATE) for span in router.spans]


@KINDS
def test_in_realtime_the_queue_is_heard_first(options):
    async def go():
        clock = LoopClock()
        played = Played(clock)
        voice = RealtimeCues(played.add, clock=clock, **options)
        running = asyncio.create_task(voice.run())
        voice.router.begin_turn()
        voice.router.handle(TextDelta("Let me look."))
        voice._push(steady_voice(3.0))
        voice._paced.end()
        await asyncio.sleep(1.0)
        voice.router.handle(ToolCallStart("look", "1"))
        voice.router.handle(ToolCallEnd("look", "1"))
        await asyncio.sleep(0.3)
        voice.router.handle(ToolResult(tool_name="", tool_call_id="1", is_error=True, content=""))
        await asyncio.sleep(5.0)
        found = onsets(voice.router)
        voice.close()
        await running
        return found, played.signal()

    found, heard = run_virtually(go)
    assert [cue for cue, _ in found] == ["error"]  # the call's has been overtaken
    assert 3.0 <= found[0][1] <= 3.0 + LATEST_S
    words = np.zeros_like(heard)
    words[: 3 * RATE] = steady_voice(3.0)
    assert np.array_equal(heard[: 3 * RATE], words[: 3 * RATE])
    assert not new_clicks(heard, words)


@KINDS
@pytest.mark.parametrize("late_s", [None, 0.7], ids=["it speaks", "its voice is late"])
def test_in_pipecat_all_of_the_speech_is_heard_first_pauses_included(options, late_s):
    words = np.concatenate([steady_voice(1.0), np.zeros(RATE // 2, dtype=np.float32), steady_voice(1.0)])

    async def script(send, clock):
        await send(LLMFullResponseStartFrame())
        await send(LLMTextFrame("Let me look. It may take a while."))
        if late_s is None:
            await pipecat_pipeline.say(send, words)
            await clock.sleep(0.2)
        await send(FunctionCallsStartedFrame([FunctionCallFromLLM("look", "1", {}, None)]))
        await send(LLMFullResponseEndFrame())
        if late_s is not None:
            await clock.sleep(late_s)
            await pipecat_pipeline.say(send, words)
        await clock.sleep(0.1)
        await send(FunctionCallResultFrame("look", "1", {}, "no"))
        await clock.sleep(6.0)

    mixer, tap = create(RATE, 1, is_error=lambda result: result == "no", **options)
    heard = pipecat_pipeline.run_pipeline(mixer, [tap], script)
    found = onsets(mixer.router)
    assert [cue for cue, _ in found] == ["error"]  # the call's has been overtaken
    end_s = (late_s or 0.0) + 2.5
    assert end_s <= found[0][1] <= end_s + LATEST_S + pipecat_pipeline.CHUNK_S
    assert last_sound(heard) > round(found[0][1] * RATE)


def first_cue_after_words_s(heard, alone):
    """How long after the words the first sound comes that is not theirs, and that they are whole."""
    n = min(len(heard), len(alone))
    at = int(np.flatnonzero(heard[:n] != alone[:n])[0])
    assert not np.any(np.abs(alone[at : at + RATE]) > AUDIBLE)
    return (at - last_sound(alone[:at], threshold=AUDIBLE)) / RATE


def in_livekit(answer, *, runs_s=8.0, fails=False, **options):
    """The cues of a call, and what was heard."""

    async def go():
        clock = LoopClock()

        @function_tool
        async def look(text: str) -> str:
            """Look."""
            await clock.sleep(runs_s)
            if fails:
                raise ToolError("no")
            return text

        answers = [[0.2, *answer, call_of("look", {"text": "a"})], [3.0, "Done."]]
        session = AgentSession(llm=guarded(ScriptedLLM(answers, clock.sleep)), tts=VoiceLikeTTS())
        sink = session.output.audio = ListSink(clock)
        await session.start(Agent(instructions="test", tools=[look]))
        router = attach(session, clock=clock, **options).router
        session.generate_reply(user_input="x")
        await clock.sleep(15.0)
        await session.aclose()
        return onsets(router), sink.signal()

    return run_virtually(go)


@KINDS
@pytest.mark.parametrize("fails", [False, True], ids=["runs", "fails"])
@pytest.mark.parametrize("later_s", [0.0, 1.0], ids=["at once", "while they are heard"])
def test_in_livekit_the_words_of_the_answer_are_heard_first(options, fails, later_s):
    words = "I will have a look at that for you right away, my friend. And then I will tell you. "
    runs_s = 0.3 if fails else 8.0
    alone = in_livekit([words, later_s], runs_s=runs_s, fails=fails, rules=AFTER_WORDS, bank={})[1]
    found, heard = in_livekit([words, later_s], runs_s=runs_s, fails=fails, **options)
    assert [cue for cue, _ in found] == (["error"] if fails else ["tool_call"])
    after_s = first_cue_after_words_s(heard, alone)
    assert -FRAME_S <= after_s <= LATEST_S


@KINDS
def test_in_livekit_a_call_without_words_sounds_as_soon_as_before(options):
    found, heard = in_livekit([], **options)
    assert [cue for cue, _ in found] == ["tool_call"]
    assert first_sound(heard) / RATE <= 0.2 + (0.6 if "bank" in options else 0.05)


@KINDS
def test_in_livekit_a_failure_long_after_the_words_sounds_as_soon_as_before(options):
    found, heard = in_livekit(["I look. "], runs_s=8.0, fails=True, **options)
    assert [cue for cue, _ in found] == ["tool_call", "error"]
    assert 8.2 <= 6.0 + first_sound(heard[6 * RATE :]) / RATE <= 8.2 + (0.6 if "bank" in options else 0.05)


@pytest.mark.parametrize("usual_s", [8.0, None], ids=["a long tool", "a tool whose time is not known"])
@pytest.mark.parametrize("later_s", [0.0, 1.0], ids=["at once", "while they are heard"])
def test_in_livekit_a_call_of_the_normal_profile_does_not_sound_over_the_words_of_its_answer(usual_s, later_s):
    words = "I will have a look at that for you right away, my friend. And then I will tell you. "
    expected_s = () if usual_s is None else (("look", usual_s),)
    rules = CueRules(profile="normal", expected_s=expected_s, working=None)
    alone = in_livekit([words, later_s], rules=rules, bank={})[1]
    found, heard = in_livekit([words, later_s], rules=rules)
    assert [cue for cue, _ in found] == ["tool_call"]
    after_s = first_cue_after_words_s(heard, alone)
    assert after_s == pytest.approx(0.3 if usual_s else 1.2, abs=0.2)
