"""A session's sound at the pace of a clock: for pipelines that queue speech without end behind the place to mix."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import cues
from cues.adapters._pipeline_cues import PipelineCues
from stream.clock import WallClock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stream.clock import Clock

__all__ = ["PacedDeck"]


class PacedDeck:
    """Speech in at any speed, frames with cues out when they are due.

    Parameters
    ----------
    clock : `None` is the machine's.
    frame_ms : length of a frame, milliseconds.
    lead_ms : how far the frames run ahead of what is heard at most, milliseconds; it begins with two frames.
    options : as of `PipelineCues`.

    Attributes
    ----------
    deck : mixer and router.
    pacer : the queue in front of the mixer.
    """

    def __init__(
        self, *, sample_rate: int, clock: Clock | None, frame_ms: float, lead_ms: float, **options: Any
    ) -> None:
        self.clock = clock or WallClock()
        self.deck = PipelineCues(sample_rate=sample_rate, now_s=self.clock.now, **options)
        frame_samples = round(frame_ms * sample_rate / 1000.0)
        self.pacer = cues.Pacer(self.deck.mixer, frame_samples=frame_samples, lead_ms=lead_ms, clock=self.clock.now)
        self._fading = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self.deck.router.spans.subscribe(lambda _: self.wake())

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self.deck.sample_rate

    def push(self, samples: NDArray[np.float32]) -> None:
        """Queue speech of an answer; after a barge-in it is the next answer's."""
        if self._fading:
            self._fading = False
            self.deck.mixer.resume()  # Once the fade is over; what is left of the old answer is that long.
        self.pacer.push(samples)
        self._news.set()

    def interrupt(self, fade_ms: float = 30.0) -> int:
        """Barge-in: what sounds fades, the rest is dropped; the samples of speech that were never spoken."""
        self.deck.router.barge_in(fade_ms)
        return self.pause(fade_ms)

    def pause(self, fade_ms: float = 30.0) -> int:
        """Fade what sounds and drop the rest, as `interrupt` does; outcomes of calls will sound."""
        self.deck.router.hush(fade_ms)
        dropped = self.pacer.interrupt(fade_ms)
        self._fading = True
        self._news.set()
        return dropped

    def frames(self) -> list[NDArray[np.float32]]:
        """The frames that are due now."""
        if self.pacer.queued_samples:
            self.deck.router.speech(self.deck.mixer.position + self.pacer.queued_samples)
        due = self.pacer.due()
        self.deck.router.poll()
        return due

    def wake(self) -> None:
        """End a `wait`, from any thread: there is something to play."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def wait(self, *, longest_s: float | None = None, also: asyncio.Future[Any] | None = None) -> None:
        """Wait until a frame is due, something new is there, `also` is done, or `longest_s` have passed."""
        self._loop = asyncio.get_running_loop()
        waits = [s for s in (self.pacer.wait_s(), longest_s) if s is not None]
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._news.wait())]
        if waits:
            tasks.append(asyncio.ensure_future(self.clock.sleep(min(waits))))
        try:
            await asyncio.wait([*tasks, also] if also is not None else tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            self._news.clear()
