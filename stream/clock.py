"""Time as a value that is passed in: stream seconds, which may run faster than the wall's, or stand still in tests."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from stream.errors import StreamValueError

__all__ = ["Clock", "WallClock"]


class Clock(Protocol):
    """What a live part needs to know of time."""

    def now(self) -> float:
        """Seconds of stream time since the clock was made."""
        ...

    async def sleep(self, duration_s: float) -> None:
        """Return once `duration_s` seconds of stream time have passed."""
        ...


class WallClock:
    """Stream time that follows the machine's monotonic clock.

    Parameters
    ----------
    speed : stream seconds per wall second, > 0.
    """

    __slots__ = ("_start_s", "speed")

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0.0:
            raise StreamValueError(f"speed is {speed!r}; it must be above 0")
        self.speed = speed
        self._start_s = time.perf_counter()

    def now(self) -> float:
        """Seconds of stream time since the clock was made."""
        return (time.perf_counter() - self._start_s) * self.speed

    async def sleep(self, duration_s: float) -> None:
        """Return once `duration_s` seconds of stream time have passed; at least one turn of the loop."""
        await asyncio.sleep(max(duration_s, 0.0) / self.speed)
