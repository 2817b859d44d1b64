"""Pipecat: its own LLM service, context aggregators and output transport."""

import asyncio

from pipecat.frames.frames import (
    EndFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import FunctionCallFromLLM, LLMService
from pipecat.services.settings import LLMSettings

import cues.adapters.pipecat
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from tests.support.pipecat_pipeline import CHUNK_S, RunningPipeline
from tests.support.turn_matrix import RATE, VOICE, Played, calls_to_run, result_of


class ScriptedLLM(LLMService):
    """Plays a turn: one response for each call, and one with the answer."""

    def __init__(self, turn):
        super().__init__(settings=LLMSettings(), function_call_timeout_secs=None)
        self._turn, self._round = turn, 0
        self._calls, timeout_s = calls_to_run(turn)
        self.register_function("search", self._search, timeout_secs=timeout_s)

    async def _search(self, params):
        await params.result_callback(await result_of(next(self._calls)))

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            await self.push_frame(LLMFullResponseStartFrame())
            await self._respond(frame.context)
            await self.push_frame(LLMFullResponseEndFrame())
        else:
            await self.push_frame(frame, direction)

    async def _respond(self, context):
        await asyncio.sleep(self._turn.think_s)
        number, self._round = self._round, self._round + 1
        if number < len(self._turn.calls):
            call = FunctionCallFromLLM(self._turn.calls[number].name, str(number), {}, context)
            await self.run_function_calls([call])
        else:
            await self.push_frame(LLMTextFrame(self._turn.answer))


class SlowVoice(FrameProcessor):
    """Speaks an answer `delay_s` after its text, in one piece, as a text-to-speech service does."""

    def __init__(self, delay_s):
        super().__init__()
        self._delay_s, self._speaking = delay_s, None

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self._speaking = asyncio.create_task(self._speak())
        elif isinstance(frame, InterruptionFrame) and self._speaking is not None:
            self._speaking.cancel()
        await self.push_frame(frame, direction)

    async def _speak(self):
        await asyncio.sleep(self._delay_s)
        await self.push_frame(TTSStartedFrame())
        await self.push_frame(TTSAudioRawFrame(pcm16_of_float(VOICE), RATE, 1))
        await self.push_frame(TTSStoppedFrame())


class PipecatTalk:
    holds_s = 2 * CHUNK_S

    def __init__(self, turn, clock, **options):
        mixer, tap = cues.adapters.pipecat.create(RATE, **options)
        self._context = LLMContext([{"role": "user", "content": "How is the weather?"}])
        pair = LLMContextAggregatorPair(self._context)
        self.router, self._clock = mixer.router, clock
        before = [pair.user(), ScriptedLLM(turn), tap, SlowVoice(turn.voice_s)]
        self._pipeline = RunningPipeline(clock, mixer, before, [pair.assistant()])

    async def __aenter__(self):
        self._running = asyncio.create_task(self._pipeline.run())
        await self._pipeline.started.wait()
        return self

    async def ask(self):
        await self._pipeline.send(LLMContextFrame(self._context))

    async def interrupt(self):
        await self._pipeline.send(InterruptionFrame())

    @property
    def played(self):
        played = Played()
        for at_s, audio in self._pipeline.written:
            played.add(float_of_pcm16(audio), at_s)
        return played

    async def __aexit__(self, *_):
        await self._pipeline.send(EndFrame())
        await self._running
