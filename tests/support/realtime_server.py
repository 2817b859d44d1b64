"""A Realtime server on loopback: it speaks recorded events over a real WebSocket, and keeps what it is sent."""

import asyncio
import base64
import json
import re
from collections import Counter
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


def renamed(events, number):
    """Events with ids of their own: a conversation's responses differ in them."""
    return json.loads(re.sub(r'"(resp|item|call)_(?!id")', rf'"\1_{number}_', json.dumps(events)))


class RealtimeServer:
    """Plays `script` to its one client.

    It sends dictionaries, and waits for `asyncio.Event`s, for seconds, and for the next client event of a kind.
    """

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
        self._socket, self._playing = socket, asyncio.create_task(self._play(socket))
        await self._listen(socket)
        self._playing.cancel()

    async def interrupt(self, event):
        """Send an event, and nothing more of the script."""
        self._playing.cancel()
        await self._socket.send(json.dumps(event))

    async def hang_up(self):
        """Break the connection."""
        self._socket.transport.abort()

    async def _play(self, socket):
        awaited = Counter()
        for step in self._script:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, str):
                awaited[step] += 1
                await self.has(step, awaited[step])
            else:
                await socket.send(json.dumps(step))

    async def _listen(self, socket):
        async for message in socket:
            self.received.append(json.loads(message))
            self.has_received.set()

    async def has(self, kind, number=1):
        """Wait until that many events of the kind have come, and return those that have."""
        while len(self.of(kind)) < number:
            self.has_received.clear()
            await self.has_received.wait()
        return self.of(kind)

    def of(self, kind):
        return [event for event in self.received if event["type"] == kind]
