"""Cues in a LiveKit agent: an audio output that paces, mixes and plays cues for the session's tool events.

Tested with livekit-agents 1.8.9. The framework sends speech to its output as fast as it is made. So speech is queued
here, before the mixer, and the room's output runs 40 ms (two frames) ahead of playback; up to 80 ms if the process is
late.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.adapters._paced import PacedDeck
from cues.adapters._packages import require
from cues.errors import CueTypeError, CueValueError
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.signal.resample import resample
from stream.events import ToolCallStart, ToolResult

LIVEKIT = require("livekit-agents", at_least="1.8.9", below="2", extra="livekit")

from livekit import rtc  # noqa: E402  (report a missing package first)
from livekit.agents.voice import io  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from numpy.typing import NDArray

    from cues import Cue, Pacer
    from stream.clock import Clock
    from stream.readers.options import Tools
    from stream.routing.router import CueRouter
    from stream.routing.rules import CueRules

__all__ = ["CueOutput", "attach", "cue_frames"]

_FRAME_MS = 20.0
_FADE_MS = 30.0


@dataclass(slots=True)
class _Segment:
    """Speech between two flushes: its range among all speech samples, and its state."""

    start: int
    end: int
    flushed: bool = False
    interrupted: bool = False
    started: bool = False
    heard_at_s: float | None = None


class CueOutput(io.AudioOutput):  # type: ignore[misc]  # the package may be absent where types are checked
    """The new tail of a session's audio chain: paces speech, mixes cues into it and feeds `sink`, the old tail.

    Playback positions count speech only: cues and silence do not move the transcript.

    Parameters
    ----------
    sink : AudioOutput
        The output that takes the frames, such as the room's.
    bank, rules, tools
        As in `stream.CueRouter`; `None` takes the built-in cues and the default rules.
    lead_ms : float
        Largest jitter buffer depth, milliseconds; it starts at 40 ms and grows by 20 ms when the process is late.
    clock : Clock or None
        `None` is the machine's clock.
    """

    def __init__(
        self,
        sink: io.AudioOutput,
        *,
        bank: Mapping[str, Cue] | None = None,
        rules: CueRules | None = None,
        tools: Tools = None,
        lead_ms: float = 80.0,
        clock: Clock | None = None,
    ) -> None:
        rate = sink.sample_rate or 24000
        super().__init__(
            label="Cues", capabilities=io.AudioOutputCapabilities(pause=True), next_in_chain=None, sample_rate=rate
        )
        self.sink = sink
        self._rate = rate
        self._paced = PacedDeck(
            sample_rate=rate, clock=clock, frame_ms=_FRAME_MS, lead_ms=lead_ms, bank=bank, rules=rules, tools=tools
        )
        self._ahead = 2 * round(lead_ms * rate / 1000.0)
        self._waiting: deque[NDArray[np.float32]] = deque()
        self._recent = np.zeros(0, dtype=np.float32)
        self._n_captured = self._n_fed = 0
        self._segments: deque[_Segment] = deque()
        self._paused = False
        self._task: asyncio.Task[None] | None = None

    @property
    def router(self) -> CueRouter:
        """The router, which chooses the cues; `router.muted = True` switches them off."""
        return self._paced.deck.router

    @property
    def pacer(self) -> Pacer:
        """The pacer; `lead_samples`, `late_calls` and `underruns` show whether the process is fast enough."""
        return self._paced.pacer

    # Called by the framework.

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Queue speech (int16, mono) of the current segment."""
        await super().capture_frame(frame)
        self.start()
        if not self._segments or self._segments[-1].flushed:
            self._segments.append(_Segment(self._n_captured, self._n_captured))
        segment = self._segments[-1]
        if segment.interrupted:
            return
        samples = self._samples(frame)
        self._waiting.append(samples)
        self._n_captured += len(samples)
        segment.end = self._n_captured
        self._feed()

    def flush(self) -> None:
        """End the current segment."""
        super().flush()
        if self._segments:
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
            segment.end = max(segment.start, min(segment.end, self._n_fed))
        self._paused = False

    def pause(self) -> None:
        """Fade out, and keep the rest of the speech for `resume`.

        The sink is not paused, because it would cut off the fade.
        """
        if self._paused:
            return
        self._paused = True
        n_back = self._paced.pause(_FADE_MS)
        if n_back:
            self._waiting.appendleft(self._recent[-n_back:])
            self._n_fed -= n_back

    def resume(self) -> None:
        """Continue paused speech."""
        self._paused = False
        self._feed()

    def on_attached(self) -> None:
        """Attach the sink."""
        self.sink.on_attached()

    def on_detached(self) -> None:
        """Detach the sink."""
        self.sink.on_detached()

    def start(self) -> None:
        """Start feeding the sink; the first frame does so, too."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """Stop feeding the sink."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._paced.deck.mixer.close()

    # From the queue to the sink.

    async def _run(self) -> None:
        while True:
            self._feed()
            for mixed in self._paced.frames():
                await self.sink.capture_frame(_audio_frame(mixed, self._rate))
                self._feed()
            self._report()
            await self._paced.wait(longest_s=self._until_report_s())

    def _feed(self) -> None:
        """Keep the pacer's queue short, so that `pause` can take back all of it."""
        pacer = self._paced.pacer
        while self._waiting and not self._paused and pacer.queued_samples < self._ahead:
            samples = self._waiting.popleft()
            if len(samples) > self._ahead:
                self._waiting.appendleft(samples[self._ahead :])
                samples = samples[: self._ahead]
            self._paced.push(samples)
            self._n_fed += len(samples)
            self._recent = np.concatenate([self._recent, samples])[-2 * self._ahead :]
        if not self._waiting and all(segment.flushed for segment in self._segments):
            pacer.end()

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

    def _until_report_s(self) -> float | None:
        heard_at_s = self._segments[0].heard_at_s if self._segments else None
        return None if heard_at_s is None else max(heard_at_s - self._paced.clock.now(), 0.0)

    def _samples(self, frame: rtc.AudioFrame) -> NDArray[np.float32]:
        if frame.num_channels != 1:
            raise CueValueError(f"a frame has {frame.num_channels} channels; cues are mixed into mono speech")
        if frame.sample_rate != self._rate:
            raise CueValueError(f"a frame has {frame.sample_rate} Hz; it must have {self._rate} Hz")
        return float_of_pcm16(bytes(frame.data))


