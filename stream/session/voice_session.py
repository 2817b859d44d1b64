"""A turn of a voice assistant: the model's events in, speech with cues out, in real time.

Three tasks and an output loop share one event loop: one reads events, two of the utterance send text and receive
speech, and the output loop writes each frame when it is due. None waits for another, so a speaker that hangs delays no
cue. All due frames are written before an event is handled, so a cue starts at the next sample that is heard.
"""

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

import cues
from cues.arrays import Samples
from stream.clock import Clock, WallClock
from stream.errors import StreamError, StreamValueError
from stream.events import Event, Interrupted, StreamFailed, TextDelta, ToolResult
from stream.routing.router import CueRouter
from stream.routing.rules import Limits
from stream.routing.spans import notify
from stream.session.history import ChatHistory, heard_text
from stream.session.transcript import News, transcript_of
from stream.session.turn_record import HeardWord, Seen, TurnRecord
from stream.session.utterance import Utterance
from stream.speech.speaker import SAMPLE_RATE, Speaker
from stream.word_chunks import words

__all__ = ["Sink", "VoiceSession"]

_DEFAULT_LIMITS = Limits()
_LONGEST_STALL_S = 60.0  # Of stream time; a process that was suspended for longer has nobody who listens to all of it.


class Sink(Protocol):
    """The destination of the sound."""

    def write(self, mixed: Samples, speech: Samples) -> None:
        """Take one frame: the mix, and the speech alone in the same samples."""
        ...


