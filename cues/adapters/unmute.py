"""Cues in kyutai's unmute: a mixer for its handler's `emit`, and the model's events.

For unmute 84aa28d with `unmute.patch`. Its text-to-speech releases audio four frames (320 ms) ahead of playback, but
after a pause as fast as it is made. `next_item` keeps it to 360 ms always and mixes there, so a cue is at most as late.
Without speech there are no frames, so cues are paced by a clock.
"""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from cues.adapters._pipeline_cues import CueOptions, PipelineCues, check_options
from cues.errors import CueTypeError, CueValueError
from cues.signal.fades import raised_cosine
from cues.signal.prediction import faded_continuation
from stream.clock import WallClock
from stream.errors import StreamError
from stream.events import StreamFailed, TextDelta, ToolCallEnd, ToolResult, ToolsLeftOut
from stream.reading import read
from stream.routing.rules import Limits
from stream.services.redaction import logged_arguments, logged_list, logged_name
from stream.word_chunks import words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from numpy.typing import NDArray
    from openai import AsyncOpenAI

    from stream.clock import Clock
    from stream.events import Event, ServiceEvent
    from stream.routing.router import CueRouter

__all__ = ["PATCH", "CueOptions", "ModelError", "UnmuteCues", "chat_events"]

PATCH = Path(__file__).with_name("unmute.patch")
"""The patch for unmute."""

logger = logging.getLogger(__name__)

# Answers to tools that the model does not take: 404 from OpenRouter, 400 from vLLM and Ollama.
_REFUSALS = (400, 404, 422)
_FRAME_S = 0.02
_LEAD_S = 0.08
_AHEAD_S = 0.28  # Three and a half frames are unheard at most when the next is emitted: unmute's four, and its jitter.
_TTS_IS_QUIET_S = 0.16  # Two frames of the text-to-speech: longest wait of a cue for speech.
_POLL_S = 0.1  # As in FastRTC's `wait_for_item`, which `next_item` replaces.
_TAIL_S = 0.04
_RETURN_S = 0.005
_FINISH_S = 2.0  # Longer than any cue.
_TO_LISTENER_S = 0.2  # The frontend's buffer (80 to 160 ms) and a network.


_DEFAULT_LIMITS = Limits()


class ModelError(StreamError, RuntimeError):
    """A failure of the model's stream, with its `event`: message, HTTP status and code."""

    def __init__(self, event: StreamFailed) -> None:
        super().__init__(f"{event.message} (status {event.status}, code {event.code})")
        self.event = event


async def chat_events(
    client: AsyncOpenAI,
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    limits: Limits = _DEFAULT_LIMITS,
    **request: Any,
) -> AsyncGenerator[ServiceEvent, None]:
    """The events of one answer, with text in whole words.

    If the server refuses the tools, a `ToolsLeftOut` follows and the request is repeated without them.

    Parameters
    ----------
    client : AsyncOpenAI
    tools : Sequence[Mapping] or None
        Definitions in OpenAI's form, for a server that runs them.
    limits : Limits
        Timeouts: a stream that sends nothing for `model_s`, or for `tool_s` after a call, fails as `"stalled"`.
    **request
        `model`, `messages` and other parameters of `client.chat.completions.create`.

    Raises
    ------
    ModelError
        If the stream failed; its `StreamFailed` comes first, so that the cue has started.
    """
    for offered in (tools, ()) if tools else ((),):
        is_first = True
        async with aclosing(_asked(client, offered, request)) as answer, aclosing(_in_time(answer, limits)) as events:
            async for event in events:
                if is_first and offered and isinstance(event, StreamFailed) and event.status in _REFUSALS:
                    names = tuple(tool["function"]["name"] for tool in offered)
                    listed = logged_list(logged_name(name) for name in names)
                    logger.warning(
                        "%d tools not offered to %s (the server refused them): %s", len(names), request["model"], listed
                    )
                    yield ToolsLeftOut(names, "refused")
                    break
                is_first = False
                yield event
                if isinstance(event, StreamFailed):
                    raise ModelError(event)
            else:
                return