def _audio_frame(samples: NDArray[np.float32], sample_rate: int) -> rtc.AudioFrame:
    return rtc.AudioFrame(
        data=pcm16_of_float(samples), sample_rate=sample_rate, num_channels=1, samples_per_channel=len(samples)
    )


def attach(session: Any, **options: Any) -> CueOutput:
    """Put a `CueOutput` between a started session's audio chain and the room, and play its tool events.

    Parameters
    ----------
    session : AgentSession
    **options
        Passed to `CueOutput`.

    Raises
    ------
    CueTypeError
        If the session has no audio output; call it after `await session.start(…)`.
    """
    tail = session.output.audio
    if tail is None:
        raise CueTypeError("the session has no audio output; attach cues after `await session.start(…)`")
    while tail.next_in_chain is not None:
        tail = tail.next_in_chain
    output = CueOutput(tail, **options)
    session.output.replace_audio_tail(output)
    session.on("tool_execution_updated", lambda event: _on_tool(output.router, event.update))
    session.on("user_state_changed", lambda event: output.router.hush() if event.new_state == "speaking" else None)
    output.start()
    return output


def _on_tool(router: CueRouter, update: Any) -> None:
    """Pass a tool event to the router."""
    match update.type:
        case "tool_call_started":
            call = update.function_call
            router.handle(ToolCallStart(call.name, call.call_id))
        case "tool_call_ended" if update.status == "cancelled":
            router.end_call(update.call_id)
        case "tool_call_ended":
            failed = update.status == "error"
            router.handle(ToolResult(update.call_id, "", is_error=failed, content=update.message or ""))


async def cue_frames(
    cue: Cue, *, sample_rate: int = 48000, frame_ms: float = _FRAME_MS, loop: bool = False
) -> AsyncIterator[rtc.AudioFrame]:
    """A cue as frames for `BackgroundAudioPlayer.play` (48 kHz), on its own track.

    Such a track cannot duck the speech or wait for a word; `attach` can.
    """
    samples = resample(cue.samples, cue.sample_rate, sample_rate)
    n_samples = round(frame_ms * sample_rate / 1000.0)
    at = 0
    while loop or at < len(samples):
        frame = np.zeros(n_samples, dtype=np.float32)
        filled = 0
        while filled < n_samples and (loop or at < len(samples)):
            at %= len(samples) if loop else len(samples) + 1
            part = samples[at : at + n_samples - filled]
            frame[filled : filled + len(part)] = part
            filled += len(part)
            at += len(part)
        yield _audio_frame(frame, sample_rate)
