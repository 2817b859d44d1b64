"""A model and a voice for LiveKit sessions in tests: scripted, deterministic, without a network."""

import asyncio
import json
import uuid

import numpy as np
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, llm, tts

from cues.signal.pcm import pcm16_of_float
from cues.synthesis.voicelike import speak_voice_like


def call_of(name, arguments, call_id="call_00000001"):
    """A tool call as a model's stream has it."""
    return llm.FunctionToolCall(name=name, arguments=json.dumps(arguments), call_id=call_id)


class ScriptedLLM(llm.LLM):
    """Gives one scripted answer after the other: strings are text, floats seconds to wait, the rest tool calls."""

    def __init__(self, answers, sleep=asyncio.sleep):
        super().__init__()
        self._answers, self._sleep = list(answers), sleep

    def chat(self, *, chat_ctx, tools=None, conn_options=DEFAULT_API_CONNECT_OPTIONS, **_):
        answer = self._answers.pop(0) if self._answers else []
        script = {"answer": answer, "sleep": self._sleep}
        return _ScriptedStream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options, **script)


class _ScriptedStream(llm.LLMStream):
    def __init__(self, source, *, answer, sleep, **options):
        super().__init__(source, **options)
        self._answer, self._sleep = answer, sleep

    async def _run(self):
        for piece in self._answer:
            if isinstance(piece, float):
                await self._sleep(piece)
                continue
            delta = (
                llm.ChoiceDelta(role="assistant", content=piece)
                if isinstance(piece, str)
                else llm.ChoiceDelta(role="assistant", tool_calls=[piece])
            )
            self._event_ch.send_nowait(llm.ChatChunk(id=uuid.uuid4().hex, delta=delta))


class VoiceLikeTTS(tts.TTS):
    """Speaks with the voice-like generator, at once."""

    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=24000, num_channels=1)

    def synthesize(self, text, *, conn_options=DEFAULT_API_CONNECT_OPTIONS):
        return _VoiceLikeStream(tts=self, input_text=text, conn_options=conn_options)


class _VoiceLikeStream(tts.ChunkedStream):
    async def _run(self, output_emitter):
        samples, _ = speak_voice_like(self.input_text, sample_rate=24000)
        output_emitter.initialize(request_id="1", sample_rate=24000, num_channels=1, mime_type="audio/pcm")
        output_emitter.push(pcm16_of_float(np.asarray(samples, dtype=np.float32)))
        output_emitter.flush()
