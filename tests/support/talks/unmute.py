"""unmute: its loops and its queue, whose speech comes in bursts after a pause.

`bench/unmute_matrix.py` plays the same turns in unmute's own server.
"""

import asyncio
import logging

from cues.adapters.unmute import ModelError, UnmuteCues
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from tests.support.turn_matrix import RATE, VOICE, Played

FRAME = 1920
AHEAD_S = 0.32


class Voice:
    """unmute's text-to-speech and `_tts_loop`: its `RealtimeQueue` lets frames go when their time is near or past."""

    def __init__(self, queue):
        self._queue, self._start_s, self._n_sent = queue, None, 0

    async def speak(self, speech):
        now_s = asyncio.get_running_loop().time
        self._start_s = now_s() if self._start_s is None else self._start_s
        for start in range(0, len(speech), FRAME):
            await asyncio.sleep(max(self._n_sent / RATE - AHEAD_S - (now_s() - self._start_s), 0.0))
            await self._queue.put((RATE, speech[start : start + FRAME]))
            self._n_sent += FRAME


class UnmuteTalk:
    holds_s = 0.3

    def __init__(self, turn, clock, *, finish="stop", **options):
        self._turn, self._clock, self._finish = turn, clock, finish
        self.cues, self.queue = UnmuteCues(clock=clock, **options), asyncio.Queue()
        self.router, self.played = self.cues.router, Played(clock)
        self.ahead_s = []  # how much of the emitted sound is not heard yet, after each frame

    async def __aenter__(self):
        self._tasks = [asyncio.create_task(self._emit())]
        return self

    async def _emit(self):
        while True:
            item = await self.cues.next_item(self.queue)
            if item is not None:
                self.played.add(item[1])
                self.ahead_s.append(self.played.ends_s - self._clock.now())

    async def ask(self):
        self.cues.begin_response()
        self._tasks.append(asyncio.create_task(self._respond()))

    async def _respond(self):
        try:
            async for event in self.cues.in_time(self._answer()):
                if isinstance(event, TextDelta):
                    self._tasks.append(asyncio.create_task(self._speak()))
            self.cues.end_response()
        except ModelError as error:
            logging.getLogger("unmute").error("%s", error)  # noqa: TRY400  (a line, as unmute writes)
            await self.cues.finish()

    async def _answer(self):
        """The events of a turn whose tools the server runs, in time."""
        for n, call in enumerate(self._turn.calls):
            await asyncio.sleep(self._turn.think_s)
            which = {"tool_name": call.name, "tool_call_id": str(n)}
            yield ToolCallStart(**which)
            yield ToolCallEnd(**which)
            if self._finish == "tool_calls":
                break
            await asyncio.sleep(call.runs_s if call.ends != "never" else 1e6)
            yield ToolResult(**which, is_error=call.ends != "success", content=call.ends)
        else:
            await asyncio.sleep(self._turn.think_s)
            yield TextDelta(self._turn.answer)
        yield Finish(self._finish)

    async def _speak(self):
        await asyncio.sleep(self._turn.voice_s)
        await Voice(self.queue).speak(VOICE)

    async def interrupt(self):
        self.cues.interrupt()
        for task in self._tasks[1:]:
            task.cancel()

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
