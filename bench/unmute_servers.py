"""unmute's own server, loopback servers that speak the protocols of kyutai's, and a client as in the browser.

Text-to-speech and speech-to-text: msgpack over a websocket. The model: `tests/support/unmute_model.py`.
"""

import asyncio
import base64
import contextlib
import json
import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgpack
import numpy as np
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, ConnectionClosedError

from cues.signal.fades import fade_edges
from cues.synthesis.voicelike import speak_voice_like
from stream.replay.server import ReplayServer

RATE, FRAME = 24000, 1920
WORD_S = 0.24  # Whole frames, so that no word is held back in half.
METRICS = (
    "vllm_hard_errors_total",
    "hard_errors_total",
    "vllm_interrupt_total",
    "vllm_recv_words_total",
    "vllm_active_sessions",
    "vllm_reply_length_count",
)

# Of moshi-server, which is unmute's text-to-speech (rust/moshi-server/src/py_module.rs): it sends a ping every
# SEND_PING_EVERY, and closes a connection from which nothing came for three of them.
PING_EVERY_S, SILENCE_S = 10.0, 30.0


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
                    sound = speak_voice_like(word, sample_rate=RATE)[:n_samples]
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


@dataclass
class Session:
    """Result of a session.

    Attributes
    ----------
    events : what the client got, each with its time.
    items : what the handler emitted, each with its time.
    handler : the handler.
    called, known_s : that the handler has taken the start of a call, and when.
    metrics : by how much each went up.
    logs : the records of all loggers.
    """

    start_s: float
    events: list = field(default_factory=list)
    items: list = field(default_factory=list)
    handler: Any = None
    called: asyncio.Event = field(default_factory=asyncio.Event)
    known_s: list = field(default_factory=list)
    metrics: dict = field(default_factory=dict)
    logs: list = field(default_factory=list)

    def now_s(self):
        return asyncio.get_running_loop().time() - self.start_s

    # Received by the client.

    def of(self, kind, key=None):
        """The events of a type, or one field of each."""
        found = [event for _, event in self.events if event["type"] == kind]
        return found if key is None else [event[key] for event in found]

    def times(self, kind):
        return [at_s for at_s, event in self.events if event["type"] == kind]

    @property
    def calls(self):
        return [(event["tool_name"], event["arguments"], event["status"]) for event in self.of("unmute.tool_call")]

    @property
    def ready(self):
        """The text that went to the voice."""
        return "".join(self.of("unmute.response.text.delta.ready", "delta"))

    @property
    def spoken(self):
        """The words that were heard."""
        return self.of("response.text.delta", "delta")

    # Shown by the handler.

    @property
    def history(self):
        """The chat history without the system prompt and the empty message that ends a turn."""
        return [(m["role"], m["content"]) for m in self.handler.chatbot.chat_history[1:] if m["content"]]

    @property
    def cues(self):
        """The spans in which a cue sounded, in order."""
        spans = [s for s in self.handler.cues.router.spans if s.end_samples is None or s.end_samples > s.start_samples]
        return sorted(spans, key=lambda span: span.start_samples)

    @property
    def frames(self):
        return [(at_s, item[1]) for at_s, item in self.items if isinstance(item, tuple)]

    def decoded(self):
        """The sound of each `response.audio.delta`, with its time."""
        import sphn

        opus = sphn.OpusStreamReader(RATE)
        for at_s, event in self.events:
            if event["type"] == "response.audio.delta":
                yield at_s, opus.append_bytes(base64.b64decode(event["delta"]))

    @property
    def signal(self):
        return np.concatenate([np.zeros(0, dtype=np.float32), *[frame for _, frame in self.frames]])

    @property
    def ends(self):
        """The output sample at which each frame ends."""
        return np.cumsum([len(frame) for _, frame in self.frames])

    def emitted_s(self, sample):
        """When an output sample was emitted."""
        return self.frames[int(np.searchsorted(self.ends, sample, side="right"))][0]

    @property
    def ahead_s(self):
        """How much of the emitted sound a client that plays at once has not heard yet, after each frame."""
        end_s, ahead = 0.0, []
        for at_s, frame in self.frames:
            end_s = max(end_s, at_s) + len(frame) / RATE
            ahead.append(end_s - at_s)
        return ahead

    def heard_s(self, sample):
        """When such a client hears an output sample."""
        n = int(np.searchsorted(self.ends, sample, side="right"))
        at_s, _ = self.frames[n]
        return at_s + self.ahead_s[n] - (int(self.ends[n]) - sample) / RATE

    def sounds(self, from_s, to_s=np.inf):
        """When sound was emitted between two times."""
        return [at_s for at_s, frame in self.frames if from_s < at_s < to_s and frame.any()]

    def lines(self, logger=""):
        return [record.getMessage() for record in self.logs if record.name.startswith(logger)]


