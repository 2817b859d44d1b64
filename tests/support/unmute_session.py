"""unmute's own server, a client that talks to it as the browser does, and what a session shows."""

import asyncio
import base64
import json
import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

RATE, FRAME = 24000, 1920
METRICS = (
    "vllm_hard_errors_total",
    "hard_errors_total",
    "vllm_interrupt_total",
    "vllm_recv_words_total",
    "vllm_active_sessions",
    "vllm_reply_length_count",
)


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

    # What the client got.

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

    # What the handler shows.

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
