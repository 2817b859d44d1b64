"""A turn's text on its way to the speaker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from stream.speech.speaker import Speaker

__all__ = ["TextQueue"]

_FLUSH, _FINISH = object(), object()


@runtime_checkable
class _CanBeCancelled(Protocol):
    """A speaker that can drop an answer; others would start the next answer with the rest of this one."""

    async def cancel(self) -> None: ...


class TextQueue:
    """Queues text for a speaker, which takes it at its own pace; putting text in never waits."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._queue: asyncio.Queue[str | object] = asyncio.Queue()

    def say(self, text: str) -> None:
        """Queue text."""
        self._queue.put_nowait(text)

    def flush(self) -> None:
        """Have the queued text spoken without waiting for more."""
        self._queue.put_nowait(_FLUSH)

    def finish(self) -> None:
        """Mark the end of the answer."""
        self._queue.put_nowait(_FINISH)

    async def deliver(self) -> None:
        """Send all text to the speaker, to the end of the answer; raises what the speaker raises."""
        while (item := await self._queue.get()) is not _FINISH:
            await (self._speaker.send(item) if isinstance(item, str) else self._speaker.flush())
        await self._speaker.finish()

    async def cancel(self) -> None:
        """Have the speaker drop the answer, if it can."""
        if isinstance(self._speaker, _CanBeCancelled):
            await self._speaker.cancel()
