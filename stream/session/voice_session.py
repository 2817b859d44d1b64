"""A turn of a voice assistant: the model's events in, speech with cues out, at the pace of real time.

Three tasks and a pump share one loop: events are read, text goes to the speaker, speech comes from it, and the pump
puts out a frame when it is due. They wait for each other nowhere: a speaker that hangs holds no cue back. Before an
event is handled, all that is due is put out; so a cue that is played now begins with the next sample that is heard.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stream.clock import Clock, WallClock
from stream.errors import SpeakerError, StreamValueError
from stream.events import Event, StreamFailed, TextDelta, ToolResult
from stream.session.ending import end_tasks
from stream.session.history import ChatHistory, heard_text
from stream.session.limits import Limits
from stream.session.output import Output, Sink
from stream.session.record import Heard, Journal
from stream.session.text_queue import TextQueue
from stream.session.track import SpeechTrack
from stream.session.watchdog import Watchdog
from stream.speech.speaker import SAMPLE_RATE
from stream.word_chunks import words

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable

    from cues import Mixer
    from stream.routing.router import CueRouter
    from stream.speech.speaker import Speaker

__all__ = ["Sink", "VoiceSession"]


_DEFAULT_LIMITS = Limits()


class VoiceSession:
    """Speaks a model's answers, with cues for its tool calls.

    Parameters
    ----------
    mixer : mixes the cues into the speech; at the speakers' sample rate, 24 kHz.
    router : decides on the cues.
    speaker : turns text into speech, started; the caller closes it.
    sink : takes the frames.
    clock : stream time.
    frame_samples : length of a frame, samples.
    lead_ms : how far the output runs ahead of stream time, milliseconds: at least what the sink's buffer needs.
    history : gets what was heard of each answer.
    on_event : is told of every transcript event (`stream.session.transcript`), as it happens; what it raises is logged.
    limits : patience with the model, its tools and the speaker.

    Attributes
    ----------
    journal : the record of the turn under way, or of the last one.
    history : the conversation as it was heard.

    Raises
    ------
    StreamValueError : for a mixer of another sample rate.
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
        self.journal = Journal(mixer.sample_rate)
        self._transcript: Any = None
        if on_event is not None:
            from stream.session.transcript import Transcript

            self._transcript = Transcript(on_event)
            router.spans.subscribe(self._transcript.cue)
        self._tasks: list[asyncio.Task[None]] = []
        self._output: Output
        self._track: SpeechTrack
        self._heard_until: int | None

    async def run(self, events: AsyncIterable[Any], *, bytes_s: Callable[[], float | None] = lambda: None) -> Journal:
        """Speak one answer to its end, or to a barge-in; returns the record of it.

        What went wrong in the stream or the speaker is in the journal's `failure`; what was spoken before is kept. A
        cancellation is a barge-in whose fade goes to the sink at once.

        Parameters
        ----------
        events : what `stream.read` or a model service gives; it is closed at the end. Data for a program (text of the
            channel `"json"`) is neither spoken nor on record; a program takes it from `events` before they come here.
        bytes_s : stream time at which the last bytes were read from the network.
        """
        self._begin()
        reading, is_over = words(self._watchdog.attend(events)), False
        self._tasks = [
            asyncio.create_task(self._listen(reading, bytes_s)),
            asyncio.create_task(self._send()),
            asyncio.create_task(self._speak()),
        ]
        try:
            await self._pump()
            is_over = True
        except asyncio.CancelledError:
            self._cut(30.0)
            self._output.put_out_the_rest()
            raise
        finally:
            errors = await end_tasks(self._tasks, reading, events)
            is_whole = is_over and not errors and not self.journal.interrupted and self.journal.failure is None
            self._end(is_whole=is_whole)
            if not is_whole:
                await self._text_queue.cancel()  # The next answer does not begin with the rest of this one.
        if errors:
            raise errors[0]
        return self.journal

    def barge_in(self, fade_ms: float = 30.0) -> None:
        """End the turn because the user speaks: what sounds fades, and nothing of the turn comes after.

        To be called in the loop that `run` runs in, which returns when the fade is over.
        """
        if self.journal.interrupted or not self._tasks:
            return
        self._cut(fade_ms)
        if self._transcript is not None:
            self._transcript.interrupted()

    def _cut(self, fade_ms: float) -> None:
        """Let what sounds fade, drop the rest, and give the tasks up."""
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

    # A turn's beginning and end.

    def _begin(self) -> None:
        self.journal = Journal(self._mixer.sample_rate)
        self._track = SpeechTrack()
        self._text_queue = TextQueue(self._speaker)
        self._n_dropped = 0
        self._heard_until = None
        self._router.tell(after_words=self._after_words, on_played=self.journal.add_cue)
        self._router.begin_turn()
        self._mixer.resume()
        self._start_s = self._clock.now() - self._mixer.position / self._mixer.sample_rate
        self._watchdog = Watchdog(self._limits, self._clock)
        self._output = Output(
            self._mixer,
            self._sink,
            now_s=self._clock.now,
            frame_samples=self._frame_samples,
            lead_ms=self._lead_ms,
            on_frame=self._note_frame,
        )

    def _end(self, *, is_whole: bool) -> None:
        """Close the books of the turn."""
        self._tasks = []
        self._router.cancel()
        journal, taken = self.journal, self._n_taken
        journal.output_samples = self._mixer.position
        journal.underruns = self._output.pacer.underruns
        if is_whole:
            journal.heard_text = journal.spoken_text
        else:
            until = taken if self._heard_until is None else self._heard_until
            n_words = self._track.n_words_heard(until)
            journal.heard_text = heard_text(journal.spoken_text, (heard.text for heard in journal.heard), n_words)
        self.history.add("assistant", journal.heard_text)
        if self._transcript is not None:
            self._transcript.done(journal)

    @property
    def _n_taken(self) -> int:
        """Speech that has been put out, samples."""
        return self._track.n_pushed - self._n_dropped - self._output.pacer.queued_samples

    # The three tasks.

    async def _listen(self, events: AsyncIterable[Event], bytes_s: Callable[[], float | None]) -> None:
        """Hand text to the speaker's task and everything else to the router."""
        try:
            async for event in events:
                # A tool's result comes from whoever ran the tool, not from the model's bytes.
                self._take(event, None if isinstance(event, ToolResult) else bytes_s())
        finally:
            self._text_queue.finish()

    def _take(self, event: Event, arrived_s: float | None) -> None:
        self._output.put_out_what_is_due()
        self._watchdog.heard_of_model()
        arrived_s = None if arrived_s is None else arrived_s - self._start_s
        self.journal.add(event, arrived_s, self.now_s())
        self._router.handle(event)
        if isinstance(event, TextDelta):
            self.journal.spoken_text += event.text
            self._track.sent(event.text)
            self._watchdog.heard_of_speaker()
            self._text_queue.say(event.text)
        else:
            self._text_queue.flush()
        if isinstance(event, StreamFailed):
            self.journal.failure = event.message
        if self._transcript is not None:
            self._transcript.event(event)

    async def _send(self) -> None:
        """Hand text to the speaker, as fast as it takes it."""
        try:
            await self._text_queue.deliver()
        except SpeakerError as error:
            self._speaker_failed(error)

    async def _speak(self) -> None:
        """Queue the speech as it is made."""
        try:
            async for speech in self._speaker:
                self._watchdog.heard_of_speaker()
                self._output.pacer.push(speech.samples)
                self._track.push(speech)
                if speech.phrase:
                    self._output.pacer.end()
        except SpeakerError as error:
            self._speaker_failed(error)
        self._output.pacer.end()

    def _speaker_failed(self, error: Exception) -> None:
        self.journal.failure = str(error)
        self._track.all_passed()
        if len(self._tasks) == 3:
            self._tasks[1].cancel()
            self._tasks[2].cancel()

    # The pump.

    async def _pump(self) -> None:
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
            self._router.cancel()  # Nobody is left who could tell an outcome.
        return not self._mixer.active

    def _watch(self) -> None:
        """Keep the waiting sound out of the speech, answer who waits for its end, and lose patience."""
        if queued := self._output.pacer.queued_samples:
            self._router.speech(self._mixer.position + queued)
            self._watchdog.heard_of_speaker()
        elif self._watchdog.speech_dried_up and not self._track.awaits_speech:
            self._track.all_passed()
        listening, _, speaking = self._tasks
        if not listening.done() and (failed := self._watchdog.end_with_model(a_tool_runs=self._router.waits)):
            self._take(failed, None)
            listening.cancel()
        if not speaking.done() and self._track.awaits_speech and (error := self._watchdog.end_with_speaker()):
            self._speaker_failed(error)

    def _note_frame(self) -> None:
        """Note the words that began in the frame just put out, at the output samples where they did."""
        self._router.poll()
        taken = self._n_taken
        for at, text in self._track.begun(taken):
            onset = self._mixer.position - self._frame_samples + max(at - (taken - self._frame_samples), 0)
            onset = min(onset, self._mixer.position - 1)
            self.journal.heard.append(Heard(text, onset))
            if self._transcript is not None:
                self._transcript.word(text, onset / self._mixer.sample_rate)
        self.journal.speech_samples = taken

    # The cues.

    def _after_words(self, then: Callable[[int], None]) -> None:
        """Call `then` with the output sample after the last word sent so far, as soon as that is known."""
        self._track.after_words(lambda at: then(self._mixer.position + max(at - self._n_taken, 0)))
