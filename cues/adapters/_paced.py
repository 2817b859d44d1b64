"""Pacing and mixing by a clock, for pipelines with an unbounded queue after the point where we mix."""

import asyncio
from collections.abc import Callable
from math import ceil
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

import cues
from cues.adapters._pipeline_cues import CueOptions, PipelineCues, check_options
from cues.signal.resample import resample
from cues.signal.speech_resampler import SpeechResampler
from stream.clock import Clock, WallClock
from stream.routing.router import CueRouter

__all__ = ["FRAME_MS", "PacedCues", "PacedLine", "PacedOptions", "PacedOutput", "PacedWriter"]

FRAME_MS = 20.0
_NOTHING: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
_POLL_S = 0.5  # A router that waits without a sound has limits, too.
_LONGEST_CUE_S = 2.0  # Longest that `played` waits for cues after the last speech.


class PacedOptions(CueOptions, total=False):
    """Options of an adapter that paces its output by itself: those of `CueOptions`, and two more.

    Attributes
    ----------
    lead_ms : float
        Largest jitter buffer depth, milliseconds, by default 80; it starts at 40 ms and grows by 20 ms when the process
        is late.
    clock : Clock or None
        `None` is the machine's clock.
    """

    lead_ms: float
    clock: Clock | None


class PacedCues(PipelineCues):
    """A pacer, mixer and router: takes speech at any speed, returns frames with cues when they are due.

    With `is_constant`, the jitter buffer depth starts at `lead_ms`; `silence_lead_ms` is that of `cues.Pacer`. `router`
    may be called from any thread; all else belongs to the thread of the loop.
    """

    def __init__(
        self,
        options: PacedOptions,
        *,
        sample_rate: int,
        is_constant: bool = False,
        silence_lead_ms: float | None = None,
    ) -> None:
        check_options(options, PacedOptions)
        self.clock, self.lead_ms = options.get("clock") or WallClock(), options.get("lead_ms", 80.0)
        self._first_lead_ms, self._silence_lead_ms = self.lead_ms if is_constant else None, silence_lead_ms
        super().__init__(options, sample_rate=sample_rate, now_s=self.clock.now)
        self.pacer = self._new_pacer()
        self._fading = False
        self._resampler: SpeechResampler | None = None
        self.n_spoken = 0  # speech samples that were released
        self.loop: asyncio.AbstractEventLoop | None = None  # that waits
        self._news = asyncio.Event()
        self._is_ended = True  # the utterance
        self.router.words_go_on(self.words_go_on)
        self.router.spans.subscribe(lambda _: self.wake())

    def _new_pacer(self) -> cues.Pacer:
        return cues.Pacer(
            self.mixer,
            frame_samples=round(FRAME_MS * self.sample_rate / 1000.0),
            lead_ms=self.lead_ms,
            first_lead_ms=self._first_lead_ms,
            silence_lead_ms=self._silence_lead_ms,
            clock=self.clock.now,
        )

    def retune(self, sample_rate: int) -> None:
        """Continue at another sample rate: the router stays, queued speech is converted, calls under way end."""
        if sample_rate == self.sample_rate:
            return
        speech = np.append(self.pacer.take(), self.rest_at_own_rate()), self.sample_rate
        super().retune(sample_rate)
        self.pacer = self._new_pacer()
        self._fading = False
        self.push(resample(*speech, sample_rate))

    def at_own_rate(self, samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
        """A piece of speech at the output's rate; the pieces of a stream follow each other without a seam."""
        rates, rest = (sample_rate, self.sample_rate), _NOTHING
        if self._resampler is not None and (self._resampler.from_rate, self._resampler.to_rate) != rates:
            rest, self._resampler = self.rest_at_own_rate(), None
        if sample_rate != self.sample_rate:
            self._resampler = self._resampler or SpeechResampler(*rates)
            if self.pacer.is_dry and not self._resampler.holds_speech:
                self._resampler.restart()
            samples = self._resampler.feed(samples)
        return np.append(rest, samples) if len(rest) else samples

    def rest_at_own_rate(self) -> NDArray[np.float32]:
        """The rest of a stream of speech that has ended, as `at_own_rate` converts it."""
        if self._resampler is None:
            return _NOTHING
        rest = self._resampler.rest()
        self._resampler.restart()
        return rest

    def hold_back_s(self) -> float | None:
        """Seconds for which the samples that the resampler holds back are not needed; None if it holds none."""
        return self.pacer.dry_s() if self._resampler is not None and self._resampler.holds_speech else None

    def push_held_back(self) -> None:
        """Queue what the resampler holds back, if no more speech comes in time; the stream may go on without a seam."""
        if self._resampler is not None and self.hold_back_s() == 0.0:
            self.push(self._resampler.rest())

    def push(self, samples: NDArray[np.float32]) -> None:
        """Queue speech; after a barge-in it belongs to the next answer."""
        if not len(samples):
            return
        if self._fading:
            self._fading = False
            self.mixer.resume()  # Takes effect after the fade, which is all that is left of the old answer.
        self._is_ended = False
        self.pacer.push(samples)
        self._news.set()

    def end(self) -> None:
        """End the utterance: its last samples need no more to follow."""
        self.push(self.rest_at_own_rate())
        self._is_ended = True
        self.pacer.end()
        self.wake()

    def words_go_on(self) -> bool | None:
        """Whether words are queued; whether an utterance that has not ended goes on is not known."""
        return bool(self.pacer.queued_samples) or (False if self._is_ended else None)

    async def cues_end(self, is_over: Callable[[], bool]) -> None:
        """Return when no cue sounds that ends by itself, and none is about to; after 2 s at most."""
        give_up_s = self.clock.now() + _LONGEST_CUE_S
        while self._cue_sounds() and self.clock.now() < give_up_s and not is_over():
            await self.clock.sleep(FRAME_MS / 1000.0)

    def _cue_sounds(self) -> bool:
        # A cue that was dropped as it began leaves a span, but no sound.
        ends = (span.end_samples or 0 for span in self.router.spans if span.sample_rate == self.mixer.sample_rate)
        is_heard = self.router.has_waiting_cue or any(end > self.mixer.position for end in ends)
        return self.mixer.active and is_heard

    def interrupt(self, fade_ms: float = 30.0) -> int:
        """Barge in: fade out, drop the queue, and return the number of samples that were not spoken."""
        self.router.barge_in(fade_ms)
        if self._resampler is not None:
            self._resampler.restart()
        return self.pause(fade_ms)

    def pause(self, fade_ms: float = 30.0) -> int:
        """As `interrupt`, but outcomes of pending calls will still sound."""
        is_silent = self.pacer.is_silent
        self.router.hush(fade_ms)
        if is_silent:  # No frame is due: the fade would begin with the next answer.
            return 0
        dropped = self.pacer.interrupt(fade_ms)
        self._fading = True
        self._news.set()
        return dropped

    def frames(self) -> list[NDArray[np.float32]]:
        """The frames that are due now."""
        if self.pacer.queued_samples:
            self.router.speech(self.mixer.position + self.pacer.queued_samples)
        queued = self.pacer.queued_samples
        due = self.pacer.due()
        self.n_spoken += queued - self.pacer.queued_samples
        self.poll()
        return due

    def last_frames(self, fade_ms: float = 30.0) -> list[NDArray[np.float32]]:
        """Fade out and return the frames of the fade at once; nothing is queued afterwards."""
        is_silent = self.pacer.is_silent
        self.pause(fade_ms)
        return [] if is_silent else self.pacer.drain(ceil(fade_ms / FRAME_MS))

    def close(self) -> None:
        """End the calls under way and the mixer, and wake `wait`."""
        self.router.cancel()
        self.mixer.close()
        self.wake()

    def wake(self) -> None:
        """Wake `wait`, from any thread: there is something to play."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._news.set)

    async def wait(self, *, longest_s: float | None = None, also: asyncio.Future[Any] | None = None) -> None:
        """Wait until a frame is due, new sound arrives, `also` is done, or `longest_s` has passed; at most 0.5 s."""
        self.loop = asyncio.get_running_loop()
        waits = [s for s in (self.pacer.wait_s(), longest_s, _POLL_S) if s is not None]
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._news.wait())]
        tasks.append(asyncio.ensure_future(self.clock.sleep(min(waits))))
        try:
            await asyncio.wait([*tasks, also] if also is not None else tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            self._news.clear()


class PacedOutput:
    """The public attributes of every adapter that paces its output by itself."""

    _paced: PacedCues

    @property
    def router(self) -> CueRouter:
        """The router, for any thread; `router.muted = True` switches the cues off."""
        return self._paced.router

    @property
    def pacer(self) -> cues.Pacer:
        """The pacer; `lead_samples`, `late_calls` and `underruns` show whether the process is fast enough."""
        return self._paced.pacer


class PacedLine(PacedOutput):
    """The speech of a telephone line."""

    def push(self, samples: NDArray[np.float32], sample_rate: int = 24000) -> None:
        """Queue speech: float32, shape `(n_samples,)`, full scale ±1.0, any rate."""
        self._paced.push(self._paced.at_own_rate(samples, sample_rate))

    def end(self) -> None:
        """End the utterance: its last samples need no more to follow."""
        self._paced.end()


class PacedWriter(PacedOutput):
    """Speech in, frames out to a function."""

    def __init__(
        self, write: Callable[[NDArray[np.float32]], None], *, sample_rate: int, **options: Unpack[PacedOptions]
    ) -> None:
        self._write, self._is_over = write, False
        self._paced = PacedCues(options, sample_rate=sample_rate)

    async def run(self) -> None:
        """Write the frames that are due, until `close`; a failure or a cancellation closes, too."""
        try:
            while not self._is_over:
                for mixed in self._paced.frames():
                    self._write(mixed)
                await self._paced.wait()
        finally:
            self.close()

    async def played(self) -> None:
        """Return when all speech so far, and each cue that has begun or waits for a pause, was heard or dropped."""
        clock = self._paced.clock
        while self._paced.pacer.queued_samples and not self._is_over:
            await clock.sleep(0.02)
        await self._paced.cues_end(lambda: self._is_over)
        await clock.sleep(self._paced.lead_ms / 1000.0)

    def close(self) -> None:
        """Fade out and end `run`."""
        if not self._is_over:
            self._is_over = True
            try:
                for mixed in self._paced.last_frames():
                    self._write(mixed)
            finally:
                self._paced.close()
