"""Ends a turn's tasks and closes the streams that they read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["end_tasks"]


async def end_tasks(tasks: Iterable[asyncio.Task[None]], *streams: Any) -> list[Exception]:
    """Cancel `tasks`, then close `streams`; returns the exceptions that they raised.

    Streams are closed here, too, because a task that never started has not closed its own.
    """
    tasks = tuple(tasks)
    for task in tasks:
        if not task.cancelling():  # It is already closing its connection.
            task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    outcomes += await asyncio.gather(_close(streams), return_exceptions=True)
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]


async def _close(streams: Iterable[Any]) -> None:
    for stream in streams:
        if hasattr(stream, "aclose"):
            await stream.aclose()
