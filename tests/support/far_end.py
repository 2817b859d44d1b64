"""The far end of a telephone line for tests: it buffers what it is sent, plays it in order and returns marks."""

import asyncio
import base64
import json

import numpy as np

from cues.signal.g711 import samples_of_bytes

RATE = 8000


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
