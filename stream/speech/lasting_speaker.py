"""A speaker that outlives its connections.

A connection stays open while the model thinks and its tools run, and servers close connections that are idle too long.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import numpy as np

from cues.signal.concealment import Concealment
from stream.clock import Clock, WallClock
from stream.errors import SpeakerError
from stream.speech.speaker import SAMPLE_RATE, PhraseSpeaker, Speaker, Speech

__all__ = ["LastingSpeaker"]


KEEP_ALIVE_S, IDLE_S = 5.0, 10.0
ATTEMPTS = 2
"""How many speakers are tried for one text."""
_FADE_SAMPLES = SAMPLE_RATE // 100


class LastingSpeaker:
    """Opens a speaker when there is text, keeps it alive in pauses, and replaces it when its connection is lost.

    Phrases whose speech had not started when a speaker failed go to the next one; all text counts as started at the
    first sound of a speaker that is no `PhraseSpeaker`. Speech that broke off in mid-sound fades out over 10 ms.

    Parameters
    ----------
    make : callable
        Returns a new speaker, not started. Its `keep_alive`, if it has one, is called in pauses; without one it is
        replaced after a pause of 10 s.
    clock : Clock or None
    """

    def __init__(self, make: Callable[[], Speaker], *, clock: Clock | None = None) -> None:
        self._make, self._clock = make, clock or WallClock()
        self._inner: Speaker | None = None
        self._changed = asyncio.Event()  # a speaker was opened, or the answer has ended
        self._sending = asyncio.Lock()  # opening takes a while, and text goes on meanwhile
        self._unspoken: list[str] = []  # words
        self._n_spoken = 0  # words before them
        self._flushed: list[int] = []  # after how many words a phrase was ended
        self._used_s = 0.0
        self._failures = 0
        self._finished = False
        self._keeper: asyncio.Task[None] | None = None
        self.name = make().name

    async def start(self) -> None:
        """Open the first speaker; raises `SpeakerError` if that fails."""
        await self._open()

    async def send(self, text: str) -> None:
        """Speak words, with a new speaker if the current one may have lost its connection."""
        self._finished = False
        is_idle = self._clock.now() - self._used_s > IDLE_S
        if is_idle and not self._unspoken and not hasattr(self._inner, "keep_alive"):
            await self._let_go()
        async with self._sending:
            self._unspoken += re.findall(r"\s*\S+", text)
            inner = await self._open()
            self._used_s = self._clock.now()
            await inner.send(text)

    async def flush(self) -> None:
        """Speak the text held back."""
        if self._inner is not None and self._unspoken:
            self._flushed.append(self._n_spoken + len(self._unspoken))
            await self._inner.flush()

    async def finish(self) -> None:
        """Accept no more text of this answer."""
        async with self._sending:
            self._finished = True
            self._changed.set()
            if self._inner is not None:
                await self._inner.finish()

    async def cancel(self) -> None:
        """Drop the answer, at a barge-in."""
        self._finished, self._sending = False, asyncio.Lock()  # the next answer waits for no text of this one
        self._unspoken.clear()
        self._flushed.clear()
        await self._let_go()

    async def aclose(self) -> None:
        """Close the speaker."""
        await self.cancel()

    async def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech of one answer, across speakers."""
        seam = Concealment(SAMPLE_RATE)
        while self._unspoken or not self._finished:
            if (inner := self._inner) is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            is_done = is_sounding = False
            with contextlib.suppress(SpeakerError):
                async for speech in inner:
                    self._used_s = self._clock.now()
                    if len(speech.samples) or speech.phrase:
                        self._failures, is_sounding = 0, not speech.phrase
                        self._forget(speech.phrase if isinstance(inner, PhraseSpeaker) else "".join(self._unspoken))
                    samples = seam.fade_in(speech.samples)
                    if len(samples):
                        seam.released(samples)
                    yield replace(speech, samples=samples)
                is_done = self._finished
            if inner is not self._inner:
                continue
            if is_done:
                break
            if (end := seam.fade_out(_FADE_SAMPLES)) is not None:
                yield Speech(end)
            if is_sounding and isinstance(inner, PhraseSpeaker):  # What has started is not repeated: its rest is lost.
                ends = (
                    n for n, word in enumerate(self._unspoken, 1) if inner.completes(word, n) or self._is_flushed(n)
                )
                n_words = next(ends, len(self._unspoken))
                lost = "".join(self._unspoken[:n_words]).strip()
                self._drop(n_words)
                yield Speech(np.zeros(0, dtype=np.float32), phrase=lost)  # or a session would wait for it
            await self._replace()
        self._finished = False
        await self._let_go()

    def _forget(self, spoken: str) -> None:
        """Forget text that was spoken; a phrase has whole pieces, but may have one less space than they have."""
        n_left = len("".join(spoken.split()))
        while self._unspoken and n_left > 0:
            n_left -= len(self._unspoken[0].strip())
            self._drop(1)

    def _drop(self, n_words: int) -> None:
        del self._unspoken[:n_words]
        self._n_spoken += n_words
        self._flushed = [end for end in self._flushed if end > self._n_spoken]

    def _is_flushed(self, n: int) -> bool:
        """Whether a phrase was ended after the first `n` words that are not spoken."""
        return self._n_spoken + n in self._flushed

    async def _replace(self) -> None:
        """Open another speaker for the text that was not spoken; raises after too many attempts."""
        async with self._sending:
            await self._let_go()
            words = tuple(self._unspoken)
            if not words:
                return
            self._failures += 1
            if self._failures >= ATTEMPTS:
                raise SpeakerError(f"{self.name} failed {self._failures} times with {''.join(words).strip()[:40]!r}")
            inner = await self._open()
            for n, word in enumerate(words, 1):
                await inner.send(word)
                if self._is_flushed(n):
                    await inner.flush()
            await (inner.finish() if self._finished else inner.flush())

    async def _open(self) -> Speaker:
        if self._inner is None:
            inner = self._make()
            await inner.start()
            self._inner = inner
            self._used_s = self._clock.now()
            self._changed.set()
            self._keeper = asyncio.create_task(self._keep(inner))
        return self._inner

    async def _let_go(self) -> None:
        inner, self._inner = self._inner, None
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        if inner is not None:
            with contextlib.suppress(SpeakerError):
                await inner.finish()
            await inner.aclose()

    async def _keep(self, inner: Speaker) -> None:
        while hasattr(inner, "keep_alive"):
            await self._clock.sleep(KEEP_ALIVE_S)
            if self._clock.now() - self._used_s >= KEEP_ALIVE_S:
                with contextlib.suppress(SpeakerError):  # If it matters, its iteration raises, too.
                    await inner.keep_alive()
