"""The Agents SDK's voice pipeline: its runner and OpenAI's client ask a server on loopback."""

import asyncio
from dataclasses import replace

import numpy as np
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, function_tool
from agents.voice import AudioInput, STTModel, TTSModel, TTSModelSettings, VoicePipeline, VoicePipelineConfig
from openai import AsyncOpenAI

from cues.adapters.agents_voice import VoiceCues
from cues.signal.pcm import pcm16_of_float
from stream.replay.endpoints import turn_index
from stream.replay.scenarios import Scenario
from stream.replay.server import ReplayServer
from tests.support.turn_matrix import VOICE, Played, calls_to_run, result_of

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


class AgentsVoiceTalk:
    holds_s = 0.06

    def __init__(self, turn, clock, *, run_config=UNTRACED, **options):
        self._turn, self._run_config = turn, run_config
        self._server = ReplayServer(SlowModel(turn), tokens_per_s=None, clock=clock)
        self.played = Played(clock)
        self._voice = VoiceCues(self.played.add, clock=clock, **options)
        self.router = self._voice.router

    async def __aenter__(self):
        await self._server.__aenter__()
        calls, timeout_s = calls_to_run(self._turn)

        @function_tool(timeout=timeout_s)
        async def search(text: str) -> str:
            """Search."""
            return await result_of(next(calls))

        self._client = AsyncOpenAI(base_url=self._server.base_url, api_key="none")
        model = OpenAIChatCompletionsModel("model", self._client)
        agent = Agent(name="test", instructions="test", tools=[search], model=model)
        self._pipeline = VoicePipeline(
            workflow=self._voice.workflow(agent, run_config=self._run_config),
            stt_model=Ears(),
            tts_model=SlowVoice(self._turn.voice_s),
            config=VoicePipelineConfig(tracing_disabled=True, tts_settings=TTSModelSettings(buffer_size=1)),
        )
        self._running = asyncio.create_task(self._voice.run())
        return self

    async def ask(self):
        result = await self._pipeline.run(AudioInput(np.zeros(480, np.int16)))
        self._playing = asyncio.create_task(self._voice.play(result))

    async def interrupt(self):
        self._voice.barge_in()

    async def __aexit__(self, *_):
        self._voice.close()
        await self._running
        self._playing.cancel()
        await asyncio.wait([self._playing])
        await self._client.close()
        await self._server.__aexit__(None, None, None)
