"""LiveKit's audio output with cues: it paces speech, mixes cues into it and feeds the output that was there."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from livekit import rtc
from livekit.agents.voice import io
from numpy.typing import NDArray

from cues.adapters._paced import PacedCues, PacedOptions, PacedOutput
from cues.errors import CueValueError
from cues.signal.pcm import float_of_pcm16, pcm16_of_float

__all__ = ["CueOutput", "audio_frame"]

_FADE_MS = 30.0
_SEGMENT_PAUSE_S = 0.5  # Longer than a room's output holds; then the sink's segment ends, as an avatar expects.
_LONGEST_CAPTURE_S = 0.5  # Longer than a full room's output takes; then nobody listens.
_LONGEST_END_S = 1.0  # For a sink that takes no more frames.


@dataclass(slots=True)
class _Segment:
    """Speech between two flushes: its range among all speech samples, and its state."""

    start: int
    end: int
    flushed: bool = False
    interrupted: bool = False
    started: bool = False
    heard_at_s: float | None = None


# More than 20 methods: eight of them are those of every output of the package.
class CueOutput(PacedOutput, io.AudioOutput):  # type: ignore[misc]  # the package may be absent where types are checked
    """The new tail of a session's audio chain: paces speech, mixes cues into it and feeds `sink`, the old tail.

    Playback positions count speech only: cues and silence do not move the transcript.

    Parameters
    ----------
    sink : AudioOutput
        The output that takes the frames, such as the room's.
    **options
        `bank`, `rules`, `tools`, `limits`, `lead_ms` and `clock`, as in `PacedOptions`.
    """

    def __init__(self, sink: io.AudioOutput, **options: Unpack[PacedOptions]) -> None:
        rate = sink.sample_rate or 24000
        super().__init__(
            label="Cues", capabilities=io.AudioOutputCapabilities(pause=True), next_in_chain=None, sample_rate=rate
        )
        self.sink = sink
        self._rate = rate
        self._paced = PacedCues(options, sample_rate=rate)
        self._paced.router.play_while(self._takes_frames)
        self._paced.router.words_go_on(self._words_go_on, follow_text=False)  # it knows of them
        self._ahead = 2 * round(self._paced.lead_ms * rate / 1000.0)
        self._waiting: deque[NDArray[np.float32]] = deque()
        self._recent = np.zeros(0, dtype=np.float32)
        self._n_captured = self._n_fed = 0
        self._segments: deque[_Segment] = deque()
        self._paused = False
        self._task: asyncio.Task[None] | None = None
        self._stopping = self._is_gone = self._is_detached = self._in_capture = self._is_blocked = False
        self._last_frames: list[NDArray[np.float32]] = []
        self._sink_has_sound, self._silent_from_s = False, 0.0
        self.on_gone: Callable[[], None] = lambda: None
        self.awaits_words: Callable[[], bool] = lambda: False

    @property
    def sample_rate(self) -> int:
        """Hz; that of the sink."""
        return self._rate

    # Called by the framework.

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Queue speech (int16, mono) of the current segment."""
        await super().capture_frame(frame)
        self.start()
        if not self._segments or self._segments[-1].flushed:
            self._segments.append(_Segment(self._n_captured, self._n_captured))
        if not self._segments[-1].interrupted:
            self._queue(self._samples(frame))
            self._feed()

    def _queue(self, samples: NDArray[np.float32]) -> None:
        segment = self._segments[-1]
        if len(samples) and not segment.interrupted:
            self._waiting.append(samples)
            self._n_captured += len(samples)
            segment.end = self._n_captured

    def flush(self) -> None:
        """End the current segment."""
        super().flush()
        if self._segments:
            self._queue(self._paced.rest_at_own_rate())
            self._segments[-1].flushed = True
            self._feed()
            self._paced.wake()

    def clear_buffer(self) -> None:
        """Barge in: sound fades out within 30 ms, and the rest of the segment is dropped, cues included."""
        self._n_fed -= self._paced.interrupt(_FADE_MS)
        self._waiting.clear()
        self._n_captured = self._n_fed
        for segment in self._segments:
            segment.interrupted = True
            segment.start, segment.end = min(segment.start, self._n_fed), min(segment.end, self._n_fed)
        self._paused = False

    def pause(self) -> None:
        """Fade out, and keep the rest of the speech for `resume`.

        The sink is not paused, because it would cut off the fade.
        """
        if self._paused:
            return
        self._paused = True
        if n_back := self._paced.pause(_FADE_MS):
            self._waiting.appendleft(self._recent[-n_back:])
            self._n_fed -= n_back

    def resume(self) -> None:
        """Continue paused speech."""
        self._paused = False
        self._feed()

    def on_attached(self) -> None:
        """Attach the sink, and feed it."""
        self._is_detached = False
        self.sink.on_attached()
        self.start()

    def on_detached(self) -> None:
        """Fade out and detach the sink; `on_gone` is called afterwards. Until `on_attached`, no cue is played."""
        self._is_gone = self._is_detached = True
        self.stop()
        self.sink.on_detached()

    def start(self) -> None:
        """Start feeding the sink; the first frame does so, too."""
        self._stopping = self._is_gone = False
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(lambda _: self.on_gone() if self._is_gone else None)

    def stop(self) -> None:
        """Fade out, report open segments as interrupted and stop feeding the sink until `start`."""
        self._stopping = True
        self._drop_segments()
        self._last_frames += self._paced.last_frames(_FADE_MS)
        if self._in_capture and self._task is not None:
            self._task.cancel()  # A room without a listener takes no frame.
            self._last_frames.clear()
        self._paced.wake()

    def feed(self, sink: io.AudioOutput) -> None:
        """Feed another sink from now on, at its rate; calls under way end."""
        self.sink = sink
        self._rate = sink.sample_rate or self._rate
        if self._rate != self._paced.sample_rate:
            self._paced.retune(self._rate)
            self._ahead = 2 * round(self._paced.lead_ms * self._rate / 1000.0)
            self._waiting.clear()
            self._recent = np.zeros(0, dtype=np.float32)

    async def aclose(self) -> None:
        """Fade out and stop feeding the sink, for good."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_LONGEST_END_S)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._paced.mixer.close()

    # From the queue to the sink.

    async def _run(self) -> None:
        while not self._stopping:
            self._feed()
            for mixed in self._last_frames + self._paced.frames():
                await self._capture(mixed)
                self._feed()
            self._last_frames.clear()
            self._report()
            self._end_segment()
            await self._paced.wait(longest_s=self._until_next_s())
        while self._last_frames:
            await self._capture(self._last_frames.pop(0))
        self._end_segment(now=True)

    async def _capture(self, mixed: NDArray[np.float32]) -> None:
        self._in_capture = True
        # A timer, not a clock: after a tool that held up the event loop, its cue is in time.
        late = asyncio.get_running_loop().call_later(_LONGEST_CAPTURE_S, self._block)
        try:
            await self.sink.capture_frame(audio_frame(mixed, self._rate))
        finally:
            late.cancel()
            self._in_capture = self._is_blocked = False
        self._sink_has_sound, self._silent_from_s = True, self._paced.clock.now() + len(mixed) / self._rate

    def _takes_frames(self) -> bool:
        """Whether a cue of now is heard now."""
        return self._task is not None and not (self._stopping or self._is_detached or self._is_blocked)

    def _words_go_on(self) -> bool:
        """Whether words are to be heard, or more of them are being made."""
        if self.awaits_words():
            return True
        taken = self._n_fed - self._paced.pacer.queued_samples
        return not self._paused and any(
            segment.end > taken or not (segment.flushed or segment.interrupted) for segment in tuple(self._segments)
        )

    def _block(self) -> None:
        self._is_blocked = True

    def _end_segment(self, *, now: bool = False) -> None:
        """End the sink's segment after a pause: an avatar waits for its end."""
        if self._sink_has_sound and (now or self._paced.clock.now() >= self._silent_from_s + _SEGMENT_PAUSE_S):
            self._sink_has_sound = False
            self.sink.flush()

    def _feed(self) -> None:
        """Keep the pacer's queue short, so that `pause` can take back all of it."""
        pacer = self._paced.pacer
        while self._waiting and not self._paused and pacer.queued_samples < self._ahead:
            samples, n_samples = self._waiting.popleft(), self._longest_piece()
            if len(samples) > n_samples:
                self._waiting.appendleft(samples[n_samples:])
                samples = samples[:n_samples]
            self._paced.push(samples)
            self._n_fed += len(samples)
            self._recent = np.concatenate([self._recent, samples])[-2 * self._ahead :]
            self._end_if_flushed()
        self._end_if_flushed()
        if (n_waiting := self._n_captured - self._n_fed) and not self._paused:
            self._paced.router.speech(self._paced.mixer.position + pacer.queued_samples + n_waiting)

    def _longest_piece(self) -> int:
        """Most samples to give the pacer at once: up to the end of a segment, which the pacer must hear of."""
        ends = [segment.end for segment in self._segments if segment.end > self._n_fed]
        return min([self._ahead, *(end - self._n_fed for end in ends)])

    def _end_if_flushed(self) -> None:
        """End the utterance with the last sample of a flushed segment."""
        if any(segment.flushed and segment.end == self._n_fed for segment in self._segments):
            self._paced.pacer.end()

    def _report(self) -> None:
        """Report segments that have started or finished."""
        taken = self._n_fed - self._paced.pacer.queued_samples
        now_s = self._paced.clock.now()
        while self._segments:
            segment = self._segments[0]
            if not segment.started and taken > segment.start:
                segment.started = True
                self.on_playback_started(created_at=time.time())
            if not segment.flushed or taken < segment.end:
                return
            if segment.heard_at_s is None:
                lead_s = self._paced.pacer.lead_samples / self._rate
                segment.heard_at_s = now_s + (lead_s if segment.started else 0.0)
            if now_s < segment.heard_at_s:
                return
            self._segments.popleft()
            position_s = (segment.end - segment.start) / self._rate
            self.on_playback_finished(playback_position=position_s, interrupted=segment.interrupted)

    def _drop_segments(self) -> None:
        """Report all segments: the rest of them is not heard."""
        super().flush()
        self._waiting.clear()
        taken = self._n_captured = self._n_fed = self._n_fed - self._paced.pacer.queued_samples
        while self._segments:
            segment = self._segments.popleft()
            self.on_playback_finished(
                playback_position=max(0, min(segment.end, taken) - segment.start) / self._rate,
                interrupted=segment.interrupted or not segment.flushed or segment.end > taken,
            )

    def _until_next_s(self) -> float | None:
        """Seconds until a report or the end of the sink's segment is due."""
        due_s = [segment.heard_at_s for segment in self._segments if segment.heard_at_s is not None]
        if self._sink_has_sound:
            due_s.append(self._silent_from_s + _SEGMENT_PAUSE_S)
        return max(min(due_s) - self._paced.clock.now(), 0.0) if due_s else None

    def _samples(self, frame: rtc.AudioFrame) -> NDArray[np.float32]:
        if frame.num_channels != 1:
            raise CueValueError(f"a frame has {frame.num_channels} channels; cues are mixed into mono speech")
        return self._paced.at_own_rate(float_of_pcm16(bytes(frame.data)), frame.sample_rate)


def audio_frame(samples: NDArray[np.float32], sample_rate: int) -> rtc.AudioFrame:
    return rtc.AudioFrame(
        data=pcm16_of_float(samples), sample_rate=sample_rate, num_channels=1, samples_per_channel=len(samples)
    )
