"""A speaker for a whole conversation out of connections that do not last one.

A voice's connection is open while the model thinks and its tools run, and servers close what is silent for too long.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stream.clock import Clock, WallClock
from stream.errors import SpeakerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stream.speech.speaker import Speaker, Speech

__all__ = ["LastingSpeaker"]


@runtime_checkable
class _CanBeKeptAlive(Protocol):
    async def keep_alive(self) -> None: ...


class LastingSpeaker:
    """Opens a speaker when there is something to say, keeps it alive in a pause, and opens another when it is gone.

    Text whose speech had not begun when a speaker died is spoken by the next one.

    Parameters
    ----------
    make : makes a speaker, not started.
    clock : stream time.
    keep_alive_s : how often a speaker that has a method `keep_alive` is called in a pause, seconds.
    idle_s : a speaker without one that was silent for longer is not trusted any more, and another is opened, seconds.
    attempts : how many speakers are tried for one text.
    """

    def __init__(
        self,
        make: Callable[[], Speaker],
        *,
        clock: Clock | None = None,
        keep_alive_s: float = 5.0,
        idle_s: float = 10.0,
        attempts: int = 2,
    ) -> None:
        self._make, self._clock = make, clock or WallClock()
        self._keep_alive_s, self._idle_s, self._attempts = keep_alive_s, idle_s, attempts
        self._inner: Speaker | None = None
        self._opened: asyncio.Queue[Speaker | None] = asyncio.Queue()
        self._unspoken: list[str] = []
        self._used_s = 0.0
        self._failures = 0
        self._finished = False
        self._keeper: asyncio.Task[None] | None = None
        self.name = make().name

    async def start(self) -> None:
        """Open the first speaker; raises `SpeakerError` if that cannot be done."""
        await self._open()

    async def send(self, text: str) -> None:
        """Take words to be spoken, with a speaker that can be trusted to be there."""
        self._finished = False
        if self._inner is not None and self._is_stale():
            await self._let_go()
        self._unspoken.append(text)
        inner = await self._open()
        self._used_s = self._clock.now()
        await inner.send(text)

    async def flush(self) -> None:
        """Speak what is held back."""
        if self._inner is not None and self._unspoken:
            await self._inner.flush()

    async def finish(self) -> None:
        """Take no more text of this answer."""
        self._finished = True
        if self._inner is None or not self._unspoken:
            self._opened.put_nowait(None)
        if self._inner is not None:
            await self._inner.finish()

    async def cancel(self) -> None:
        """Forget the answer: the listener has interrupted."""
        self._unspoken.clear()
        self._drain()
        await self._let_go()

    async def aclose(self) -> None:
        """Close the speaker."""
        await self.cancel()

    async def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech of one answer, whoever speaks it."""
        if self._inner is not None and self._opened.empty():
            self._opened.put_nowait(self._inner)
        while (inner := await self._opened.get()) is not None:
            try:
                async for speech in inner:
                    self._heard(speech)
                    yield speech
            except SpeakerError:
                await self._replace(inner)
                if self._finished and not self._unspoken:
                    break
                continue
            if self._finished and inner is self._inner:
                break
        self._drain()
        await self._let_go()

    def _heard(self, speech: Speech) -> None:
        self._used_s = self._clock.now()
        if len(speech.samples) or speech.phrase:
            # What has begun to be spoken is not said again; the rest of its phrase is lost if the speaker dies now.
            self._unspoken.clear()
            self._failures = 0

    async def _replace(self, dead: Speaker) -> None:
        """Open another speaker for what the dead one did not say, if there is something; raises if that is hopeless."""
        if dead is self._inner:
            await self._let_go()
        text = "".join(self._unspoken)
        if not text:
            return
        self._failures += 1
        if self._failures >= self._attempts:
            raise SpeakerError(f"{self.name} failed {self._failures} times with {text.strip()[:40]!r}")
        inner = await self._open()
        await inner.send(text)
        await (inner.finish() if self._finished else inner.flush())

    def _is_stale(self) -> bool:
        can_be_kept: object = self._inner
        if isinstance(can_be_kept, _CanBeKeptAlive) or self._unspoken:
            return False
        return self._clock.now() - self._used_s > self._idle_s

    async def _open(self) -> Speaker:
        if self._inner is None:
            inner = self._make()
            await inner.start()
            self._inner = inner
            self._used_s = self._clock.now()
            self._opened.put_nowait(inner)
            self._keeper = asyncio.create_task(self._keep(inner))
        return self._inner

    async def _let_go(self) -> None:
        inner, self._inner = self._inner, None
        keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper is not asyncio.current_task():
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        if inner is not None:
            with contextlib.suppress(SpeakerError):
                await inner.finish()
            await inner.aclose()

    def _drain(self) -> None:
        while not self._opened.empty():
            self._opened.get_nowait()

    async def _keep(self, inner: Speaker) -> None:
        """Keep a speaker's connection alive, where it can be."""
        while isinstance(inner, _CanBeKeptAlive):
            await self._clock.sleep(self._keep_alive_s)
            if self._clock.now() - self._used_s >= self._keep_alive_s:
                with contextlib.suppress(SpeakerError):  # Its iteration will say so, if it matters.
                    await inner.keep_alive()
