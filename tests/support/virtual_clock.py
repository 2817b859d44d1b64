"""Time for tests: it passes only when nothing else is left to do, and then at once."""

import asyncio
import heapq
import itertools

# Turns of the loop after which every task that can run has run; our own pipelines are a few awaits deep.
SETTLING_TURNS = 30


class VirtualClock:
    """A clock whose sleepers are woken in order of their time, as soon as everything else waits.

    Parameters
    ----------
    settling_turns : turns of the loop that it lets pass before time does.
    """

    speed = 1.0

    def __init__(self, settling_turns=SETTLING_TURNS):
        self._now_s = 0.0
        self._settling_turns = settling_turns
        self._order = itertools.count()
        self._sleepers = []

    def now(self):
        return self._now_s

    async def sleep(self, duration_s):
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now_s + max(duration_s, 0.0), next(self._order), woken))
        await woken

    async def sleep_until(self, at_s):
        await self.sleep(at_s - self._now_s)

    async def drive(self, main, limit_s=600.0):
        """Run `main` to its end; fails after `limit_s` of virtual time, or if nobody waits for time."""
        task = asyncio.ensure_future(main)
        while not task.done():
            for _ in range(self._settling_turns):
                await asyncio.sleep(0)
            if task.done():
                break
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)  # A sleeper that was cancelled.
            assert self._sleepers, "everything waits, and nothing waits for time to pass"
            at_s, _, woken = heapq.heappop(self._sleepers)
            assert at_s <= limit_s, f"not done after {limit_s} s"
            self._now_s = max(self._now_s, at_s)
            woken.set_result(None)
        return task.result()
