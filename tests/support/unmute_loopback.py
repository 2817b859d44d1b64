"""Speech and language servers on this machine that speak the protocols of kyutai's, and a listener for a handler.

Text-to-speech and speech-to-text: msgpack over a websocket. The model: server-sent events of `/v1/chat/completions`, as
an Ollama sends them that runs the tools itself: text, a call in fragments, the pause of the tool, and more text.
"""

import asyncio
import contextlib
import json
from typing import ClassVar

import msgpack
import numpy as np
from websockets.asyncio.server import serve

from cues.signal.fades import fade_edges
from cues.synthesis.voicelike import speak_voice_like
from stream.clock import WallClock
from stream.replay.recording import Recording
from stream.replay.server import ReplayServer

RATE = 24000
FRAME = 1920
WORD_S = 0.24  # Whole frames, so that no word is held back in half.

BEFORE = "Let me look that up in the big book of birds."
AFTER = "Here it is."
ARGUMENTS = '{"path": "birds.txt"}'
CALL_AT_S, TOOL_S, WORD_EVERY_S = 0.9, 1.2, 0.05


def answer(before=BEFORE, after=AFTER, *, call_at_s=CALL_AT_S, tool_s=TOOL_S):
    """The model's stream as a recording with times."""
    steps = [(n * WORD_EVERY_S, {"content": f"{word} "}) for n, word in enumerate(before.split())]
    steps.append((call_at_s, _fragment(id="call_1a2b3c4d", type="function", name="read_file", arguments="")))
    steps += [
        (call_at_s + 0.02 * (n + 1), _fragment(arguments=ARGUMENTS[n : n + 4])) for n in range(0, len(ARGUMENTS), 4)
    ]
    end_s = call_at_s + tool_s
    steps += [(end_s + n * WORD_EVERY_S, {"content": f" {word}"}) for n, word in enumerate(after.split())]
    chunks = [(at_s, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for at_s, delta in steps]
    chunks.insert(1, (0.01, {"choices": []}))  # Some servers send these to keep the line alive.
    chunks.append((end_s + 1.0, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    pieces = [f"data: {json.dumps({'id': 'x', 'model': 'loopback', **chunk})}\n\n".encode() for _, chunk in chunks]
    reads = tuple((len(piece), at_s * 1000.0) for piece, (at_s, _) in zip(pieces, chunks, strict=True))
    done = b"data: [DONE]\n\n"
    return Recording(
        name="answer", kind="sse", body=b"".join(pieces) + done, reads=(*reads, (len(done), (end_s + 1.0) * 1000.0))
    )


def _fragment(*, name=None, arguments=None, **fields):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{"index": 0, "function": function, **fields}]}


class OneAnswer:
    """A script for the replay server: the same answer to every question."""

    as_recorded = True
    pages: ClassVar = {}

    def __init__(self, recording):
        self._recording = recording

    def answer(self, _path, _request):
        return self._recording


async def _speak(websocket):
    """Text-to-speech: words come with their times, sound in frames of 80 ms, all far faster than real time."""
    await websocket.send(msgpack.packb({"type": "Ready"}))
    spoken, pending = 0, np.zeros(0, dtype=np.float32)
    async for data in websocket:
        message = msgpack.unpackb(data)
        if message["type"] == "Text":
            for word in message["text"].split():
                start_s = (spoken + len(pending)) / RATE
                times = {"start_s": start_s, "stop_s": start_s + WORD_S}
                await websocket.send(msgpack.packb({"type": "Text", "text": word, **times}))
                n_samples = round(WORD_S * RATE)
                sound = speak_voice_like(word, sample_rate=RATE)[0][:n_samples]
                word_sound = fade_edges(np.pad(sound, (0, n_samples - len(sound))), 240, 480)
                pending = np.concatenate([pending, word_sound.astype(np.float32)])
        at_end = message["type"] == "Eos"
        while len(pending) >= FRAME or (at_end and len(pending)):
            frame, pending = np.pad(pending[:FRAME], (0, max(FRAME - len(pending), 0))), pending[FRAME:]
            spoken += FRAME
            await websocket.send(msgpack.packb({"type": "Audio", "pcm": frame.tolist()}))
        if at_end:
            return


async def _listen(websocket):
    """Speech-to-text: hears nothing, and says so."""
    await websocket.send(msgpack.packb({"type": "Ready"}))
    step = 0
    async for _ in websocket:
        await websocket.send(msgpack.packb({"type": "Step", "step_idx": step, "prs": [0.9, 0.9, 0.9]}))
        step += 1


@contextlib.asynccontextmanager
async def servers(recording):
    """Addresses of the three servers: speech-to-text, text-to-speech, model (without `/v1`)."""
    async with contextlib.AsyncExitStack() as stack:
        stt = await stack.enter_async_context(serve(_listen, "127.0.0.1", 0))
        tts = await stack.enter_async_context(serve(_speak, "127.0.0.1", 0))
        llm = await stack.enter_async_context(ReplayServer(OneAnswer(recording), clock=WallClock()))
        ports = [server.sockets[0].getsockname()[1] for server in (stt, tts)]
        yield f"ws://127.0.0.1:{ports[0]}", f"ws://127.0.0.1:{ports[1]}", llm.base_url.removesuffix("/v1")


class Listener:
    """Calls a handler's `emit` as unmute's server does, and keeps what comes with its time."""

    def __init__(self, handler):
        self._handler = handler
        self.items = []
        self.start_s = asyncio.get_running_loop().time()

    def now_s(self):
        return asyncio.get_running_loop().time() - self.start_s

    async def listen(self):
        while True:
            item = await self._handler.emit()
            if item is not None:
                self.items.append((self.now_s(), item))

    @property
    def frames(self):
        return [(at_s, item[1]) for at_s, item in self.items if isinstance(item, tuple)]

    @property
    def signal(self):
        """All sound in a row, as the client's decoder gets it."""
        return np.concatenate([np.zeros(0, dtype=np.float32), *[frame for _, frame in self.frames]])

    def events(self, kind):
        """Server events of a type, with their times."""
        return [(at_s, item) for at_s, item in self.items if getattr(item, "type", None) == kind]
