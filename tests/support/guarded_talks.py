"""One question in each pipeline's real package, at a model server on loopback: what was spoken, run and asked."""

import asyncio
import json
from dataclasses import dataclass, field

import agents
import numpy as np
from agents.voice import (
    AudioInput,
    SingleAgentVoiceWorkflow,
    TTSModel,
    TTSModelSettings,
    VoicePipeline,
    VoicePipelineConfig,
)
from agents.voice.testing import ScriptedSTTModel
from livekit.agents import Agent, AgentSession, function_tool, inference
from openai import AsyncOpenAI
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMTextFrame,
    LLMThoughtTextFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.llm import OpenAILLMService

import cues.adapters.pipecat
import stream
from cues.adapters.agents_voice import VoiceCues
from cues.adapters.livekit import attach, guarded
from cues.signal.pcm import pcm16_of_float
from stream.replay.behavior import Behavior
from stream.replay.scenarios import Scenario
from stream.replay.server import ReplayServer
from tests.support.listening import steady_voice
from tests.support.livekit_session import ListSink, VoiceLikeTTS
from tests.support.pipecat_pipeline import played_by, say
from tests.support.turn_matrix import Played
from tests.support.virtual_loop import LoopClock, run_virtually

QUESTION = "How is the weather in Oslo?"
RESULT = "12 degrees"
agents.set_tracing_disabled(disabled=True)
VOWEL = steady_voice(0.5)


