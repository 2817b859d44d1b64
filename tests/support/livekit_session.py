"""The parts of LiveKit sessions in tests, from the microphone to the output: scripted, deterministic, no network."""

import asyncio
import json
import uuid

import numpy as np
from livekit import rtc
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, llm, tts, vad
from livekit.agents.voice import io

from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.synthesis.voicelike import speak_voice_like
from tests.support.listening import RATE

ROOM = np.full(RATE // 50, 0.25, dtype=np.float32)


def call_of(name, arguments, call_id="call_00000001"):
    """A tool call as a model's stream has it."""
    return llm.FunctionToolCall(name=name, arguments=json.dumps(arguments), call_id=call_id)


class ScriptedLLM(llm.LLM):
    """Gives one scripted answer after the other: strings are text, floats seconds to wait, exceptions are raised."""

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
        answer_id = uuid.uuid4().hex
        for piece in self._answer:
            if isinstance(piece, float):
                await self._sleep(piece)
                continue
            if isinstance(piece, Exception):
                raise piece
            delta = (
                llm.ChoiceDelta(role="assistant", content=piece)
                if isinstance(piece, str)
                else llm.ChoiceDelta(role="assistant", tool_calls=[piece])
            )
            self._event_ch.send_nowait(llm.ChatChunk(id=answer_id, delta=delta))


class VoiceLikeTTS(tts.TTS):
    """Speaks with the voice-like generator, at once."""

    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=24000, num_channels=1)

    def synthesize(self, text, *, conn_options=DEFAULT_API_CONNECT_OPTIONS):
        return _VoiceLikeStream(tts=self, input_text=text, conn_options=conn_options)


class _VoiceLikeStream(tts.ChunkedStream):
    async def _run(self, output_emitter):
        samples = speak_voice_like(self.input_text, sample_rate=24000)
        output_emitter.initialize(request_id="1", sample_rate=24000, num_channels=1, mime_type="audio/pcm")
        output_emitter.push(pcm16_of_float(np.asarray(samples, dtype=np.float32)))
        output_emitter.flush()


class ListSink(io.AudioOutput):
    """The end of the chain: keeps what it gets, with the time."""

    def __init__(self, clock, rate=RATE):
        super().__init__(
            label="list", capabilities=io.AudioOutputCapabilities(pause=True), next_in_chain=None, sample_rate=rate
        )
        self._clock, self.frames, self.told = clock, [], []

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        self.frames.append((self._clock.now(), float_of_pcm16(bytes(frame.data))))

    def flush(self):
        self.told.append("flush")

    def clear_buffer(self):
        self.told.append("clear_buffer")

    def pause(self):
        self.told.append("pause")

    def resume(self):
        self.told.append("resume")

    def signal(self):
        """The sound: frames one after the other, gaps where none came in time."""
        out = np.zeros(0, dtype=np.float32)
        for at_s, frame in self.frames:
            start = max(len(out), round(at_s * self.sample_rate))
            out = np.concatenate([out, np.zeros(start - len(out), dtype=np.float32), frame])
        return out


def frames_of(samples, n_samples=4800, rate=RATE):
    for start in range(0, len(samples), n_samples):
        piece = samples[start : start + n_samples]
        yield rtc.AudioFrame(pcm16_of_float(piece), rate, 1, len(piece))


async def say(output, samples, rate=RATE):
    """As the framework does: all frames at once, then a flush."""
    for frame in frames_of(samples, rate=rate):
        await output.capture_frame(frame)
    output.flush()


class Microphone(io.AudioInput):
    """A frame of `ROOM` every 20 ms."""

    def __init__(self):
        super().__init__(label="microphone")

    async def __anext__(self):
        await asyncio.sleep(0.02)
        return next(frames_of(ROOM))


class Detector(vad.VAD):
    """Keeps what a voice detector gets, with the time."""

    def __init__(self, clock):
        super().__init__(capabilities=vad.VADCapabilities(update_interval=0.02))
        self.clock, self.heard = clock, []

    def stream(self):
        return _Detecting(self)

    def deaf(self, since_s, until_s):
        return [not any(frame) for at_s, frame in self.heard if since_s <= at_s < until_s]


class _Detecting(vad.VADStream):
    async def _main_task(self):
        async for frame in self._input_ch:
            self._vad.heard.append((self._vad.clock.now(), float_of_pcm16(bytes(frame.data))))
