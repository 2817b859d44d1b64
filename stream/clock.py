"""Stream time, passed in as a value: it may run faster than real time, or stand still in tests."""

import asyncio
import time
from typing import Protocol

from stream.errors import StreamValueError

__all__ = ["Clock", "WallClock"]


class Clock(Protocol):
    """The time that a live part sees."""

    def now(self) -> float:
        """Stream seconds since the clock was made."""
        ...

    async def sleep(self, duration_s: float) -> None:
        """Return after `duration_s` seconds of stream time."""
        ...


class WallClock:
    """Stream time that runs at `speed` times the machine's monotonic clock; above 0, else `StreamValueError`."""

    __slots__ = ("_start_s", "speed")

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0.0:
            raise StreamValueError(f"speed is {speed!r}; it must be above 0")
        self.speed = speed
        self._start_s = time.perf_counter()

    def now(self) -> float:
        """Stream seconds since the clock was made."""
        return (time.perf_counter() - self._start_s) * self.speed

    async def sleep(self, duration_s: float) -> None:
        """Return after `duration_s` seconds of stream time, and after one pass of the event loop at least."""
        await asyncio.sleep(max(duration_s, 0.0) / self.speed)
