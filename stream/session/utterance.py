"""The speaker's side of a turn: text goes out, speech comes in, and a silence that is too long is a failure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stream.errors import SpeakerError
from stream.session.track import SpeechTrack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cues import Pacer
    from stream.clock import Clock
    from stream.session.record import TurnRecord
    from stream.speech.speaker import Speaker

__all__ = ["Utterance"]

_FLUSH, _FINISH = object(), object()
_SPEECH_END_S = 0.2  # A speaker that marks neither words nor phrases has finished after this silence.


class Utterance:
    """An answer on its way through a speaker, which takes text at its own pace; `say` never waits.

    `track` has the words of its speech, `tasks` send and receive once started, `error` is the speaker's failure.
    """

    def __init__(self, speaker: Speaker, pacer: Pacer, record: TurnRecord, *, clock: Clock, limit_s: float) -> None:
        self._speaker, self._pacer, self._record = speaker, pacer, record
        self._clock, self._limit_s = clock, limit_s
        self._queue: asyncio.Queue[str | object] = asyncio.Queue()
        self._active_s = clock.now()
        self._n_dropped = 0
        self._n_heard: int | None = None  # samples, once the speech was interrupted
        self.track = SpeechTrack()
        self.tasks: list[asyncio.Task[None]] = []
        self.error: SpeakerError | None = None

    def start(self) -> None:
        """Start to send and to receive."""
        self.tasks = [asyncio.create_task(self._guarded(self._send)), asyncio.create_task(self._speak())]

    def say(self, text: str) -> None:
        """Queue text."""
        self._record.spoken_text += text
        self.track.sent(text)
        self._active_s = self._clock.now()
        self._queue.put_nowait(text)

    def flush(self) -> None:
        """Have the queued text spoken without waiting for more."""
        self._queue.put_nowait(_FLUSH)

    def finish(self) -> None:
        """Mark the end of the answer."""
        self._queue.put_nowait(_FINISH)

    @property
    def n_taken(self) -> int:
        """Speech written to the sink, samples."""
        return self.track.n_pushed - self._n_dropped - self._pacer.queued_samples

    def interrupt(self, fade_ms: float) -> None:
        """Fade the speech and drop the rest."""
        self._n_heard = self.n_taken
        self._n_dropped += self._pacer.interrupt(fade_ms)
        self.track.forget()

    def n_words_heard(self) -> int:
        """Number of words heard, for speakers that mark phrases but not words."""
        return self.track.n_words_heard(self.n_taken if self._n_heard is None else self._n_heard)

    async def cancel(self) -> None:
        """Have the speaker drop the answer, if it can; others start the next answer with the rest of this one."""
        if hasattr(self._speaker, "cancel"):
            await self._speaker.cancel()

    def resolve(self) -> None:
        """Resolve the track's callbacks once a silence shows that no more speech is expected."""
        if self._pacer.queued_samples:
            self._active_s = self._clock.now()
        elif self._silent_s > _SPEECH_END_S and not self.track.awaits_speech:
            self.track.all_passed()

    def check(self) -> None:
        """Give up a speaker that has text and was silent for too long."""
        if not self.tasks[1].done() and self.track.awaits_speech and self._silent_s > self._limit_s:
            self._failed(SpeakerError(f"the speaker has sent nothing for {self._limit_s:g} s"))

    @property
    def _silent_s(self) -> float:
        """Time since the speaker was last active, or was given text."""
        return self._clock.now() - self._active_s

    async def _send(self) -> None:
        while (item := await self._queue.get()) is not _FINISH:
            await (self._speaker.send(item) if isinstance(item, str) else self._speaker.flush())
        await self._speaker.finish()

    async def _speak(self) -> None:
        await self._guarded(self._receive)
        self._pacer.end()

    async def _receive(self) -> None:
        async for speech in self._speaker:
            self._active_s = self._clock.now()
            self._pacer.push(speech.samples)
            self.track.push(speech)
            if speech.phrase:
                self._pacer.end()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await `work()`; its failure ends the speech, because the speaker's other task could wait for ever."""
        task = asyncio.current_task()
        assert task is not None
        try:
            await work()
        except SpeakerError as error:
            self._failed(error)
        except asyncio.CancelledError:
            if task.cancelling():
                raise
            self._failed(SpeakerError("the speaker has cancelled its work"))
        except Exception:
            self._end()
            raise

    def _failed(self, error: SpeakerError) -> None:
        self.error, self._record.failure = error, str(error)
        self.track.all_passed()
        self._end()

    def _end(self) -> None:
        for task in self.tasks:
            if not task.cancelling():
                task.cancel()