def _asked(
    client: AsyncOpenAI, tools: Sequence[Mapping[str, Any]], request: Mapping[str, Any]
) -> AsyncGenerator[Event, None]:
    create: Any = client.chat.completions.create  # Its overloads fit OpenAI's own server only.
    chunks = create(**request, **({"tools": list(tools)} if tools else {}), stream=True)
    return cast("AsyncGenerator[Event, None]", words(read(chunks, tools=tools or None)))


async def _in_time(events: AsyncGenerator[Event, None], limits: Limits) -> AsyncGenerator[Event, None]:
    """`events`, until they are late: then a `StreamFailed`."""
    limit_s = limits.model_s
    while True:
        try:
            async with asyncio.timeout(limit_s):
                event = await anext(events, None)
        except TimeoutError:
            yield StreamFailed(f"the model has sent nothing for {limit_s:g} s", code="stalled")
            return
        if event is None:
            return
        yield event
        if isinstance(event, ToolCallEnd | TextDelta | ToolResult):
            limit_s = limits.tool_s if isinstance(event, ToolCallEnd) else limits.model_s


class UnmuteCues:
    """The cues of one handler.

    Parameters
    ----------
    sample_rate : int
        Of the handler's output, Hz.
    clock : Clock or None
        `None` is the machine's clock.
    **options
        `bank`, `rules`, `tools` and `limits`, as in `CueOptions`; here the limits are those of the voice, because
        `chat_events` has those of the model.

    Attributes
    ----------
    router : CueRouter
        `router.muted = True` switches cues off.
    """

    def __init__(self, *, sample_rate: int = 24000, clock: Clock | None = None, **options: Unpack[CueOptions]) -> None:
        check_options(options, CueOptions)
        self._clock = clock or WallClock()
        limits = options.get("limits") or _DEFAULT_LIMITS
        options["limits"] = replace(limits, model_s=math.inf, tool_s=math.inf)
        self._cues = PipelineCues(sample_rate=sample_rate, now_s=self._clock.now, **options)
        self.router: CueRouter = self._cues.router
        self.router.spans.subscribe(lambda _: self._news.set())
        self._sample_rate = sample_rate
        self._news = asyncio.Event()
        self._heard_until_s = 0.0
        self._last_speech_s = -1.0
        self._past: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._cut = self._paused = False
        self._next: Any = None  # taken from the queue, and not due yet
        self._hurries = self._all_sent = False

    # For the task that generates the response.

    def begin_response(self) -> None:
        """Start a response, also after an interruption."""
        self._hurries = False
        self.router.begin_turn()
        self._cues.mixer.resume()

    def handle(self, event: ServiceEvent) -> None:
        """Play the cue of an event, and log calls: name, keys and types, no values."""
        self.router.handle(event)
        if isinstance(event, ToolCallEnd):
            level = logging.INFO if event.status == "ok" else logging.WARNING
            suffix = "" if event.status == "ok" else f", {event.status}"
            # Values may be secrets: log keys and types only.
            name, arguments = logged_name(event.tool_name)[1:-1], logged_arguments(event.arguments_json)
            logger.log(level, "Tool call: %s(%s)%s", name, arguments, suffix)

    def end_response(self) -> None:
        """End the pending calls: the stream is over, so no outcome will come. Its text is still awaited as speech."""
        self.router.end_stream()

    async def finish(self) -> None:
        """Wait until the cues have been heard, 2 s at most, before the handler closes."""
        give_up_s = self._clock.now() + _FINISH_S
        while self._cues.mixer.active and self._clock.now() < give_up_s:
            await self._clock.sleep(_FRAME_S)
        await self._clock.sleep(min(self._heard_until_s + _TO_LISTENER_S, give_up_s) - self._clock.now())
        # Words that wait for their sound are in the history already: the client gets them, too.
        self._hurries, self._all_sent = True, False
        self._news.set()
        await self._clock.sleep(_FRAME_S)
        while not self._all_sent and self._clock.now() < give_up_s:
            await self._clock.sleep(_FRAME_S)

    def interrupt(self) -> None:
        """Barge in: sound fades out, and the rest of the response is dropped. Call it first."""
        self.router.barge_in()
        self._cues.mixer.release()
        self._cut, self._next = True, None
        self._news.set()

    # For `emit`.

    async def next_item(self, queue: asyncio.Queue[Any]) -> Any:
        """The next item to emit: from the queue, with cues in audio; or cues alone; or `None` after 100 ms.

        Replaces `wait_for_item(self.output_queue)`.
        """
        give_up_s = self._clock.now() + _POLL_S
        while True:
            if self._cut:
                return self._end_of_speech()
            self._cues.poll()
            if self._next is None and not queue.empty():
                self._next = queue.get_nowait()
            self._all_sent = self._next is None  # unmute asks for an item after it has sent the last one
            now_s = self._clock.now()
            due_s = self._cue_due_s() if self._next is None else self._next_due_s()
            if due_s is not None and due_s <= now_s + 1e-9:
                item, self._next = self._next, None
                return self._emitted(self._pause()) if item is None else self._with_cues(item)
            if now_s >= give_up_s - 1e-9:
                return None
            await self._wait(queue, (give_up_s if due_s is None else min(due_s, give_up_s)) - now_s)

    def _next_due_s(self) -> float:
        """When the next item is due: audio when three frames are unheard, other items at once."""
        return self._heard_until_s - _AHEAD_S if _is_audio(self._next) and not self._hurries else 0.0

    def _cue_due_s(self) -> float | None:
        """When a frame without speech is due: 80 ms before playback ends, if a cue plays or waits."""
        if not self._cues.mixer.active:
            return None
        return max(self._heard_until_s - _LEAD_S, self._last_speech_s + _TTS_IS_QUIET_S)

    def _with_cues(self, item: Any) -> Any:
        if not _is_audio(item):
            return item
        sample_rate, audio = item
        if sample_rate != self._sample_rate:
            raise CueValueError(f"audio has {sample_rate} Hz; it must have {self._sample_rate} Hz")
        if audio.dtype.kind != "f":
            raise CueTypeError(f"audio has dtype {audio.dtype}; it must be floating point")
        speech = np.ascontiguousarray(audio.reshape(-1), dtype=np.float32)
        if speech.any():
            self._last_speech_s = self._clock.now()
            speech = self._after_pause(speech)
        self._past = speech
        return self._emitted(speech)

    def _emitted(self, speech: NDArray[np.float32]) -> tuple[int, NDArray[np.float32]]:
        self._heard_until_s = max(self._heard_until_s, self._clock.now()) + len(speech) / self._sample_rate
        mixed = self._cues.mixer.mix(speech)
        self.router.poll()
        return self._sample_rate, mixed

    def _pause(self) -> NDArray[np.float32]:
        """A frame for an underrun of speech.

        unmute's text-to-speech stops while a tool runs, even within a word: the speech fades out in the first frame and
        fades in after the pause.
        """
        past, self._past = self._past, np.zeros(0, dtype=np.float32)
        self._paused = True
        return faded_continuation(past, round(_FRAME_S * self._sample_rate))

    def _after_pause(self, speech: NDArray[np.float32]) -> NDArray[np.float32]:
        if not self._paused:
            return speech
        self._paused = False
        n_samples = min(round(_RETURN_S * self._sample_rate), len(speech))
        return np.concatenate([speech[:n_samples] * raised_cosine(n_samples), speech[n_samples:]]).astype(np.float32)

    def _end_of_speech(self) -> tuple[int, NDArray[np.float32]]:
        """A fade-out for interrupted speech, because its queue is gone."""
        self._cut = False
        n_samples = round(_TAIL_S * self._sample_rate)
        # Speech that has been heard to its end needs no fade-out.
        is_recent = self._heard_until_s > self._clock.now()
        tail = faded_continuation(self._past, n_samples) if is_recent else np.zeros(n_samples, dtype=np.float32)
        self._past = np.zeros(0, dtype=np.float32)
        return self._emitted(tail)

    async def _wait(self, queue: asyncio.Queue[Any], longest_s: float) -> None:
        """Wait for the queue's next item, for a cue that starts, or for `longest_s`."""
        self._news.clear()
        getting = None if self._next is not None else asyncio.ensure_future(queue.get())
        waits = [asyncio.ensure_future(self._news.wait()), asyncio.ensure_future(self._clock.sleep(longest_s))]
        waits += [] if getting is None else [getting]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
        if getting is not None and getting.done() and not getting.cancelled() and not self._cut:
            self._next = getting.result()


def _is_audio(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], np.ndarray)
