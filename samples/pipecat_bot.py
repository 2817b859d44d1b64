"""Cues in a Pipecat pipeline: a mixer for the transport, and a tap between the LLM service and the voice.

`pip install 'cue-engine[pipecat]' 'pipecat-ai[local,openai]'`, then `python samples/pipecat_bot.py` answers one
question on this machine's loudspeakers, with OpenAI's model and voice; on Linux, `local` needs the package
`portaudio19-dev`. `--loopback OUT.wav` needs `cue-engine[pipecat]` alone: a scripted model calls a tool, and what is
heard is written to the file.
"""

import asyncio
import sys
import time

import numpy as np
import soundfile
from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    EndFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import FunctionCallFromLLM, LLMService
from pipecat.services.settings import LLMSettings
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

import cues
import cues.adapters.pipecat
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.synthesis.voicelike import speak_voice_like

RATE = 24000
QUESTION = [{"role": "user", "content": "What is in my folder?"}]
TOOLS = ToolsSchema([FunctionSchema("read_folder", "List the names in the user's folder.", {}, [])])


async def read_folder(params):
    await asyncio.sleep(1.0)
    await params.result_callback("two files")


def parts_with_cues(llm, voice, context, make_transport):
    """The pipeline's parts; only the lines with `cue_` are ours."""
    cue_mixer, cue_tap = cues.adapters.pipecat.create(sample_rate=RATE, llm=llm)
    params = TransportParams(audio_out_enabled=True, audio_out_sample_rate=RATE, audio_out_mixer=cue_mixer)
    inputs, output = make_transport(params)
    aggregators = LLMContextAggregatorPair(context)
    llm.register_function("read_folder", read_folder)
    parts = [*inputs, aggregators.user(), llm, cue_tap, voice, output, aggregators.assistant()]
    return parts, output, cue_mixer.router


class ScriptedModel(LLMService):
    """Calls the tool, then answers."""

    def __init__(self):
        super().__init__(settings=LLMSettings())
        self._has_called = False

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        await self.push_frame(LLMFullResponseStartFrame())
        if self._has_called:
            await self.push_frame(LLMTextFrame("There are two files."))
        else:
            self._has_called = True
            await self.run_function_calls([FunctionCallFromLLM("read_folder", "1", {}, frame.context)])
        await self.push_frame(LLMFullResponseEndFrame())


class VoiceLike(FrameProcessor):
    """A voice that needs no network."""

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            pcm = pcm16_of_float(speak_voice_like(frame.text, sample_rate=RATE))
            await self.push_frame(TTSStartedFrame())
            await self.push_frame(TTSAudioRawFrame(pcm, RATE, 1))
            await self.push_frame(TTSStoppedFrame())
        await self.push_frame(frame, direction)


class Recorder(BaseOutputTransport):
    """Plays into a list, at the pace of a device."""

    def __init__(self, params):
        super().__init__(params)
        self.heard, self._due_s = [], 0.0

    async def start(self, frame):
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame):
        self.heard.append(float_of_pcm16(frame.audio))
        self._due_s = max(self._due_s, time.monotonic()) + len(frame.audio) / (2 * RATE)
        await asyncio.sleep(self._due_s - time.monotonic())
        return True


async def run(parts, context, *, lasts_s):
    """Run the pipeline; ask at once, and end after `lasts_s`."""
    worker = PipelineWorker(
        Pipeline(parts), cancel_on_idle_timeout=False, params=PipelineParams(audio_out_sample_rate=RATE)
    )
    runner = WorkerRunner(handle_sigint=lasts_s is None)
    await runner.add_workers(worker)

    @worker.event_handler("on_pipeline_started")
    async def _ask(_worker, _frame):
        await worker.queue_frame(LLMContextFrame(context))
        if lasts_s is not None:
            await asyncio.sleep(lasts_s)
            await worker.queue_frame(EndFrame())

    await runner.run()


async def loopback(path):
    logger.remove()
    context = LLMContext(list(QUESTION), TOOLS)
    parts, recorder, router = parts_with_cues(
        ScriptedModel(), VoiceLike(), context, lambda params: ([], Recorder(params))
    )
    await run(parts, context, lasts_s=4.0)
    soundfile.write(path, np.concatenate(recorder.heard), RATE)
    for span in router.spans:
        print(f"{span.cue} at {span.start_s:.2f} s")


async def local():
    from pipecat.services.openai.llm import OpenAILLMService
    from pipecat.services.openai.tts import OpenAITTSService
    from pipecat.transports.local.audio import LocalAudioTransport, LocalAudioTransportParams

    def transport(params):
        return [], LocalAudioTransport(LocalAudioTransportParams(**params.model_dump())).output()

    context = LLMContext(list(QUESTION), TOOLS)
    llm = OpenAILLMService(settings=OpenAILLMService.Settings(model="gpt-4.1-mini"))
    parts, _, _ = parts_with_cues(llm, OpenAITTSService(), context, transport)
    await run(parts, context, lasts_s=None)


if __name__ == "__main__":
    cues.warm_up()
    asyncio.run(loopback(sys.argv[2]) if sys.argv[1:2] == ["--loopback"] else local())
