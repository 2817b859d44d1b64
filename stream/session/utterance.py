"""The speaker's side of a turn: text goes out, speech comes in, and a silence that is too long is a failure."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

import numpy as np

from cues import Pacer
from stream.clock import Clock
from stream.errors import SpeakerError
from stream.session.turn_record import TurnRecord
from stream.speech.speaker import SAMPLE_RATE, Speaker, Speech
from stream.word_boundaries import WORD

__all__ = ["Utterance"]

_SPEECH_END_S = 0.2  # A speaker that marks neither words nor phrases has finished after this silence.
_PAUSE_S = 0.5  # A voice that has nothing left to say waits so long for the rest of a phrase.
_SHORTEST_WORD_S = 0.15  # 400 words a minute
_WORD_S = 0.4  # 150 words a minute: how long a word lasts before a phrase has been spoken.
_SILENCE = 10.0 ** (-60.0 / 20.0)  # Below this level a voice is only breath; full scale ±1.0.


class SpeechTrack:
    """Positions of words, in samples of speech: cues and the silence between phrases do not count.

    `n_pushed` is the speech so far, samples. Of a speaker that `marks_phrases`, speech without a mark is not complete.
    """

    def __init__(self, *, marks_phrases: bool = False) -> None:
        self.n_pushed = 0
        self._marks_phrases = marks_phrases
        self._n_words_sent = 0
        self._last_word = ""
        self._n_words_started = 0
        self._n_words_complete = 0
        self._sound_end = self._word_start = 0
        self._marks_words = self._spoke_since_sent = False
        self._ends: deque[tuple[int, int]] = deque()  # (words spoken, sample of speech at which they end)
        self._words: deque[tuple[int, str]] = deque()
        self._phrases: list[tuple[int, int]] = []  # complete ones: (sample of speech after the last, number of words)
        self._callbacks: deque[tuple[int, Callable[[int], None]]] = deque()

    @property
    def awaits_speech(self) -> bool:
        """Whether text was sent whose speech is not complete, as far as can be known."""
        if self._marks_phrases or self._phrases or not self.n_pushed:
            return self._n_words_sent > self._n_words_complete
        return not self._spoke_since_sent

    @property
    def lacks_words(self) -> bool:
        """Whether words were sent that have not been spoken, as far as can be known."""
        if self._marks_words and not self._phrases:
            return self._n_words_started < self._n_words_sent or self._word_start > self._sound_end
        if not self.knows_words:  # nobody speaks so fast
            return self.n_pushed < _SHORTEST_WORD_S * SAMPLE_RATE * self._n_words_sent
        return self.awaits_speech or (self._marks_words and self._n_words_started < self._n_words_sent)

    @property
    def knows_words(self) -> bool:
        """Whether the speaker has told which words are spoken."""
        return self._marks_words or self._marks_phrases or bool(self._phrases)

    def sent(self, text: str, *, is_rest: bool = False) -> None:
        """Count the words sent to the speaker; `is_rest` if nothing separates the text from the last one."""
        last = self._last_word if is_rest else ""
        words = WORD.findall(last + text)
        self._n_words_sent += len(words) - bool(last)
        self._last_word = words[-1]
        self._spoke_since_sent = False

    def push(self, speech: Speech) -> None:
        """Record a piece of speech."""
        for word in speech.words:
            self._marks_words = True
            self._n_words_started += 1
            # A time that goes back is raised to the one before, so that words stay in order.
            start = max(self.n_pushed + word.start_samples, self._word_start)
            self._word_start = start
            self._words.append((start, word.text))
            if word.end_samples is not None:
                self._ends.append((self._n_words_started, self.n_pushed + word.end_samples))
        sounding = np.flatnonzero(np.abs(speech.samples) > _SILENCE)
        if len(sounding):
            self._sound_end = self.n_pushed + int(sounding[-1]) + 1
            self._spoke_since_sent = True
        self.n_pushed += len(speech.samples)
        if speech.phrase:
            start = self._phrases[-1][0] if self._phrases else 0
            self._phrases.append((self.n_pushed, len(WORD.findall(speech.phrase))))
            self._n_words_complete += self._phrases[-1][1]
            self._n_words_started = self._n_words_complete
            # A cue need not wait for the silence at the end of a phrase.
            self._ends.append((self._n_words_complete, max(self._sound_end, start)))
        self._call_back()

    def started(self, n_taken: int) -> list[tuple[int, str]]:
        """The words that start before sample `n_taken` of the speech and were not returned before."""
        found = []
        while self._words and self._words[0][0] < n_taken:
            found.append(self._words.popleft())
        return found

    def after_words(self, then: Callable[[int], None]) -> None:
        """Call `then` with the sample of speech at which the words sent so far end, once that is known."""
        self._callbacks.append((self._n_words_sent, then))
        self._call_back()

    def all_passed(self) -> None:
        """Answer all waiting callbacks: the speech has ended, and the speaker has marked no words."""
        while self._callbacks:
            self._callbacks.popleft()[1](self._sound_end)

    def n_words_heard(self, n_taken: int) -> int:
        """Number of words heard after `n_taken` samples, for speakers that mark phrases but not words.

        Of a phrase that was cut off, words are counted in proportion to its samples, rounded down. How long a phrase
        is that the speaker still makes is not known: its words last as long as those before it.
        """
        if self._marks_words:
            return 0
        heard = start = 0
        for end, n_words in self._phrases:
            part = min(max(n_taken - start, 0), end - start)
            heard += n_words if start + part == end else n_words * part // (end - start)
            start = end
        word = start / self._n_words_complete if self._n_words_complete else _WORD_S * SAMPLE_RATE
        rest = int(max(n_taken - start, 0) / word) if word else 0
        return heard + min(rest, max(self._n_words_sent - self._n_words_complete, 0))

    def forget(self) -> None:
        """Drop pending words and callbacks, at a barge-in."""
        self._words.clear()
        self._callbacks.clear()
        self._n_words_complete = self._n_words_sent

    def _call_back(self) -> None:
        while self._callbacks:
            n_words, then = self._callbacks[0]
            while self._ends and self._ends[0][0] < n_words:
                self._ends.popleft()
            if n_words == 0 or (n_words <= self._n_words_complete and not self._ends):
                at = self._sound_end
            elif self._ends and self._ends[0][1] <= self.n_pushed:
                at = self._ends[0][1]
            else:
                return
            self._callbacks.popleft()
            then(at)


class Utterance:
    """An answer on its way through a speaker, which takes text at its own pace; `say` never waits.

    `track` has the words of its speech, `tasks` send and receive once started, `error` is the speaker's failure.
    """

    def __init__(self, speaker: Speaker, pacer: Pacer, record: TurnRecord, *, clock: Clock, limit_s: float) -> None:
        self._speaker, self._pacer, self._record = speaker, pacer, record
        self._clock, self._limit_s = clock, limit_s
        self._queue: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()  # of calls of the speaker
        self._active_s = clock.now()  # when the speaker was last heard, or given text or its end
        self._is_finished = False
        self._is_flushed = True  # nothing was queued that the speaker may hold back
        self._said_s = 0.0
        self._n_dropped = 0
        self._n_words_heard: int | None = None  # once the speech was interrupted
        self.track = SpeechTrack(marks_phrases=getattr(speaker, "marks_phrases", False))
        self._is_broken = False
        self.tasks: list[asyncio.Task[None]] = []
        self.error: SpeakerError | None = None

    @property
    def lacks_words(self) -> bool:
        """Whether words are not spoken; if that is not known, those of a voice that fails, not of one that hangs."""
        return self.track.lacks_words or (self._is_broken and not self.track.knows_words)

    def start(self) -> None:
        """Start to send and to receive."""
        self.tasks = [asyncio.create_task(self._guarded(self._send)), asyncio.create_task(self._speak())]

    def say(self, text: str) -> None:
        """Queue text."""
        self._record.spoken_text += text
        self.track.sent(text, is_rest=not (self._is_flushed or text[0].isspace()))
        self._is_flushed = False
        self._active_s = self._said_s = self._clock.now()
        self._queue.put_nowait(partial(self._speaker.send, text))

    def flush(self) -> None:
        """Have the queued text spoken without waiting for more."""
        self._is_flushed = True
        self._queue.put_nowait(self._speaker.flush)

    def finish(self) -> None:
        """Mark the end of the answer."""
        self._active_s, self._is_finished = self._clock.now(), True
        self._queue.put_nowait(self._speaker.finish)
        self._queue.put_nowait(None)

    @property
    def n_taken(self) -> int:
        """Speech written to the sink, samples."""
        return self.track.n_pushed - self._n_dropped - self._pacer.queued_samples

    def interrupt(self, fade_ms: float) -> None:
        """Fade the speech and drop the rest."""
        self._n_words_heard = self.track.n_words_heard(self.n_taken)
        self._n_dropped += self._pacer.interrupt(fade_ms)
        self.track.forget()

    def n_words_heard(self) -> int:
        """Number of words heard, for speakers that mark phrases but not words."""
        heard = self._n_words_heard
        return self.track.n_words_heard(self.n_taken) if heard is None else heard

    async def cancel(self) -> None:
        """Have the speaker drop the answer, if it can; others start the next answer with the rest of this one."""
        if not hasattr(self._speaker, "cancel"):
            return
        deadline = asyncio.timeout(self._limit_s)
        try:
            async with deadline:
                await self._speaker.cancel()
        except TimeoutError:
            if not deadline.expired():
                raise
            self._record.failure = f"the speaker has not dropped its text within {self._limit_s:g} s"

    def resolve(self) -> None:
        """In a silence, flush text after a pause, and resolve the track's callbacks if no more speech is expected."""
        if self._pacer.queued_samples:
            self._active_s = self._clock.now()
            return
        if not self._is_flushed and self._clock.now() - self._said_s >= _PAUSE_S:
            self.flush()
        is_quiet = self._clock.now() - self._active_s > _SPEECH_END_S and not self.track.awaits_speech
        if is_quiet or self.error is not None:  # a voice that has failed speaks no more
            self.track.all_passed()

    def check(self) -> None:
        """Give up a speaker that has text, or only to end, and was silent for too long."""
        is_silent = self._clock.now() - self._active_s > self._limit_s
        has_work = self.track.awaits_speech or self._is_finished
        if is_silent and has_work and not all(task.done() for task in self.tasks):
            self._failed(SpeakerError(f"the speaker has sent nothing for {self._limit_s:g} s"))

    async def _send(self) -> None:
        while (call := await self._queue.get()) is not None:
            await call()

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
        """Await `work()`; its failure ends the speech, because the speaker's other task could wait forever."""
        task = asyncio.current_task()
        assert task is not None
        try:
            await work()
        except SpeakerError as error:
            self._is_broken = True
            self._failed(error)
        except asyncio.CancelledError:
            if task.cancelling():
                raise
            self._is_broken = True
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