class Server:
    """unmute's own server, with eyes on its handlers, its metrics and its log.

    Attributes
    ----------
    options : parameters of the next handler's `UnmuteCues`.
    """

    def __init__(self):
        import uvicorn
        from unmute import main_websocket

        self._sessions, self.options = [], {}
        main_websocket.UnmuteHandler = self._watched(main_websocket.UnmuteHandler)
        log = logging.Handler()
        log.emit = lambda record: self._sessions[-1].logs.append(record) if self._sessions else None
        logging.getLogger().handlers[:] = [log]
        for name in ("unmute", "cues", "stream"):
            logging.getLogger(name).setLevel(logging.DEBUG)
        config = uvicorn.Config(main_websocket.app, port=0, log_config=None, ws_per_message_deflate=False)
        self._uvicorn = uvicorn.Server(config)

    def _watched(self, kind):
        server = self

        class Watched(kind):
            def __init__(self):
                super().__init__()
                self.session = server._sessions[-1]
                self.session.handler = self
                if server.options:
                    self.cues = type(self.cues)(**server.options)
                handle = self.cues.handle

                def noted(event):
                    if type(event).__name__ == "ToolCallStart":
                        self.session.known_s.append(self.session.now_s())
                        self.session.called.set()
                    handle(event)

                self.cues.handle = noted

            async def emit(self):
                item = await super().emit()
                if item is not None:
                    self.session.items.append((self.session.now_s(), item))
                return item

        return Watched

    async def __aenter__(self):
        self._serving = asyncio.create_task(self._uvicorn.serve())
        await _until(lambda: self._uvicorn.started)
        self._url = f"ws://127.0.0.1:{self._uvicorn.servers[0].sockets[0].getsockname()[1]}/v1/realtime"
        return self

    async def __aexit__(self, *_):
        self._uvicorn.should_exit = True
        await self._serving

    async def session(self, *, more_s=1.0, lasts_s=None, during=None):
        """Talk until an answer is over and `more_s` have passed, or for `lasts_s`, or until the server closes."""
        session = Session(asyncio.get_running_loop().time())
        self._sessions.append(session)
        before = metrics()
        async with connect(self._url, subprotocols=["realtime"]) as websocket:
            settings = {"instructions": {"type": "constant", "text": "Be brief."}, "allow_recording": False}
            await websocket.send(json.dumps({"type": "session.update", "session": settings}))
            tasks = [asyncio.create_task(_silence(websocket))]
            tasks += [asyncio.create_task(during(session))] if during else []
            try:
                async with asyncio.timeout(lasts_s) as limit:
                    async for message in websocket:
                        event = json.loads(message)
                        session.events.append((session.now_s(), event))
                        if event["type"] == "response.audio.done" and lasts_s is None:
                            limit.reschedule(asyncio.get_running_loop().time() + more_s)
            except (TimeoutError, ConnectionClosedError):
                pass  # All is said, or the server has closed.
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        await _until(lambda: metrics()["vllm_active_sessions"] <= before["vllm_active_sessions"])
        session.metrics = {name: value - before[name] for name, value in metrics().items()}
        return session


def metrics():
    from prometheus_client import REGISTRY

    return {name: REGISTRY.get_sample_value(f"worker_{name}") or 0.0 for name in METRICS}


async def _until(holds):
    async with asyncio.timeout(10.0):
        while not holds():  # noqa: ASYNC110  (neither uvicorn nor prometheus has an event for it)
            await asyncio.sleep(0.01)


async def _silence(websocket):
    """A microphone in a silent room."""
    import sphn

    opus = sphn.OpusStreamWriter(RATE)
    start_s, n = asyncio.get_running_loop().time(), 0
    while True:
        if data := opus.append_pcm(np.zeros(FRAME, dtype=np.float32)):
            audio = base64.b64encode(data).decode()
            await websocket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
        n += 1
        await asyncio.sleep(start_s + n * FRAME / RATE - asyncio.get_running_loop().time())