# More than 250 lines: the tasks of a turn, its output and its end share all of its state.
class VoiceSession:
    """Speaks a model's answers, with cues for its tool calls. The loop's thread.

    One session is a conversation: for each question, add it to `history` and await `run` with the model's answer; call
    `barge_in` when the user speaks, then await the turn that ends. Mixer, router and speaker stay the same.

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
        Gets every transcript event (`stream.session.transcript`), a dict, at once; an exception in it is logged.
    limits : Limits
        Timeouts for the model, its tools and the speaker.

    Attributes
    ----------
    journal : TurnRecord
        The current turn, or the last one.
    history : ChatHistory
        The conversation as it was heard.

    Examples
    --------
    >>> import asyncio, cues, stream
    >>> from stream.speech.voice_like import VoiceLikeSpeaker
    >>> class Sink:
    ...     def write(self, mixed, speech): ...  # to a device, a file, a socket
    >>> async def answer():  # in place of the response of a model's client
    ...     yield {"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}
    >>> async def converse():
    ...     mixer = cues.Mixer(sample_rate=24000)
    ...     router = stream.CueRouter(cues.load_bank(), mixer)
    ...     session = stream.VoiceSession(mixer=mixer, router=router, speaker=VoiceLikeSpeaker(), sink=Sink())
    ...     return await session.run(stream.read(answer()))  # in real time
    >>> asyncio.run(converse()).heard_text
    'Hi.'
    """

    def __init__(
        self,
        *,
        mixer: cues.Mixer,
        router: CueRouter,
        speaker: Speaker,
        sink: Sink,
        clock: Clock | None = None,
        frame_samples: int = 240,
        lead_ms: float = 10.0,
        history: ChatHistory | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        limits: Limits = _DEFAULT_LIMITS,
    ) -> None:
        if mixer.sample_rate != SAMPLE_RATE:
            raise StreamValueError(f"the mixer has {mixer.sample_rate} Hz; it must have the speaker's {SAMPLE_RATE} Hz")
        self._mixer, self._router, self._speaker, self._sink = mixer, router, speaker, sink
        self._clock = clock or WallClock()
        self._frame_samples, self._lead_ms, self._limits = frame_samples, lead_ms, limits
        self.history = ChatHistory() if history is None else history
        self.journal = TurnRecord(mixer.sample_rate)
        self._listeners = () if on_event is None else (on_event,)
        if on_event is not None:
            router.spans.subscribe(self._tell)
        self._tasks: list[asyncio.Task[None]] = []
        self._frame_s, self._start_s = 0.0, math.inf
        self._between = 0  # time between the turns so far, samples
        self._pacer = self._made_pacer()  # a mistake raises now; each turn has its own
        self._utterance: Utterance

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
        listening = asyncio.create_task(self._listen(reading, bytes_s))
        self._utterance.start()
        self._tasks = [listening, *self._utterance.tasks]
        try:
            await self._play()
            is_over = True
        except asyncio.CancelledError:
            self._cut(30.0)
            self._write_rest()
            raise
        finally:
            try:
                errors += await _ended(self._tasks, reading, events)
            finally:  # also if the turn is cancelled again
                is_whole = is_over and not errors and not self.journal.interrupted and self.journal.failure is None
                self._end(is_whole=is_whole)
                if not is_whole:  # The next answer must not start with the rest of this one.
                    errors += await _failures(self._utterance.cancel())
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
        self._tell(Interrupted())

    def _tell(self, news: News) -> None:
        for event in transcript_of(news):
            notify(self._listeners, event)

    def _cut(self, fade_ms: float) -> None:
        """Fade the sound, drop the rest and cancel the tasks."""
        if self.journal.interrupted:
            return
        self._write_due()
        self.journal.interrupted = True
        self._router.barge_in(fade_ms)
        self.journal.sounded = [cue for cue in self.journal.sounded if cue.onset_samples < self._mixer.position]
        self._utterance.interrupt(fade_ms)
        for task in self._tasks:
            task.cancel()

    # Start and end of a turn.

    def _begin(self) -> None:
        self.journal = TurnRecord(self._mixer.sample_rate)
        self._between += self._idle_samples()
        self._frame_s = self._clock.now()
        self._start_s = self._frame_s - self._mixer.position / self._mixer.sample_rate
        self._router.tell(after_words=self._after_words, on_played=self.journal.add_cue, now_samples=self._now_samples)
        self._router.limits = replace(self._limits, speech_s=math.inf)  # The utterance knows what the speaker owes.
        self._router.begin_turn()
        self._mixer.resume()
        self._pacer = self._made_pacer()
        self._utterance = Utterance(
            self._speaker, self._pacer, self.journal, clock=self._clock, limit_s=self._limits.speech_s
        )

    def _now_samples(self) -> int:
        """The router's time: output samples, and the time between turns, in which no frame is written."""
        return self._mixer.position + self._between + self._idle_samples()

    def _idle_samples(self) -> int:
        """How long the output has stood still since the last turn."""
        idle_s = 0.0 if self._tasks else max(self._clock.now() - self._due_s, 0.0)
        return round(idle_s * self._mixer.sample_rate)

    def _made_pacer(self) -> cues.Pacer:
        # It gets each frame's nominal time, in order: a late event loop writes the overdue frames at once.
        return cues.Pacer(
            self._mixer,
            frame_samples=self._frame_samples,
            lead_ms=self._lead_ms,
            first_lead_ms=self._lead_ms,  # The sink's buffer needs it; at nominal times the pacer is never late.
            continuous=True,  # Silence keeps the line open, and output samples are stream time.
            clock=lambda: self._frame_s,
        )

    def _end(self, *, is_whole: bool) -> None:
        self._tasks = []
        self._router.cancel()
        record = self.journal
        record.output_samples = self._mixer.position
        record.underruns = self._pacer.underruns
        if is_whole:
            record.heard_text = record.spoken_text
        else:
            words_heard = (heard.text for heard in record.heard)
            record.heard_text = heard_text(record.spoken_text, words_heard, self._utterance.n_words_heard())
        self.history.add("assistant", record.heard_text)
        self._tell(record)

    # The model's events.

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
        """Hand text to the utterance and every event to the router."""
        try:
            async for event in events:
                # A tool's result does not come from the model's bytes, nor does the failure of a request.
                self._take(event, None if isinstance(event, ToolResult | StreamFailed) else bytes_s())
            self._router.end_stream()
        finally:
            self._utterance.finish()

    def _take(self, event: Event, arrived_s: float | None) -> None:
        self._write_due()
        bytes_s = None if arrived_s is None else arrived_s - self._start_s
        self.journal.seen.append(Seen(event, bytes_s, self._clock.now() - self._start_s))
        self._router.handle(event)
        if isinstance(event, TextDelta):
            self._utterance.say(event.text)
        else:
            self._utterance.flush()
        if isinstance(event, Interrupted):
            self.barge_in()
            return
        if isinstance(event, StreamFailed):
            self.journal.failure = event.message
        self._tell(event)

    # The output loop.

    async def _play(self) -> None:
        while not self._is_over():
            self._write_due()
            if not self.journal.interrupted:
                self._watch()
            await self._clock.sleep(max(self._due_s - self._clock.now(), 0.0))

    @property
    def _due_s(self) -> float:
        """Nominal time of the next frame."""
        return self._start_s + self._mixer.position / self._mixer.sample_rate

    def _write_due(self) -> None:
        """Write all frames that are due, silence too; after a suspend or another jump of the clock go on from there."""
        now_s = self._clock.now()
        if now_s - self._due_s > _LONGEST_STALL_S:
            self._start_s += now_s - self._due_s
        while self._due_s <= now_s + 1e-9:
            self._write_frame()

    def _write_rest(self) -> None:
        """Write at once all that is queued or sounds: the fade of a cancelled turn, at most a second."""
        end = self._mixer.position + self._mixer.sample_rate  # A sound of the caller's own may have no end.
        while (self._pacer.queued_samples or self._sounds) and self._mixer.position < end:
            self._write_frame()

    def _write_frame(self) -> None:
        self._frame_s = self._due_s
        for speech in self._pacer.due_speech():
            self._sink.write(self._mixer.mix(speech), speech)
            self._note_words()

    def _is_over(self) -> bool:
        if not all(task.done() for task in self._tasks):
            return False
        if self._pacer.queued_samples or self._pacer.fades_out:
            return False
        if not self.journal.interrupted:
            error, self._utterance.error = self._utterance.error, None
            if error is not None and (self._router.phase != "done" or self._utterance.lacks_words):
                self._take(StreamFailed(str(error), code="speech"), None)
            self._utterance.track.all_passed()  # also for the cue of that failure
            self._router.cancel()  # No outcome can come any more.
        return not self._sounds

    @property
    def _sounds(self) -> bool:
        """Whether a cue sounds or is scheduled, or some of the last sound has not gone out."""
        return self._mixer.active or self._mixer.holds_sound

    def _watch(self) -> None:
        """Tell the router of queued speech, resolve waiting callbacks, flush after a pause, and apply the timeouts."""
        if queued := self._pacer.queued_samples:
            self._router.speech(self._mixer.position + queued)
        self._utterance.resolve()
        listening = self._tasks[0]
        if not listening.done() and (failed := self._router.overdue(is_open=True)):
            self._take(failed, None)
            listening.cancel()
        self._utterance.check()

    def _note_words(self) -> None:
        """Record the words that started in the frame just written, with their output samples."""
        self._router.poll()
        taken = self._utterance.n_taken
        for at, text in self._utterance.track.started(taken):
            onset = self._mixer.position - self._frame_samples + max(at - (taken - self._frame_samples), 0)
            onset = min(onset, self._mixer.position - 1)
            word = HeardWord(text, onset, onset / self._mixer.sample_rate)
            self.journal.heard.append(word)
            self._tell(word)

    def _after_words(self, then: Callable[[int], None]) -> None:
        """Call `then` with the output sample at which the words sent so far end, once that is known."""
        utterance = self._utterance
        utterance.track.after_words(lambda at: then(self._mixer.position + max(at - utterance.n_taken, 0)))


async def _ended(tasks: list[asyncio.Task[None]], *streams: Any) -> list[Exception]:
    """Cancel `tasks`, then close `streams`; returns the exceptions that they raised.

    Streams are closed here, too, because a task that never started has not closed its own.
    """
    for task in tasks:
        if not task.cancelling():  # It is already closing its connection.
            task.cancel()
    errors = await _failures(*tasks)
    for stream in streams:
        if hasattr(stream, "aclose"):
            errors += await _failures(stream.aclose())
    return errors


async def _failures(*work: Awaitable[Any]) -> list[Exception]:
    """The exceptions that `work` raised, when all of it is done."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]
