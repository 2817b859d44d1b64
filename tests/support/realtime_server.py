"""A Realtime server on loopback: it speaks recorded events over a real WebSocket, and keeps what it is sent."""

import asyncio
import base64
import json
from pathlib import Path

from websockets.asyncio.server import serve

from cues.signal.pcm import pcm16_of_float

RECORDED = Path(__file__).parent.parent / "stream" / "data" / "providers" / "realtime"


def recorded(name):
    """The events of a recording."""
    return [json.loads(line) for line in (RECORDED / name).read_text(encoding="utf-8").splitlines()]


def spoken(events, speech, n_pieces=10):
    """Recorded events whose audio is `speech`, in pieces: the recordings hold only the beginnings of theirs."""
    audio = [event for event in events if event["type"] == "response.output_audio.delta"]
    pcm = pcm16_of_float(speech)
    size = -(-len(pcm) // n_pieces)
    deltas = [{**audio[0], "delta": base64.b64encode(pcm[at : at + size]).decode()} for at in range(0, len(pcm), size)]
    at = events.index(audio[0])
    rest = [event for event in events[at:] if event["type"] != "response.output_audio.delta"]
    return [*events[:at], *deltas, *rest]


class RealtimeServer:
    """Plays `script` to its one client: it sends events, and waits for `asyncio.Event`s and kinds of client events."""

    def __init__(self, script):
        self._script = script
        self.received, self.has_received = [], asyncio.Event()

    async def __aenter__(self):
        self._server = await serve(self._talk, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _talk(self, socket):
        listening = asyncio.create_task(self._listen(socket))
        for step in self._script:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, str):
                await self.has(step)
            else:
                await socket.send(json.dumps(step))
        await listening

    async def _listen(self, socket):
        async for message in socket:
            self.received.append(json.loads(message))
            self.has_received.set()

    async def has(self, kind):
        """Wait until an event of that kind has come, and return those that have."""
        while not self.of(kind):
            self.has_received.clear()
            await self.has_received.wait()
        return self.of(kind)

    def of(self, kind):
        return [event for event in self.received if event["type"] == kind]
