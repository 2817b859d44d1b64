"""Cues in a LiveKit agent: one line after `session.start`, and a model whose calls and thoughts are not spoken.

`pip install 'cue-engine[livekit]'`, set `LIVEKIT_URL`, `LIVEKIT_API_KEY` and `LIVEKIT_API_SECRET`, then
`python samples/livekit_agent.py dev`. `--loopback OUT.wav` needs no room and no account: a scripted model calls a
tool, and what a listener would hear is written to the file.
"""

import asyncio
import sys
import time
import uuid

import numpy as np
import soundfile
from livekit import agents
from livekit.agents import Agent, AgentSession, function_tool, inference, llm, tts
from livekit.agents.voice import io

import cues
from cues.adapters.livekit import attach, guarded
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.synthesis.voicelike import speak_voice_like

RATE = 24000
BUFFER_S = 0.08  # A player holds so much back: a frame that is late by less leaves no hole.


@function_tool
async def read_folder(path: str) -> str:  # noqa: ARG001  (the model fills it in)
    """Read the names of a folder's files."""
    await asyncio.sleep(1.0)
    return "two files"


class Assistant(Agent):
    def __init__(self):
        super().__init__(instructions="You read folders.", tools=[read_folder])


async def entrypoint(ctx: agents.JobContext):
    model = guarded(inference.LLM("openai/gpt-4.1-mini"))
    session = AgentSession(stt="deepgram/nova-3", llm=model, tts="cartesia/sonic-3")
    await session.start(Assistant(), room=ctx.room)
    attach(session)
    await session.generate_reply(instructions="Offer to read a folder.")


class ScriptedModel(llm.LLM):
    """Calls the tool, then answers."""

    def chat(self, *, chat_ctx, tools=None, conn_options=agents.DEFAULT_API_CONNECT_OPTIONS, **_):
        return _Answer(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class _Answer(llm.LLMStream):
    async def _run(self):
        has_result = any(item.type == "function_call_output" for item in self._chat_ctx.items)
        call = llm.FunctionToolCall(name="read_folder", arguments='{"path": "/home"}', call_id="call_1")
        delta = {"content": "There are two files."} if has_result else {"tool_calls": [call]}
        self._event_ch.send_nowait(llm.ChatChunk(id=uuid.uuid4().hex, delta=llm.ChoiceDelta(role="assistant", **delta)))


class VoiceLike(tts.TTS):
    """A voice that needs no network."""

    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1)

    def synthesize(self, text, *, conn_options=agents.DEFAULT_API_CONNECT_OPTIONS):
        return _Speech(tts=self, input_text=text, conn_options=conn_options)


class _Speech(tts.ChunkedStream):
    async def _run(self, output_emitter):
        output_emitter.initialize(request_id="1", sample_rate=RATE, num_channels=1, mime_type="audio/pcm")
        output_emitter.push(pcm16_of_float(speak_voice_like(self.input_text, sample_rate=RATE)))
        output_emitter.flush()


class Recorder(io.AudioOutput):
    """The room's end of the chain: keeps what a listener would hear, silence included."""

    def __init__(self):
        capabilities = io.AudioOutputCapabilities(pause=True)
        super().__init__(label="recorder", capabilities=capabilities, next_in_chain=None, sample_rate=RATE)
        self.heard, self._began = np.zeros(0, dtype=np.float32), time.monotonic()

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        gap = round((time.monotonic() - self._began) * RATE) - len(self.heard)
        gap = gap if gap > BUFFER_S * RATE else 0
        self.heard = np.concatenate([self.heard, np.zeros(gap, np.float32), float_of_pcm16(bytes(frame.data))])

    def flush(self):
        super().flush()

    def clear_buffer(self): ...


async def loopback(path):
    """Ask once, and write what is heard."""
    session = AgentSession(llm=guarded(ScriptedModel()), tts=VoiceLike())
    recorder = session.output.audio = Recorder()
    await session.start(Assistant())
    handle = attach(session)
    await session.generate_reply(user_input="What is in my folder?")
    await session.aclose()
    soundfile.write(path, recorder.heard, RATE)
    for span in handle.router.spans:
        print(f"{span.cue} at {span.start_s:.2f} s")


if __name__ == "__main__":
    cues.warm_up()
    if sys.argv[1:2] == ["--loopback"]:
        asyncio.run(loopback(sys.argv[2]))
    else:
        agents.cli.run_app(agents.WorkerOptions(entrypoint_fnc=entrypoint))
