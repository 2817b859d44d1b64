"""Cues in the voice pipeline of OpenAI's Agents SDK.

`pip install 'cue-engine[agents]'`, set `OPENAI_API_KEY`, then `python samples/agents_voice.py QUESTION.wav OUT.wav`,
with a question at 24 kHz. `--loopback OUT.wav` needs no account: a server in this process answers the SDK, and a
voice-like signal speaks. What is heard is written to the file.
"""

import argparse
import asyncio
import time

import numpy as np
import soundfile
from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
from agents.voice import AudioInput, STTModel, TTSModel, VoicePipeline
from openai import AsyncOpenAI

import cues
from cues.adapters.agents_voice import VoiceCues
from cues.signal.pcm import pcm16_of_float
from cues.synthesis.voicelike import speak_voice_like
from stream.replay.scenarios import Scenario
from stream.replay.server import ReplayServer

RATE = 24000
BUFFER_S = 0.08  # A player holds so much back: a frame that is late by less leaves no hole.


@function_tool
async def read_folder() -> str:
    """Read the names of a folder's files."""
    await asyncio.sleep(1.0)
    return "two files"


async def talk(question, path, *, model=None, **models):
    """Ask once; write what is heard until the answer has been spoken."""
    heard, began = [np.zeros(0, dtype=np.float32)], time.monotonic()

    def play(frame):
        gap = round((time.monotonic() - began) * RATE) - sum(map(len, heard))
        heard.extend([np.zeros(gap if gap > BUFFER_S * RATE else 0, np.float32), frame])

    voice = VoiceCues(play)
    agent = Agent(name="Assistant", instructions="Answer in one sentence.", tools=[read_folder], model=model)
    pipeline = VoicePipeline(workflow=voice.workflow(agent), **models)
    playing = asyncio.create_task(voice.run())
    voice.router.begin_turn()
    await voice.play(await pipeline.run(AudioInput(question)))
    await voice.played()
    voice.close()
    await playing
    soundfile.write(path, np.concatenate(heard), RATE)
    for span in voice.router.spans:
        print(f"{span.cue} at {span.start_s:.2f} s")


class Ears(STTModel):
    """Hears one sentence in everything."""

    model_name = "none"

    async def transcribe(self, *_):
        return "What is in my folder?"

    async def create_session(self, *_):
        raise NotImplementedError


class Voice(TTSModel):
    """Speaks a voice-like signal."""

    model_name = "none"

    async def run(self, text, _settings):
        yield pcm16_of_float(speak_voice_like(text, sample_rate=RATE))


async def loopback(path):
    set_tracing_disabled(True)
    says = [[["call", "read_folder", {}]], [["say", "There are two files."]]]
    script = Scenario(name="folder", about="", turns=says)
    async with ReplayServer(script) as server, AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
        model = OpenAIChatCompletionsModel("any", client)
        await talk(np.zeros(RATE, np.int16), path, model=model, stt_model=Ears(), tts_model=Voice())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", metavar="QUESTION.wav", nargs="?")
    parser.add_argument("out", metavar="OUT.wav")
    parser.add_argument("--loopback", action="store_true")
    options = parser.parse_args()
    if not (options.loopback or options.question):
        parser.error("name QUESTION.wav and OUT.wav, or give --loopback OUT.wav")
    cues.warm_up()
    if options.loopback:
        asyncio.run(loopback(options.out))
    else:
        asyncio.run(talk(soundfile.read(options.question, dtype="int16")[0], options.out))


if __name__ == "__main__":
    main()
