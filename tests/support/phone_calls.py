"""Calls over each line: Twilio's messages, and Asterisk's AudioSocket over TCP on loopback."""

import asyncio
import base64
import json
import uuid

import numpy as np

from cues.adapters.audiosocket import AudioSocketLine
from cues.adapters.telephony import PhoneLine
from cues.signal.g711 import samples_of_bytes
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from tests.support.listening import steady_voice
from tests.support.virtual_loop import LoopClock, run_virtually

RATE = 8000
START = {
    "event": "start",
    "sequenceNumber": "1",
    "start": {
        "streamSid": "MZ1",
        "callSid": "CA1",
        "tracks": ["inbound"],
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        "customParameters": {"name": "Ada"},
    },
    "streamSid": "MZ1",
}


class FarEnd:
    """Speaks as Twilio does; `signal()` is what the caller hears, from time 0 on.

    Parameters
    ----------
    clock : the time at which messages arrive.
    """

    def __init__(self, clock):
        self._clock = clock
        self._heard = np.zeros(0, dtype=np.float32)
        self._ends_s = 0.0
        self._marks, self._tasks = [], []
        self.messages, self.to_line = [], lambda _: None

    async def send(self, text):
        message = json.loads(text)
        self.messages.append((self._clock.now(), message))
        match message["event"]:
            case "media" | "playAudio":
                self._play(samples_of_bytes(base64.b64decode(message["media"]["payload"])))
            case "clear" | "clearAudio":
                self._clear()
            case "mark":
                self._marks.append(message["mark"]["name"])
                self._tasks.append(asyncio.create_task(self._return_mark(message["mark"]["name"], self._ends_s)))

    def _play(self, samples):
        start = round(max(self._ends_s, self._clock.now()) * RATE)
        self._heard = np.concatenate([self._heard, np.zeros(max(0, start - len(self._heard)), dtype=np.float32)])
        self._heard = np.concatenate([self._heard[:start], samples])
        self._ends_s = len(self._heard) / RATE

    def _clear(self):
        self._ends_s = min(self._ends_s, self._clock.now())
        self._heard = self._heard[: round(self._clock.now() * RATE)]
        for name in list(self._marks):
            self._return(name)

    async def _return_mark(self, name, at_s):
        await self._clock.sleep(at_s - self._clock.now())
        self._return(name)

    def _return(self, name):
        if name in self._marks:
            self._marks.remove(name)
            self.to_line(json.dumps({"event": "mark", "streamSid": "MZ1", "mark": {"name": name}}))

    def signal(self):
        return self._heard


def twilio_call(script, **options):
    """Run `script(line, clock)` during a call of Twilio's; the far end."""

    async def go():
        clock = LoopClock()
        far = FarEnd(clock)
        line = PhoneLine(far.send, clock=clock, **options)
        far.to_line = line.feed
        line.feed(json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"}))
        line.feed(json.dumps(START))
        run = asyncio.create_task(line.run())
        await script(line, clock)
        line.feed(json.dumps({"event": "stop", "streamSid": "MZ1"}))
        await run
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in rest if "PhoneLine" in repr(task)]
        for task in rest:
            task.cancel()
        return far

    return run_virtually(go)


CALL_ID = uuid.UUID("40325ec2-5efd-4bd3-805f-53576e581d13")


def message(kind, payload=b""):
    return bytes([kind]) + len(payload).to_bytes(2, "big") + payload


FRAME = message(0x10, pcm16_of_float(steady_voice(0.02, 8000)))
OPENING = message(0x01, CALL_ID.bytes)


class Asterisk:
    """The client: it plays each frame as it comes, after those that still play."""

    def __init__(self, rate=8000):
        self.kinds, self.rate, self._heard = set(), rate, np.zeros(0, dtype=np.float32)

    async def listen(self, reader):
        while header := await reader.read(3):
            samples = float_of_pcm16(await reader.readexactly(int.from_bytes(header[1:], "big")))
            self.kinds.add(header[0])
            start = max(len(self._heard), round(LoopClock().now() * self.rate))
            self._heard = np.concatenate([np.pad(self._heard, (0, start - len(self._heard))), samples])

    def signal(self):
        return self._heard


def asterisk_call(script, *, opening=(OPENING, FRAME), rate=8000, **options):
    """Run `script(line, clock)` during a call of Asterisk's over TCP; what the caller heard, and what the line read."""

    async def go():
        clock, asterisk, events, has_begun = LoopClock(), Asterisk(rate), [], asyncio.Event()

        async def answer(reader, writer):
            line = AudioSocketLine(writer.write, clock=clock, **options)
            running = asyncio.create_task(line.run())
            talking = None
            while data := await reader.read(4096):
                events.extend(line.feed(data))
                talking = talking or asyncio.create_task(script(line, clock))
            await asyncio.wait([running])  # a hangup ends it
            await talking
            writer.close()
            has_begun.set()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            hearing = asyncio.create_task(asterisk.listen(reader))
            writer.write(b"".join(opening))
            await clock.sleep_until(8.0)
            writer.write(message(0x00))
            writer.write_eof()
            await has_begun.wait()
            await hearing
            writer.close()
        return asterisk, events

    return run_virtually(go)
