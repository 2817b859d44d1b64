"""A turn of a voice assistant: the model's events in, speech with cues out, at the pace of real time.

Three tasks share one loop: text goes to the speaker as it comes, speech goes to the queue as it is made, and the pump
puts out a frame when it is due. Before an event is handled, all that is due is put out: so a cue that is played now
begins with the next sample that anyone will hear, never behind speech that is still queued.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stream.clock import Clock, WallClock
from stream.errors import SpeakerError
from stream.events import StreamFailed, TextDelta, ToolResult
from stream.journal import Heard, Journal
from stream.word_chunks import words

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable

    from numpy.typing import NDArray

    from cues import Mixer
    from stream.events import Event
    from stream.router import CueRouter
    from stream.speech.speaker import Speaker, Word

__all__ = ["Sink", "VoiceSession"]


class Sink(Protocol):
    """What takes the sound."""

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Take one frame: what is to be heard, and the speech alone in the same samples."""
        ...


class VoiceSession:
    """Speaks a model's answer, with cues for its tool calls.

    Parameters
    ----------
    mixer : mixes the cues into the speech; its sample rate is the session's.
    router : decides on the cues.
    speaker : turns text into speech, started; the caller closes it.
    sink : takes the frames.
    clock : stream time.
    frame_samples : length of a frame, samples.
    lead_ms : how far the output runs ahead of stream time, milliseconds: at least what the sink's buffer needs.
    """

    def __init__(
        self,
        *,
        mixer: Mixer,
        router: CueRouter,
        speaker: Speaker,
        sink: Sink,
        clock: Clock | None = None,
        frame_samples: int = 240,
        lead_ms: float = 10.0,
    ) -> None:
        self._mixer, self._router, self._speaker, self._sink = mixer, router, speaker, sink
        self._clock = clock or WallClock()
        self._frame_samples = frame_samples
        self._lead_samples = round(lead_ms * mixer.sample_rate / 1000.0)
        self._queue = SpeechQueue()
        self._start_s = 0.0
        self.journal = Journal(mixer.sample_rate)

    async def run(self, events: AsyncIterable[Event], *, bytes_s: Callable[[], float | None] = lambda: None) -> Journal:
        """Speak one answer to its end; returns the record of it.

        What went wrong in the stream or the speaker is in the journal's `failure`; what was spoken before is kept.

        Parameters
        ----------
        events : what `stream.read` gives.
        bytes_s : stream time at which the last bytes were read from the network.
        """
        self._start_s = self._clock.now() - self._mixer.position / self._mixer.sample_rate
        listening = asyncio.create_task(self._listen(words(events), bytes_s))
        speaking = asyncio.create_task(self._speak())
        try:
            while not (listening.done() and speaking.done() and not self._queue and not self._mixer.active):
                self._put_out_what_is_due()
                await self._clock.sleep(self._until_next_frame_s())
                if listening.done() and speaking.done():
                    self._router.cancel()
        finally:
            for task in (listening, speaking):
                task.cancel()
            await asyncio.gather(listening, speaking, return_exceptions=True)
        for task in (listening, speaking):
            task.result()
        self.journal.output_samples = self._mixer.position
        return self.journal

    def now_s(self) -> float:
        """Stream seconds since the turn's first sample was due."""
        return self._clock.now() - self._start_s

    async def _listen(self, events: AsyncIterable[Event], bytes_s: Callable[[], float | None]) -> None:
        """Hand text to the speaker and everything else to the router."""
        try:
            async for event in events:
                self._put_out_what_is_due()
                # A tool's result comes from whoever ran the tool, not from the model's bytes.
                arrived_s = None if isinstance(event, ToolResult) else bytes_s()
                arrived_s = None if arrived_s is None else arrived_s - self._start_s
                seen = self.journal.add(event, arrived_s, self.now_s())
                if (played := self._router.handle(event)) is not None:
                    self.journal.add_cue(seen, played)
                if isinstance(event, TextDelta) and event.channel != "json":  # that channel is for programs
                    self.journal.spoken_text += event.text
                    await self._speaker.send(event.text)
                else:
                    await self._speaker.flush()
                if isinstance(event, StreamFailed):
                    self.journal.failure = event.message
        finally:
            await self._speaker.finish()

    async def _speak(self) -> None:
        """Queue the speech as it is made."""
        try:
            async for speech in self._speaker:
                self._queue.push(speech.samples, speech.words)
        except SpeakerError as error:
            self.journal.failure = str(error)

    def _put_out_what_is_due(self) -> None:
        due = round(self.now_s() * self._mixer.sample_rate) + self._lead_samples
        while self._mixer.position + self._frame_samples <= due:
            position = self._mixer.position
            speech, begun = self._queue.take(self._frame_samples)
            self.journal.heard += [Heard(word.text, position + word.start_samples) for word in begun]
            self.journal.speech_samples = self._queue.n_taken
            self._sink.write(self._mixer.mix(speech), speech)

    def _until_next_frame_s(self) -> float:
        next_due_s: float = (self._mixer.position + self._frame_samples - self._lead_samples) / self._mixer.sample_rate
        return next_due_s - self.now_s()


class SpeechQueue:
    """Speech that waits to be put out, with the words in it."""

    __slots__ = ("_pieces", "_words", "n_pushed", "n_taken")

    def __init__(self) -> None:
        self._pieces: deque[NDArray[np.float32]] = deque()
        self._words: deque[tuple[int, str]] = deque()
        self.n_pushed = 0
        self.n_taken = 0

    def __len__(self) -> int:
        return self.n_pushed - self.n_taken

    def push(self, samples: NDArray[np.float32], words: tuple[Word, ...] = ()) -> None:
        """Queue a piece of speech of any length."""
        self._words.extend((self.n_pushed + word.start_samples, word.text) for word in words)
        self._pieces.append(samples)
        self.n_pushed += len(samples)

    def take(self, n_samples: int) -> tuple[NDArray[np.float32], list[Word]]:
        """A frame of `n_samples`, silent where no speech is there, and the words that begin in it."""
        from stream.speech.speaker import Word

        frame = np.zeros(n_samples, dtype=np.float32)
        filled = 0
        while self._pieces and filled < n_samples:
            piece = self._pieces.popleft()
            part = piece[: n_samples - filled]
            frame[filled : filled + len(part)] = part
            if len(part) < len(piece):
                self._pieces.appendleft(piece[len(part) :])
            filled += len(part)
        begun = []
        while self._words and self._words[0][0] < self.n_taken + filled:
            at, text = self._words.popleft()
            begun.append(Word(text, max(at - self.n_taken, 0)))
        self.n_taken += filled
        return frame, begun
