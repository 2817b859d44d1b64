"""Cues in kyutai's unmute: what its handler needs to mix them into what it emits.

Written for unmute 84aa28d, which `unmute.patch` changes. Its text-to-speech releases audio four frames (320 ms) ahead
of what is heard, and the handler's `emit` passes it on: that is where we mix. When nothing is spoken no frames flow, so
a cue clocks itself.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cues.adapters._pipeline_cues import PipelineCues
from cues.errors import CueTypeError, CueValueError
from cues.signal.fades import raised_cosine
from cues.signal.prediction import faded_continuation
from stream.clock import WallClock
from stream.errors import StreamError
from stream.events import StreamFailed, ToolCallEnd, ToolsLeftOut
from stream.reading import read
from stream.services.redaction import logged_arguments, logged_list, logged_name
from stream.word_chunks import words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from numpy.typing import NDArray
    from openai import AsyncOpenAI

    from cues import Cue
    from stream.clock import Clock
    from stream.events import Event, ServiceEvent
    from stream.readers.options import Tools
    from stream.routing.router import CueRouter
    from stream.routing.rules import CueRules

__all__ = ["PATCH", "ModelError", "UnmuteCues", "chat_events"]

PATCH = Path(__file__).with_name("unmute.patch")
"""What changes in unmute."""

logger = logging.getLogger(__name__)

# OpenRouter's answer to tools that a model does not take is 404, that of vLLM and Ollama 400.
_REFUSALS = (400, 404, 422)
_FRAME_S = 0.02
_LEAD_S = 0.08
_TTS_IS_QUIET_S = 0.16  # Two frames of the text-to-speech: after so long a cue waits for it no more.
_POLL_S = 0.1  # As FastRTC's `wait_for_item`, whose place `next_item` takes.
_TAIL_S = 0.04
_RETURN_S = 0.005
_FINISH_S = 2.0  # Longer than any cue.
_TO_LISTENER_S = 0.2  # The frontend's buffer (one frame of 80 ms, at most 80 ms more) and a network.


class ModelError(StreamError, RuntimeError):
    """The model's stream failed: its message, HTTP status and code, as in `event`."""

    def __init__(self, event: StreamFailed) -> None:
        super().__init__(f"{event.message} (status {event.status}, code {event.code})")
        self.event = event


async def chat_events(
    client: AsyncOpenAI, tools: Sequence[Mapping[str, Any]] | None = None, **request: Any
) -> AsyncGenerator[ServiceEvent, None]:
    """Ask for an answer and yield its events, with the text in whole words.

    A server that refuses the request because of its tools is asked again without them, after a `ToolsLeftOut`.

    Parameters
    ----------
    client : asks the server.
    tools : definitions in OpenAI's form, for a server that runs them.
    request : `model`, `messages` and what else `client.chat.completions.create` takes.

    Raises
    ------
    ModelError : after its `StreamFailed` was yielded, so that its cue has begun.
    """
    for offered in (tools, ()) if tools else ((),):
        is_first = True
        async with aclosing(_asked(client, offered, request)) as events:
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
    create: Any = client.chat.completions.create  # Its overloads know no server but OpenAI's own.
    chunks = create(**request, **({"tools": list(tools)} if tools else {}), stream=True)
    return cast("AsyncGenerator[Event, None]", words(read(chunks, tools=tools or None)))


