"""A speaker that outlives its connections.

A connection stays open while the model thinks and its tools run, and servers close connections that are idle too long.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TypeGuard

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


def _keeps_phrases(speaker: Speaker | None) -> TypeGuard[PhraseSpeaker]:
    """Whether a speaker knows which phrases it has spoken; one that iterates in its own way does not."""
    return isinstance(speaker, PhraseSpeaker) and speaker.marks_phrases


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
        # Of a speaker that is no `PhraseSpeaker`: text without sound, with None where a phrase ends, and text before it
        # whose phrase is not complete.
        self._silent: list[str | None] = []
        self._begun = ""
        self._used_s = 0.0
        self._failures = 0
        self._finished = False
        self._keeper: asyncio.Task[None] | None = None
        speaker = make()
        self.name, self.marks_phrases = speaker.name, getattr(speaker, "marks_phrases", False)

    async def start(self) -> None:
        """Open the first speaker; raises `SpeakerError` if that fails."""
        await self._open()

    async def send(self, text: str) -> None:
        """Speak words, with a new speaker if the current one may have lost its connection."""
        self._finished = False
        is_idle = self._clock.now() - self._used_s > IDLE_S
        if is_idle and not self._unsaid() and not hasattr(self._inner, "keep_alive"):
            await self._let_go()
        async with self._sending:
            inner = await self._open()
            self._used_s = self._clock.now()
            if not _keeps_phrases(inner):
                self._silent.append(text)
            await inner.send(text)

    async def flush(self) -> None:
        """Speak the text held back."""
        async with self._sending:
            if self._inner is not None:
                if self._silent:
                    self._silent.append(None)
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
        self._silent.clear()
        await self._let_go()

    async def aclose(self) -> None:
        """Close the speaker."""
        await self.cancel()

    async def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech of one answer, across speakers."""
        seam, has_marks = Concealment(SAMPLE_RATE), False
        self._begun, self._failures = "", 0
        while self._inner is not None or not self._finished:
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
                        has_marks |= bool(speech.phrase)
                        self._note(speech.phrase)
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
            # What has begun is not repeated: its rest is lost, and a session would wait for it.
            lost, n_lost = self._begun.strip() if has_marks else "", 0
            if is_sounding and _keeps_phrases(inner):
                lost, n_lost = next(iter(inner.unspoken()[0]), ""), 2
            self._begun = ""
            if lost:
                yield Speech(np.zeros(0, dtype=np.float32), phrase=lost)
            await self._replace(n_lost)
        self._finished = False
        await self._let_go()

    def _note(self, phrase: str) -> None:
        """Note that all text so far sounds, up to this phrase completely."""
        self._begun += "".join(filter(None, self._silent))
        self._silent.clear()
        if phrase:  # it may have other spaces
            spoken = re.match(rf"(\s*\S){{{len(''.join(phrase.split()))}}}", self._begun)
            self._begun = self._begun[spoken.end() :] if spoken else ""

    def _unsaid(self) -> list[str | None]:
        """The text that another speaker would have to say; None where a phrase ends."""
        if not _keeps_phrases(self._inner):
            return self._silent.copy()
        phrases, held = self._inner.unspoken()
        return [part for phrase in phrases for part in (phrase, None)] + held

    async def _replace(self, n_lost: int) -> None:
        """Open another speaker for what is unsaid, without its first parts; raises after too many attempts."""
        async with self._sending:
            unsaid = self._unsaid()[n_lost:]
            self._silent.clear()
            await self._let_go()
            if not unsaid:
                return
            self._failures += 1
            if self._failures >= ATTEMPTS:
                text = "".join(part or " " for part in unsaid).strip()[:40]
                raise SpeakerError(f"{self.name} failed {self._failures} times with {text!r}")
            inner = await self._open()
            if not _keeps_phrases(inner):
                self._silent = unsaid.copy()
            for part in unsaid:
                await (inner.flush() if part is None else inner.send(part))
            if self._finished:
                await inner.finish()

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
