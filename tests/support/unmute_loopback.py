"""Speech and language servers on this machine that speak the protocols of kyutai's, and a listener for a handler.

Text-to-speech and speech-to-text: msgpack over a websocket. The model: server-sent events of `/v1/chat/completions`, as
an Ollama sends them that runs the tools itself: text, a call in fragments, the pause of the tool, and more text.
"""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar

import msgpack
import numpy as np
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from cues.signal.fades import fade_edges
from cues.synthesis.voicelike import speak_voice_like
from stream.replay.recording import Recording
from stream.replay.server import ReplayServer

RATE = 24000
FRAME = 1920
WORD_S = 0.24  # Whole frames, so that no word is held back in half.

BEFORE = "Let me look that up in the big book of birds."
AFTER = "Here it is."
ARGUMENTS = '{"path": "birds.txt"}'
CALL_AT_S, TOOL_S, WORD_EVERY_S = 0.9, 1.2, 0.05

# Of moshi-server, which is unmute's text-to-speech (rust/moshi-server/src/py_module.rs): it sends a ping every
# SEND_PING_EVERY, and closes a connection from which nothing came for three of them.
PING_EVERY_S, SILENCE_S = 10.0, 30.0


def said(text, at_s=0.0):
    """Steps of a stream, each its time and its delta: text as a model writes it."""
    return [(at_s + n * WORD_EVERY_S, {"content": f"{word} "}) for n, word in enumerate(text.split())]


def called(at_s=CALL_AT_S, name="read_file", arguments=ARGUMENTS, index=0):
    """Steps of a stream: a call in fragments."""
    head = {"id": f"call_1a2b3c4{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [head, *({"function": {"arguments": arguments[n : n + 4]}} for n in range(0, len(arguments), 4))]
    return [(at_s + 0.02 * n, {"tool_calls": [{"index": index, **piece}]}) for n, piece in enumerate(pieces)]


def recording(steps, *, finish="stop", end_s=None):
    """A model's stream with its times; where `finish` is None, the connection breaks after the last step."""
    chunks = [(at_s, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for at_s, delta in steps]
    chunks.insert(1, (chunks[0][0], {"choices": []}))  # Some servers send these to keep the line alive.
    last_s = steps[-1][0] if end_s is None else end_s
    if finish is not None:
        chunks.append((last_s, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    pieces = [(at_s, f"data: {json.dumps({'id': 'x', 'model': 'loopback', **chunk})}\n\n") for at_s, chunk in chunks]
    if finish is not None:
        pieces.append((last_s, "data: [DONE]\n\n"))
    body = "".join(piece for _, piece in pieces).encode()
    reads = tuple((len(piece), at_s * 1000.0) for at_s, piece in pieces)
    return Recording(name="answer", kind="sse", body=body, reads=reads, complete=finish is not None)


def answer(before=BEFORE, after=AFTER, *, arguments=ARGUMENTS, call_at_s=CALL_AT_S, tool_s=TOOL_S):
    """A stream with a call in mid-sentence."""
    end_s = call_at_s + tool_s
    steps = [*said(before), *called(call_at_s, arguments=arguments), *said(after, end_s)]
    return recording(sorted(steps, key=lambda step: step[0]), end_s=end_s + 1.0)


def refusal(status, message):
    """An error in the place of a stream."""
    body = json.dumps({"error": {"message": message}}).encode()
    headers = {"content-type": "application/json"}
    return Recording(name="refusal", kind="sse", body=body, status=status, headers=headers)


@dataclass
class Model:
    """A script for the replay server: the same answer to every question.

    Attributes
    ----------
    says : the answer.
    without_tools : the answer to a request without tools, if it is another one.
    requests : the bodies that came.
    """

    says: Recording
    without_tools: Recording | None = None
    requests: list = field(default_factory=list)
    as_recorded: ClassVar = True
    pages: ClassVar = {}

    def answer(self, _path, request):
        self.requests.append(request)
        return self.without_tools if self.without_tools and "tools" not in request else self.says


@dataclass
class Voice:
    """The text-to-speech, and how its clients kept their connections.

    Attributes
    ----------
    pongs : answers to its pings.
    dropped : connections that it closed because nothing came from the client.
    spoken : the frames that it sent.
    """

    pongs: int = 0
    dropped: int = 0
    spoken: list = field(default_factory=list)

    async def serve(self, websocket):
        keeping = asyncio.create_task(self._keep(websocket))
        try:
            await self._speak(websocket)
        finally:
            keeping.cancel()

    async def _speak(self, websocket):
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
                self.spoken.append(frame)
                await websocket.send(msgpack.packb({"type": "Audio", "pcm": frame.tolist()}))
            if at_end:
                return

    async def _keep(self, websocket):
        """Ping, and close where no answer comes: stricter than moshi-server, for which words count, too."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(PING_EVERY_S)
                try:
                    await asyncio.wait_for(await websocket.ping(), SILENCE_S - PING_EVERY_S)
                except TimeoutError:
                    self.dropped += 1
                    await websocket.close()
                    return
                self.pongs += 1


@dataclass
class Ear:
    """The speech-to-text: hears nothing but what it is given.

    Attributes
    ----------
    words : what the user says next.
    pause : how sure it is that the user has ended, 0 to 1.
    """

    words: list = field(default_factory=list)
    pause: float = 0.9

    async def serve(self, websocket):
        await websocket.send(msgpack.packb({"type": "Ready"}))
        step = 0
        async for _ in websocket:
            while self.words:
                word = {"type": "Word", "text": self.words.pop(0), "start_time": step * FRAME / RATE}
                await websocket.send(msgpack.packb(word))
            await websocket.send(msgpack.packb({"type": "Step", "step_idx": step, "prs": [self.pause] * 3}))
            step += 1


def _build_info(connection, request):
    """Answers to unmute's health check."""
    return connection.respond(HTTPStatus.OK, "{}") if request.path.endswith("/api/build_info") else None


@contextlib.asynccontextmanager
async def servers(model, *, voice=None, ear=None, clock=None):
    """Addresses of the three servers: speech-to-text, text-to-speech, model (without `/v1`)."""
    options = {"host": "127.0.0.1", "port": 0, "process_request": _build_info, "ping_interval": None}
    async with contextlib.AsyncExitStack() as stack:
        stt = await stack.enter_async_context(serve((ear or Ear()).serve, **options))
        tts = await stack.enter_async_context(serve((voice or Voice()).serve, **options))
        llm = await stack.enter_async_context(ReplayServer(model, clock=clock))
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
