# Names that the pages take for granted: a client's stream, a voice, audio, tools. Types alone; nothing runs this.

import asyncio as asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import numpy as np
import openai as openai
from livekit.agents import AgentSession
from numpy.typing import NDArray
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

import cues as cues
import stream as stream
from cues.adapters.audiosocket import AudioSocketLine
from cues.adapters.livekit import SessionCues
from cues.adapters.pipecat import CueMixer
from cues.adapters.telephony import PhoneLine
from stream.readers.text.dialect import Dialect as Dialect
from stream.readers.text.dialects import json_calls as json_calls

class Voice(Protocol):
    async def send(self, text: str) -> None: ...

class McpSession(Protocol):
    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any: ...

bank: cues.Bank
cue_mixer: CueMixer
mixer: cues.Mixer
router: stream.CueRouter
tts: Voice
url: str
client: openai.AsyncOpenAI
model: stream.services.Connection
recovery: stream.services.Recovery
messages: list[ChatCompletionMessageParam]
tools: list[ChatCompletionFunctionToolParam]
functions: dict[str, Callable[[Any], str]]
listing: list[dict[str, Any]]
session: McpSession
agent_session: AgentSession[None]
handle: SessionCues
plan: list[str]
samples: NDArray[np.float32]
frame: NDArray[np.float32]
frames: NDArray[np.float32]
data: bytes
openai_stream: AsyncIterator[dict[str, Any]]

def send(frame: NDArray[np.float32]) -> None: ...
def speak(text: str) -> NDArray[np.float32]: ...
async def transcribe(audio: tuple[int, NDArray[np.int16]]) -> str: ...
def get_weather(city: str) -> str: ...
async def on_audio(line: PhoneLine | AudioSocketLine, samples: NDArray[np.float32]) -> None: ...
async def load_search_tools() -> list[stream.Tool]: ...
