"""Ends a turn's tasks and closes the streams that they read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

__all__ = ["end_tasks", "failures"]


async def end_tasks(tasks: Iterable[asyncio.Task[None]], *streams: Any) -> list[Exception]:
    """Cancel `tasks`, then close `streams`; returns the exceptions that they raised.

    Streams are closed here, too, because a task that never started has not closed its own.
    """
    tasks = tuple(tasks)
    for task in tasks:
        if not task.cancelling():  # It is already closing its connection.
            task.cancel()
    return await failures(*tasks) + await failures(_close(streams))


async def failures(*work: Awaitable[Any]) -> list[Exception]:
    """The exceptions that `work` raised, when all of it is done."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]


async def _close(streams: Iterable[Any]) -> None:
    for stream in streams:
        if hasattr(stream, "aclose"):
            await stream.aclose()
