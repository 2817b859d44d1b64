"""The turn matrix in the Agents SDK's voice pipeline: its runner and OpenAI's client ask a server on loopback."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, function_tool
from agents.voice import AudioInput, STTModel, TTSModel, TTSModelSettings, VoicePipeline, VoicePipelineConfig
from openai import AsyncOpenAI

from cues.adapters.agents_voice import VoiceCues
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.replay.endpoints import turn_index
from stream.replay.scenarios import Scenario
from stream.replay.server import ReplayServer
from stream.routing.rules import CueRules
from tests.support.listening import new_clicks, steady_voice
from tests.support.paced_turns import Played
from tests.support.turn_matrix import (
    ASKED_S,
    HANGS,
    INTERRUPTED,
    STATES,
    THINKING,
    TURNS,
    check_barge_in,
    check_hang,
    check_silent_after,
    check_whole_turn,
    lasts_s,
)
from tests.support.virtual_loop import LoopClock, run_virtually

VOICE = float_of_pcm16(pcm16_of_float(steady_voice(2.0)))
UNTRACED = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")


class Ears(STTModel):
    """Hears one sentence in everything."""

    model_name = "ears"

    async def transcribe(self, *_):
        return "How is the weather?"

    async def create_session(self, *_):
        raise NotImplementedError


class SlowVoice(TTSModel):
    """Speaks `VOICE` for any text, `delay_s` later, in ten pieces."""

    model_name = "voice"

    def __init__(self, delay_s):
        self._delay_s = delay_s

    async def run(self, *_):
        await asyncio.sleep(self._delay_s)
        for piece in np.array_split(VOICE, 10):
            yield pcm16_of_float(piece)


class SlowModel:
    """A script for the server: each answer comes whole, `think_s` after it was asked for."""

    as_recorded, pages, paths = True, {}, ()

    def __init__(self, turn):
        says = [[["call", call.name, {"text": "a"}]] for call in turn.calls] + [[["say", turn.answer]]]
        self._scenario = Scenario(name="turn", about="", turns=says)
        self._think_ms = turn.think_s * 1000.0

    def answer(self, path, request):
        recording = self._scenario.answer(path, request)
        body = recording.body.replace(b'"call_0', b'"call_%d' % turn_index(request))  # the SDK refuses an id twice
        return replace(recording, body=body, reads=((len(body), self._think_ms),))


def tools_of(turn):
    calls = iter([call for call in turn.calls if call.ends != "invented"])
    timeout = next((call.runs_s for call in turn.calls if call.ends == "timeout"), None)

    @function_tool(timeout=timeout)
    async def search(text: str) -> str:
        """Search."""
        call = next(calls)
        await asyncio.sleep(call.runs_s if call.ends in ("success", "error") else 1e6)
        if call.ends == "error":
            raise RuntimeError("no such page")
        return "found"

    return [search]


def play(turn, *, lasts_s, interrupt_s=None, run_config=UNTRACED, **options):
    """The written frames, and the router."""

    async def go():
        clock = LoopClock()
        played = Played(clock)
        async with ReplayServer(SlowModel(turn), tokens_per_s=None, clock=clock) as server:
            client = AsyncOpenAI(base_url=server.base_url, api_key="none")
            model = OpenAIChatCompletionsModel("model", client)
            agent = Agent(name="test", instructions="test", tools=tools_of(turn), model=model)
            voice = VoiceCues(played.add, clock=clock, **options)
            pipeline = VoicePipeline(
                workflow=voice.workflow(agent, run_config=run_config),
                stt_model=Ears(),
                tts_model=SlowVoice(turn.voice_s),
                config=VoicePipelineConfig(tracing_disabled=True, tts_settings=TTSModelSettings(buffer_size=1)),
            )
            running = asyncio.create_task(voice.run())
            await clock.sleep_until(ASKED_S)
            speaking = asyncio.create_task(voice.play(await pipeline.run(AudioInput(np.zeros(480, np.int16)))))
            if interrupt_s is not None:
                await asyncio.sleep(interrupt_s)
                voice.barge_in()
            await asyncio.sleep(lasts_s - (interrupt_s or 0.0))
            heard = played.heard(voice.router.spans, None if interrupt_s else VOICE, asked_s=ASKED_S)
            was_over = voice.router.is_over
            voice.close()
            await running
            speaking.cancel()
            await asyncio.wait([speaking])
            await client.close()
        return heard, was_over

    return run_virtually(go)


@pytest.mark.parametrize("name", TURNS)
def test_no_dead_air_from_the_question_to_the_first_word(name):
    turn = TURNS[name]
    heard, was_over = play(turn, lasts_s=lasts_s(turn), rules=THINKING)
    check_whole_turn(turn, heard)
    assert new_clicks(heard.mixed, heard.speech) == []
    assert was_over


@pytest.mark.parametrize("name", [name for name, turn in TURNS.items() if turn.calls])
def test_without_a_sound_for_thinking_there_is_no_dead_air_from_the_first_call_on(name):
    turn = TURNS[name]
    heard, _ = play(turn, lasts_s=lasts_s(turn))
    check_whole_turn(turn, replace(heard, asked=heard.spans[0].start_samples))


@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state):
    heard, was_over = play(INTERRUPTED, lasts_s=90.0, interrupt_s=STATES[state], rules=THINKING)
    check_barge_in(heard, state)
    assert was_over


@pytest.mark.parametrize(("turn", "limits"), HANGS.values(), ids=HANGS.keys())
@pytest.mark.parametrize("sounds", [True, False], ids=["waiting sound", "silent"])
def test_a_hang_ends_with_the_error_cue(turn, limits, sounds, caplog):
    rules = THINKING if sounds else CueRules(working=None)
    heard, _ = play(turn, lasts_s=45.0, interrupt_s=40.0, rules=rules, limits=limits)
    check_hang(heard, caplog.text, sounds=sounds)


def test_a_run_that_fails_on_an_unknown_tool_sounds_as_an_error_once():
    turn = TURNS["unknown tool"]
    heard, was_over = play(turn, lasts_s=20.0, interrupt_s=15.0, run_config=RunConfig(tracing_disabled=True))
    assert heard.cues == ("tool_call", "error")
    check_silent_after(heard, heard.spans[-1].end_samples)
    assert was_over