@dataclass
class Outcome:
    """What came of a question: the texts that the voice got, the calls that ran, the requests and the cues."""

    texts: list = field(default_factory=list)
    thoughts: list = field(default_factory=list)
    ran: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    cues: list = field(default_factory=list)
    failure: Exception | None = None
    played: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def spoken(self):
        return " ".join("".join(self.texts).split())

    @property
    def results(self):
        """What the last request says of the calls: name, arguments, and the result."""
        messages = self.requests[-1]["messages"]
        called = {
            call["id"]: (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for message in messages
            for call in message.get("tool_calls") or ()
        }
        results = [message for message in messages if message["role"] == "tool"]
        return [(*called[result["tool_call_id"]], result["content"].strip('"')) for result in results]


class Voice(FrameProcessor):
    """Speaks a vowel at the end of each response with text, and keeps the text."""

    def __init__(self, outcome):
        super().__init__()
        self._outcome, self._has_text = outcome, False

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self._outcome.texts.append(frame.text)
            self._has_text |= bool(frame.text.strip())
        elif isinstance(frame, LLMThoughtTextFrame):
            self._outcome.thoughts.append(frame.text)
        await self.push_frame(frame, direction)
        if isinstance(frame, LLMFullResponseEndFrame) and self._has_text:
            self._has_text = False
            self._outcome.texts.append(" ")
            await say(self.push_frame, VOWEL)


async def in_pipecat(
    base_url,
    outcome,
    *,
    tool_s=1.0,
    interrupt_s=None,
    knows_llm=True,
    sounds=True,
    speculation=False,
    service=OpenAILLMService,
    **options,
):
    """Ask in a Pipecat pipeline."""
    llm = service(api_key="none", base_url=base_url, settings=service.Settings(model="m"))

    async def get_weather(params):
        outcome.ran.append((params.function_name, dict(params.arguments)))
        await asyncio.sleep(tool_s)
        await params.result_callback(RESULT)

    schema = FunctionSchema("get_weather", "", {"city": {"type": "string"}}, ["city"], handler=get_weather)
    context = LLMContext([{"role": "user", "content": QUESTION}], ToolsSchema([schema]))
    pair = LLMContextAggregatorPair(context)
    mixer, tap = cues.adapters.pipecat.create(llm=llm if knows_llm else None, **options)

    async def script(send, clock):
        await send(LLMContextFrame(context, speculation=speculation))
        if interrupt_s is not None:
            await clock.sleep(interrupt_s)
            await send(InterruptionFrame())
        await clock.sleep(30.0)

    outcome.played = await played_by(
        mixer if sounds else None, [pair.user(), llm, tap, Voice(outcome)], script, [pair.assistant()]
    )
    await llm._client.close()  # Pipecat leaves it open
    outcome.cues = [span.cue for span in mixer.router.spans if span.cue != "working"]


class OwnSink(ListSink):
    """An output without cues in front of it: it tells that it has played."""

    def flush(self):
        super().flush()
        self.on_playback_finished(playback_position=len(self.signal()) / self.sample_rate, interrupted=False)


class KeptTTS(VoiceLikeTTS):
    """Keeps the sentences that it speaks."""

    def __init__(self, outcome):
        super().__init__()
        self._outcome = outcome

    def synthesize(self, text, **options):
        self._outcome.texts.append(f"{text} ")
        return super().synthesize(text, **options)


async def in_livekit(
    base_url, outcome, *, tool_s=1.0, interrupt_s=None, guard=True, sounds=True, agent=Agent, start="text"
):
    """Ask in an `AgentSession`."""
    clock = LoopClock()

    @function_tool
    async def get_weather(city: str) -> str:
        """The weather."""
        outcome.ran.append(("get_weather", {"city": city}))
        await asyncio.sleep(tool_s)
        return RESULT

    model = inference.LLM("m", base_url=base_url, api_key="key", api_secret="secret" * 6)
    session = AgentSession(llm=guarded(model, start=start) if guard else model, tts=KeptTTS(outcome))
    sink = session.output.audio = (ListSink if sounds else OwnSink)(clock)
    await session.start(agent(instructions="", tools=[get_weather]))
    router = attach(session, clock=clock).router if sounds else None
    session.generate_reply(user_input=QUESTION)
    if interrupt_s is not None:
        await clock.sleep(interrupt_s)
        session.interrupt(force=True)
    await clock.sleep(30.0)
    outcome.played = sink.signal()
    outcome.cues = [span.cue for span in router.spans if span.cue != "working"] if sounds else []
    await session.aclose()
    await model.aclose()


async def all_of(events):
    return [event async for event in events]


class KeptVoice(TTSModel):
    """Keeps the text that it speaks."""

    model_name = "voice"

    def __init__(self, outcome):
        self._outcome = outcome

    async def run(self, text, _settings):
        self._outcome.texts.append(f"{text} ")
        yield pcm16_of_float(VOWEL)


async def in_agents(base_url, outcome, *, tool_s=1.0, interrupt_s=None, guard=True, sounds=True, start="text"):
    """Ask in the Agents SDK's voice pipeline."""
    clock = LoopClock()
    played = Played(clock)

    @agents.function_tool
    async def get_weather(city: str) -> str:
        """The weather."""
        outcome.ran.append(("get_weather", {"city": city}))
        await asyncio.sleep(tool_s)
        return RESULT

    own = {"http_client": stream.services.repairing_client(start=start)} if guard else {}
    async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, **own) as client:
        model = agents.OpenAIChatCompletionsModel("m", client)
        agent = agents.Agent(name="test", tools=[get_weather], model=model)
        voice = VoiceCues(played.add, clock=clock)
        config = VoicePipelineConfig(tracing_disabled=True, tts_settings=TTSModelSettings(buffer_size=1))
        pipeline = VoicePipeline(
            workflow=voice.workflow(agent) if sounds else SingleAgentVoiceWorkflow(agent),
            stt_model=ScriptedSTTModel([QUESTION]),
            tts_model=KeptVoice(outcome),
            config=config,
        )
        running = asyncio.create_task(voice.run())
        result = await pipeline.run(AudioInput(np.zeros(480, np.int16)))
        playing = asyncio.create_task(voice.play(result) if sounds else all_of(result.stream()))
        if interrupt_s is not None:
            await clock.sleep(interrupt_s)
            voice.barge_in()
        await clock.sleep(30.0)
        voice.close()
        await asyncio.wait([running, playing])
        outcome.failure = playing.exception()
    outcome.played = played.signal()
    outcome.cues = [span.cue for span in voice.router.spans if span.cue != "working"]


def ask(pipeline, *turns, pace=20.0, behavior=Behavior(), **options):  # noqa: B008  (frozen)
    """Ask a server that says `turns`, each a list of steps or one text, in a pipeline of this module."""
    outcome = Outcome()
    says = [[["say", turn]] if isinstance(turn, str) else turn for turn in turns]

    async def go():
        server = ReplayServer(
            Scenario(name="own", about="", turns=says, behavior=behavior),
            clock=LoopClock(),
            tokens_per_s=pace,
            on_request=lambda _, body: outcome.requests.append(body),
        )
        async with server:
            await pipeline(server.base_url, outcome, **options)

    run_virtually(go)
    return outcome
