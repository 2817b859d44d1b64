"""What a session tells its speaker: text, where phrases end, and that an answer is over or cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from stream.speech.speaker import Speaker

__all__ = ["TextQueue"]

_FLUSH, _FINISH = object(), object()


@runtime_checkable
class _CanBeCancelled(Protocol):
    """A speaker that can forget an answer; others serve one answer, or begin the next with the rest of this one."""

    async def cancel(self) -> None: ...


class TextQueue:
    """Text of one answer on its way to the speaker, who takes it when it can: whoever puts it in does not wait."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._queue: asyncio.Queue[str | object] = asyncio.Queue()

    def say(self, text: str) -> None:
        """Put text in."""
        self._queue.put_nowait(text)

    def flush(self) -> None:
        """Have what was put in spoken without waiting for more."""
        self._queue.put_nowait(_FLUSH)

    def finish(self) -> None:
        """Say that the answer is complete."""
        self._queue.put_nowait(_FINISH)

    async def deliver(self) -> None:
        """Hand all of it to the speaker, to the end of the answer; what the speaker raises comes through."""
        while (item := await self._queue.get()) is not _FINISH:
            await (self._speaker.send(item) if isinstance(item, str) else self._speaker.flush())
        await self._speaker.finish()

    async def cancel(self) -> None:
        """Have the speaker forget the answer, if it can."""
        if isinstance(self._speaker, _CanBeCancelled):
            await self._speaker.cancel()
