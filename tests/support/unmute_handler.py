"""The part of unmute's handler that cues have to do with, for Pythons that unmute does not run on.

Same queue, same loops, same protocols, with what `cues/adapters/unmute.patch` changes in them.
"""

import asyncio
from types import SimpleNamespace

import msgpack
import numpy as np
from openai import AsyncOpenAI
from websockets.asyncio.client import connect

from cues.adapters.unmute import UnmuteCues, chat_events
from stream import TextDelta, ToolCallEnd, ToolCallStart

RATE = 24000
AHEAD_S = 0.32


class ProtocolHandler:
    """Reads the model, sends words to the text-to-speech, and queues its sound four frames ahead of time."""

    def __init__(self, tts_url, llm_url, **options):
        self._tts_url = tts_url
        self._client = AsyncOpenAI(base_url=f"{llm_url}/v1", api_key="none")
        self.output_queue = asyncio.Queue()
        self.cues = UnmuteCues(**options)
        self.history = []
        self.on_call = lambda: None
        self._tasks = []

    async def generate_response(self):
        self.cues.begin_response()
        self.history.append("")
        self._tasks = [asyncio.create_task(self._respond())]

    async def _respond(self):
        async with connect(f"{self._tts_url}/api/tts_streaming") as tts:
            assert msgpack.unpackb(await tts.recv())["type"] == "Ready"
            self._tasks.append(asyncio.create_task(self._tts_loop(tts)))
            request = {"model": "loopback", "messages": [{"role": "user", "content": "Birds?"}]}
            async for event in self.cues.in_time(chat_events(self._client, **request)):
                if isinstance(event, ToolCallStart):
                    self.on_call()
                if isinstance(event, ToolCallEnd):
                    call = {"tool_name": event.tool_name, "arguments": event.arguments_json, "status": event.status}
                    await self.output_queue.put(SimpleNamespace(type="unmute.tool_call", **call))
                if isinstance(event, TextDelta):
                    await tts.send(msgpack.packb({"type": "Text", "text": event.text.strip()}))
            self.cues.end_response()
            await tts.send(msgpack.packb({"type": "Eos"}))
            await self._tasks[1]

    async def _tts_loop(self, tts):
        output_queue = self.output_queue  # An interruption puts another one in its place.
        loop = asyncio.get_running_loop()
        start_s, received = None, 0
        async for data in tts:
            message = msgpack.unpackb(data)
            start_s = loop.time() if start_s is None else start_s
            if message["type"] == "Audio":
                await asyncio.sleep(max(received / RATE - AHEAD_S - (loop.time() - start_s), 0.0))
                received += len(message["pcm"])
                await output_queue.put((RATE, np.array(message["pcm"], dtype=np.float32)))
            elif message["type"] == "Text":
                self.history[-1] += f" {message['text']}"

    async def emit(self):
        return await self.cues.next_item(self.output_queue)

    async def interrupt_bot(self):
        self.cues.interrupt()
        self.output_queue = asyncio.Queue()
        await self.output_queue.put((RATE, np.zeros(1920, dtype=np.float32)))
        await self.stop()

    async def stop(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self):
        await self.stop()
        await self._client.close()
