"""A turn of a voice assistant: the model's events in, speech with cues out, in real time.

Three tasks and an output loop share one event loop: one reads events, one sends text to the speaker, one receives
speech; the output loop writes each frame when it is due. None waits for another, so a speaker that hangs delays no cue.
All due frames are written before an event is handled, so a cue starts at the next sample that is heard.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream.clock import Clock, WallClock
from stream.errors import SpeakerError, StreamError, StreamValueError
from stream.events import Event, Interrupted, StreamFailed, TextDelta, ToolResult
from stream.routing.rules import Limits
from stream.session.ending import end_tasks, failures
from stream.session.history import ChatHistory, heard_text
from stream.session.output import Output, Sink
from stream.session.record import Heard, TurnRecord
from stream.session.text_queue import TextQueue
from stream.session.track import SpeechTrack
from stream.session.watchdog import Watchdog
from stream.speech.speaker import SAMPLE_RATE
from stream.word_chunks import words

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine

    from cues import Mixer
    from stream.routing.router import CueRouter
    from stream.speech.speaker import Speaker

__all__ = ["Sink", "VoiceSession"]


_DEFAULT_LIMITS = Limits()


# More than 250 lines: the three tasks of a turn and their end, which share all of its state.
class VoiceSession:
    """Speaks a model's answers, with cues for its tool calls. The loop's thread.

    Parameters
    ----------
    mixer : Mixer
        At the speakers' sample rate, 24 kHz; another one raises a `StreamValueError`.
    router : CueRouter
    speaker : Speaker
        Started; the caller closes it.
    sink : Sink
        Takes the frames.
    clock : Clock or None
    frame_samples : int
    lead_ms : float
        How far the output runs ahead of stream time, milliseconds: at least the depth of the sink's buffer.
    history : ChatHistory or None
        Gets the heard text of each answer.
    on_event : callable or None
        Gets every transcript event (`stream.session.transcript`) at once; an exception in it is logged.
    limits : Limits
        Timeouts for the model, its tools and the speaker.

    Attributes
    ----------
    journal : TurnRecord
        The current turn, or the last one.
    history : ChatHistory
        The conversation as it was heard.
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
        history: ChatHistory | None = None,
        on_event: Callable[[Any], None] | None = None,
        limits: Limits = _DEFAULT_LIMITS,
    ) -> None:
        if mixer.sample_rate != SAMPLE_RATE:
            raise StreamValueError(f"the mixer has {mixer.sample_rate} Hz; it must have the speaker's {SAMPLE_RATE} Hz")
        self._mixer, self._router, self._speaker, self._sink = mixer, router, speaker, sink
        self._clock = clock or WallClock()
        self._frame_samples, self._lead_ms, self._limits = frame_samples, lead_ms, limits
        self.history = ChatHistory() if history is None else history
        self.journal = TurnRecord(mixer.sample_rate)
        self._transcript: Any = None
        if on_event is not None:
            from stream.session.transcript import Transcript

            self._transcript = Transcript(on_event)
            router.spans.subscribe(self._transcript.cue)
        self._tasks: list[asyncio.Task[None]] = []
        self._output: Output
        self._track: SpeechTrack
        self._heard_until: int | None

    async def run(
        self, events: AsyncIterable[Any], *, bytes_s: Callable[[], float | None] = lambda: None
    ) -> TurnRecord:
        """Speak one answer to its end, or to a barge-in; returns the record of the turn.

        A failure of the stream or the speaker is in the record's `failure`; the speech before it is kept. A
        cancellation is a barge-in whose fade goes to the sink at once. A second turn at once raises a `StreamError`.

        Parameters
        ----------
        events : async iterable of Event
            From `stream.read` or a model service; closed at the end. Data for a program (text of the channel `"json"`)
            is neither spoken nor recorded; read it from `events` first.
        bytes_s : callable
            Returns the stream time at which bytes were last read from the network, or `None`.
        """
        if self._tasks:
            raise StreamError("the session already speaks; await its turn, or make another session")
        self._begin()
        reading, is_over, errors = words(self._attend(events)), False, []
        self._tasks = [
            asyncio.create_task(self._listen(reading, bytes_s)),
            asyncio.create_task(self._send()),
            asyncio.create_task(self._speak()),
        ]
        try:
            await self._write_frames()
            is_over = True
        except asyncio.CancelledError:
            self._cut(30.0)
            self._output.put_out_the_rest()
            raise
        finally:
            try:
                errors += await end_tasks(self._tasks, reading, events)
            finally:  # also if the turn is cancelled again
                is_whole = is_over and not errors and not self.journal.interrupted and self.journal.failure is None
                self._end(is_whole=is_whole)
                if not is_whole:  # The next answer must not start with the rest of this one.
                    errors += await failures(self._text_queue.cancel())
        if errors:
            raise errors[0]
        return self.journal

    def barge_in(self, fade_ms: float = 30.0) -> None:
        """End the turn because the user speaks: its sound fades, and the rest is dropped.

        `run` returns when the fade is over.
        """
        if self.journal.interrupted or not self._tasks:
            return
        self._cut(fade_ms)
        if self._transcript is not None:
            self._transcript.interrupted()

    def _cut(self, fade_ms: float) -> None:
        """Fade the sound, drop the rest and cancel the tasks."""
        if self.journal.interrupted:
            return
        self._output.put_out_what_is_due()
        self.journal.interrupted = True
        self._heard_until = self._n_taken
        self._router.barge_in(fade_ms)
        self.journal.sounded = [cue for cue in self.journal.sounded if cue.onset_samples < self._mixer.position]
        self._n_dropped += self._output.pacer.interrupt(fade_ms)
        self._track.forget()
        for task in self._tasks:
            task.cancel()

    def now_s(self) -> float:
        """Stream seconds since the turn's first sample was due."""
        return self._clock.now() - self._start_s

    # Start and end of a turn.

    def _begin(self) -> None:
        self.journal = TurnRecord(self._mixer.sample_rate)
        self._track = SpeechTrack()
        self._text_queue = TextQueue(self._speaker)
        self._n_dropped = 0
        self._heard_until = None
        self._router.tell(after_words=self._after_words, on_played=self.journal.add_cue)
        self._router.limits = replace(self._limits, speech_s=math.inf)  # The watchdog knows what the speaker owes.
        self._router.begin_turn()
        self._mixer.resume()
        self._start_s = self._clock.now() - self._mixer.position / self._mixer.sample_rate
        self._watchdog = Watchdog(self._limits.speech_s, self._clock)
        self._speaker_error: SpeakerError | None = None
        self._output = Output(
            self._mixer,
            self._sink,
            now_s=self._clock.now,
            frame_samples=self._frame_samples,
            lead_ms=self._lead_ms,
            on_frame=self._note_frame,
        )

    def _end(self, *, is_whole: bool) -> None:
        self._tasks = []
        self._router.cancel()
        record, taken = self.journal, self._n_taken
        record.output_samples = self._mixer.position
        record.underruns = self._output.pacer.underruns
        if is_whole:
            record.heard_text = record.spoken_text
        else:
            until = taken if self._heard_until is None else self._heard_until
            n_words = self._track.n_words_heard(until)
            record.heard_text = heard_text(record.spoken_text, (heard.text for heard in record.heard), n_words)
        self.history.add("assistant", record.heard_text)
        if self._transcript is not None:
            self._transcript.done(record)

    @property
    def _n_taken(self) -> int:
        """Speech written to the sink, samples."""
        return self._track.n_pushed - self._n_dropped - self._output.pacer.queued_samples

    # The three tasks.

    async def _attend(self, events: AsyncIterable[Event]) -> AsyncIterator[Event]:
        """Pass on the model's events; each is a sign of life, also text that is not spoken or not yet a word."""
        try:
            async for event in events:
                self._router.alive()
                yield event
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()

    async def _listen(self, events: AsyncIterable[Event], bytes_s: Callable[[], float | None]) -> None:
        """Hand text to the speaker's queue and every event to the router."""
        try:
            async for event in events:
                # A tool's result does not come from the model's bytes.
                self._take(event, None if isinstance(event, ToolResult) else bytes_s())
            self._router.end_stream()
        finally:
            self._text_queue.finish()

    def _take(self, event: Event, arrived_s: float | None) -> None:
        self._output.put_out_what_is_due()
        arrived_s = None if arrived_s is None else arrived_s - self._start_s
        self.journal.add(event, arrived_s, self.now_s())
        self._router.handle(event)
        if isinstance(event, TextDelta):
            self.journal.spoken_text += event.text
            self._track.sent(event.text)
            self._watchdog.note()
            self._text_queue.say(event.text)
        else:
            self._text_queue.flush()
        if isinstance(event, StreamFailed):
            self.journal.failure = event.message
        elif isinstance(event, Interrupted):
            self.barge_in()
        if self._transcript is not None:
            self._transcript.event(event)

    async def _send(self) -> None:
        await self._with_speaker(self._text_queue.deliver())

    async def _speak(self) -> None:
        await self._with_speaker(self._receive())
        self._output.pacer.end()

    async def _with_speaker(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`; its failure ends the speech, because the speaker's other task could wait for ever."""
        task = asyncio.current_task()
        assert task is not None
        try:
            await work
        except SpeakerError as error:
            self._speaker_failed(error)
        except asyncio.CancelledError:
            if task.cancelling():
                raise
            self._speaker_failed(SpeakerError("the speaker has cancelled its work"))
        except Exception:
            self._end_speech()
            raise

    async def _receive(self) -> None:
        async for speech in self._speaker:
            self._watchdog.note()
            self._output.pacer.push(speech.samples)
            self._track.push(speech)
            if speech.phrase:
                self._output.pacer.end()

    def _speaker_failed(self, error: SpeakerError) -> None:
        self._speaker_error = error
        self.journal.failure = str(error)
        self._track.all_passed()
        self._end_speech()

    def _end_speech(self) -> None:
        for task in self._tasks[1:]:
            if not task.cancelling():
                task.cancel()

    # The output loop.

    async def _write_frames(self) -> None:
        while not self._is_over():
            self._output.put_out_what_is_due()
            if not self.journal.interrupted:
                self._watch()
            await self._clock.sleep(self._output.until_next_frame_s())

    def _is_over(self) -> bool:
        if not all(task.done() for task in self._tasks):
            return False
        if self._output.pacer.queued_samples:
            return False
        if not self.journal.interrupted:
            self._track.all_passed()
            if self._speaker_error is not None and self._router.phase != "done":
                self._take(StreamFailed(str(self._speaker_error), code="speech"), None)
            self._router.cancel()  # No outcome can come any more.
        return not self._mixer.active

    def _watch(self) -> None:
        """Tell the router of queued speech, resolve waiting callbacks, and apply the timeouts."""
        if queued := self._output.pacer.queued_samples:
            self._router.speech(self._mixer.position + queued)
            self._watchdog.note()
        elif self._watchdog.speech_has_ended and not self._track.awaits_speech:
            self._track.all_passed()
        listening, _, speaking = self._tasks
        if not listening.done() and (failed := self._router.overdue(is_open=True)):
            self._take(failed, None)
            listening.cancel()
        if not speaking.done() and self._track.awaits_speech and (error := self._watchdog.error()):
            self._speaker_failed(error)

    def _note_frame(self) -> None:
        """Record the words that started in the frame just written, with their output samples."""
        self._router.poll()
        taken = self._n_taken
        for at, text in self._track.started(taken):
            onset = self._mixer.position - self._frame_samples + max(at - (taken - self._frame_samples), 0)
            onset = min(onset, self._mixer.position - 1)
            self.journal.heard.append(Heard(text, onset))
            if self._transcript is not None:
                self._transcript.word(text, onset / self._mixer.sample_rate)
        self.journal.speech_samples = taken

    # The cues.

    def _after_words(self, then: Callable[[int], None]) -> None:
        """Call `then` with the output sample at which the words sent so far end, once that is known."""
        self._track.after_words(lambda at: then(self._mixer.position + max(at - self._n_taken, 0)))