class UnmuteCues:
    """The cues of one handler.

    Parameters
    ----------
    bank : cues by name; `None` takes the built-in ones.
    rules : what sounds for what.
    tools : the declared tools, as `stream.read` takes them; a call of any other sounds as an error. `None`: not known.
    sample_rate : of the handler's output, Hz.
    clock : `None` is the machine's.

    Attributes
    ----------
    router : decides on the cues; `router.muted = True` switches them off.
    """

    def __init__(
        self,
        *,
        bank: Mapping[str, Cue] | None = None,
        rules: CueRules | None = None,
        tools: Tools = None,
        sample_rate: int = 24000,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or WallClock()
        self._cues = PipelineCues(sample_rate=sample_rate, bank=bank, rules=rules, tools=tools, now_s=self._clock.now)
        self.router: CueRouter = self._cues.router
        self.router.spans.subscribe(lambda _: self._news.set())
        self._sample_rate = sample_rate
        self._news = asyncio.Event()
        self._heard_until_s = 0.0
        self._last_speech_s = -1.0
        self._past: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._cut = self._paused = False

    # For the task that generates the response.

    def begin_response(self) -> None:
        """Let a new response be heard, after an interruption too."""
        self.router.begin_turn()
        self._cues.mixer.resume()

    def handle(self, event: ServiceEvent) -> None:
        """Play what the rules say for an event of the model's stream, and log a call: its name, no argument's value."""
        self.router.handle(event)
        if isinstance(event, ToolCallEnd):
            level = logging.INFO if event.status == "ok" else logging.WARNING
            suffix = "" if event.status == "ok" else f", {event.status}"
            # Arguments may hold secrets: their keys and types alone are logged.
            name, arguments = logged_name(event.tool_name)[1:-1], logged_arguments(event.arguments_json)
            logger.log(level, "Tool call: %s(%s)%s", name, arguments, suffix)

    def end_response(self) -> None:
        """End the calls of a stream that is over: nobody is left who could tell how they went."""
        self.router.cancel()

    async def finish(self) -> None:
        """Wait until the cues that sound have been heard, 2 s at most: for a handler that is about to be closed."""
        give_up_s = self._clock.now() + _FINISH_S
        while self._cues.mixer.active and self._clock.now() < give_up_s:
            await self._clock.sleep(_FRAME_S)
        await self._clock.sleep(min(self._heard_until_s + _TO_LISTENER_S, give_up_s) - self._clock.now())

    def interrupt(self) -> None:
        """Barge-in, to be called first: what sounds fades, and nothing of the response comes after."""
        self.router.barge_in()
        self._cues.mixer.release()
        self._cut = True
        self._news.set()

    # For `emit`.

    async def next_item(self, queue: asyncio.Queue[Any]) -> Any:
        """What to emit next: an item of the handler's queue, audio with cues in it; or a cue; or `None` after 100 ms.

        Takes the place of `wait_for_item(self.output_queue)`.
        """
        give_up_s = self._clock.now() + _POLL_S
        while True:
            if self._cut:
                return self._end_of_speech()
            if not queue.empty():
                return self._with_cues(queue.get_nowait())
            now_s = self._clock.now()
            due_s = self._cue_due_s()
            if due_s is not None and due_s <= now_s + 1e-9:
                return self._emitted(self._pause())
            if now_s >= give_up_s - 1e-9:
                return None
            item = await self._wait(queue, (give_up_s if due_s is None else min(due_s, give_up_s)) - now_s)
            if item is not None:
                return self._with_cues(item)

    def _cue_due_s(self) -> float | None:
        """When a frame without speech is due: soon before the listener has heard all, if a cue sounds or waits."""
        if not self._cues.mixer.active:
            return None
        return max(self._heard_until_s - _LEAD_S, self._last_speech_s + _TTS_IS_QUIET_S)

    def _with_cues(self, item: Any) -> Any:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], np.ndarray)):
            return item
        sample_rate, audio = item
        if sample_rate != self._sample_rate:
            raise CueValueError(f"audio has {sample_rate} Hz; these cues were made for {self._sample_rate} Hz")
        if audio.dtype.kind != "f":
            raise CueTypeError(f"audio has dtype {audio.dtype}; it must be floating point")
        speech = np.ascontiguousarray(audio.reshape(-1), dtype=np.float32)
        if speech.any():
            self._last_speech_s = self._clock.now()
            self.router.speech(self._cues.mixer.position + len(speech))
            speech = self._after_pause(speech)
        self._past = speech
        return self._emitted(speech)

    def _emitted(self, speech: NDArray[np.float32]) -> tuple[int, NDArray[np.float32]]:
        self._heard_until_s = max(self._heard_until_s, self._clock.now()) + len(speech) / self._sample_rate
        mixed = self._cues.mixer.mix(speech)
        self.router.poll()
        return self._sample_rate, mixed

    def _pause(self) -> NDArray[np.float32]:
        """A frame for the time in which no speech comes.

        unmute's text-to-speech holds back what it has when a tool runs, in the middle of a word, too: what is left of
        it dies away in the first frame, and what comes after the pause fades in.
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
        """The end that interrupted speech did not get, because what was queued is gone."""
        self._cut = False
        n_samples = round(_TAIL_S * self._sample_rate)
        # Speech that ended long ago needs no end.
        is_recent = self._heard_until_s > self._clock.now()
        tail = faded_continuation(self._past, n_samples) if is_recent else np.zeros(n_samples, dtype=np.float32)
        self._past = np.zeros(0, dtype=np.float32)
        return self._emitted(tail)

    async def _wait(self, queue: asyncio.Queue[Any], longest_s: float) -> Any:
        """The next item of the queue; `None` after `longest_s`, or when a cue has something to say."""
        self._news.clear()
        getting = asyncio.ensure_future(queue.get())
        others = [asyncio.ensure_future(self._news.wait()), asyncio.ensure_future(self._clock.sleep(longest_s))]
        try:
            await asyncio.wait([getting, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (getting, *others):
                task.cancel()
        return getting.result() if getting.done() and not getting.cancelled() else None
