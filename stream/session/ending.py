"""How the tasks of a turn end, and with them the stream that they read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["end_tasks"]


async def end_tasks(tasks: Iterable[asyncio.Task[None]], *streams: Any) -> list[Exception]:
    """End `tasks` and close `streams`, one after the other; returns what they raised.

    A stream is closed here too, because a task that never began has not closed it.
    """
    tasks = tuple(tasks)
    for task in tasks:
        if not task.cancelling():  # One that closes its connection already is not disturbed.
            task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    outcomes += await asyncio.gather(_close(streams), return_exceptions=True)
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]


async def _close(streams: Iterable[Any]) -> None:
    for stream in streams:
        if hasattr(stream, "aclose"):
            await stream.aclose()
