"""Cues in kyutai's unmute: a mixer for its handler's `emit`, and the model's events.

For unmute 84aa28d with `unmute.patch`. Its text-to-speech releases audio four frames (320 ms) ahead of playback.
`next_item` keeps it to 280 ms, and mixes there: a cue is at most as late.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from cues.adapters._paced import FRAME_MS, PacedCues, PacedOutput
from cues.adapters._pipeline_cues import CueOptions, check_options
from cues.errors import CueTypeError, CueValueError
from stream.errors import StreamError
from stream.events import StreamFailed, ToolCallEnd, ToolsLeftOut
from stream.reading import read
from stream.redaction import logged_arguments, logged_error, logged_list, logged_name
from stream.routing.rules import Limits
from stream.services.retrying import refused_part
from stream.word_chunks import words

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from stream.clock import Clock
    from stream.events import Event, ServiceEvent
    from stream.readers.options import Start

__all__ = ["PATCH", "CueOptions", "ModelError", "UnmuteCues", "chat_events", "with_ticks"]

PATCH = Path(__file__).with_name("unmute.patch")
"""The patch for unmute."""

logger = logging.getLogger(__name__)

_NO_TOOLS: set[tuple[str, str]] = set()  # Servers and models that refused tools, in this process.
_FRAME_S = FRAME_MS / 1000.0
_LEAD_MS = 280.0  # unmute's text-to-speech is four frames ahead, so that 40 ms are left here to fade out.
_SILENCE_LEAD_MS = 80.0
_POLL_S = 0.1  # As in FastRTC's `wait_for_item`, which `next_item` replaces.
_FINISH_S = 2.0  # Longer than any cue.
_TO_LISTENER_S = 0.2  # The frontend's buffer (80 to 160 ms) and a network.
_SPEECH_ENDS = "response.audio.done"
_WAIT_FOR_END_S = 0.1
_MOST_OF_END = 64  # Bytes: a line with `[DONE]`, blank lines, and a comment.


class ModelError(StreamError, RuntimeError):
    """A failure of the model's stream, with its `event`: message, HTTP status and code.

    The error's own text, which unmute logs, leaves out a call that the server quotes.
    """

    def __init__(self, event: StreamFailed) -> None:
        super().__init__(f"{logged_error(event.message)} (status {event.status}, code {event.code})")
        self.event = event


async def chat_events(
    client: AsyncOpenAI, tools: Sequence[Mapping[str, Any]] | None = None, *, start: Start = "text", **request: Any
) -> AsyncGenerator[ServiceEvent, None]:
    """The events of one answer, with text in whole words.

    If the server refuses the tools, a `ToolsLeftOut` follows and the request is repeated without them; in this process
    that model is not offered tools again. An answer that ends with `[DONE]` is complete, also without a finish reason.

    Parameters
    ----------
    client : AsyncOpenAI
    tools : Sequence[Mapping] or None
        Definitions in OpenAI's form, for a server that runs them.
    start : {"text", "reasoning"}
        `"reasoning"` if the model's prompt opens a block of thoughts and the server does not parse them, so that only
        the block's end comes; see `stream.OpenAIReader`.
    **request
        `model`, `messages` and other parameters of `client.chat.completions.create`.

    Raises
    ------
    ModelError
        If the stream failed; its `StreamFailed` comes first, so that the cue has started.
    """
    names = tuple(tool["function"]["name"] for tool in tools or ())
    place = str(client.base_url), str(request.get("model"))
    if names and place in _NO_TOOLS:
        tools = None
        yield ToolsLeftOut(names, "refused")
    for offered in (tools, None) if tools else (None,):
        is_first, answer = True, _Answer(client, {**request, **({"tools": list(offered)} if offered else {})})
        async with aclosing(
            cast("AsyncGenerator[Event, None]", words(read(answer, tools=offered or names or None, start=start)))
        ) as events:
            async for event in events:
                failed = isinstance(event, StreamFailed)
                if is_first and offered and isinstance(event, StreamFailed) and refused_part(event, ["tools"]):
                    listed = logged_list(logged_name(name) for name in names)
                    message = "%d tools not offered to %s (the server refused them): %s"
                    logger.warning(message, len(names), request["model"], listed)
                    yield ToolsLeftOut(names, "refused")
                    break
                if tools and not offered and not failed:
                    _NO_TOOLS.add(place)  # The tools were the reason.
                is_first = False
                if isinstance(event, StreamFailed) and event.code == "unfinished" and answer.is_done:
                    logger.info("%s ended its answer without a finish reason", request["model"])
                    return
                yield event
                if isinstance(event, StreamFailed):
                    raise ModelError(event)
            else:
                return


class _Answer:
    """The bytes of an answer; `is_done` if they end with a line `[DONE]`, which the client itself does not report."""

    def __init__(self, client: AsyncOpenAI, request: Mapping[str, Any]) -> None:
        # Its overloads fit OpenAI's own server only.
        self._create: Any = client.chat.completions.with_streaming_response.create
        self._request, self._end = request, b""

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async with self._create(**self._request, stream=True) as response:
            reads = response.iter_bytes()
            async for data in reads:
                self._end = (self._end + data)[-_MOST_OF_END:]
                yield data
                if self.is_done:
                    break
            with suppress(Exception):  # a connection whose answer was read to its end serves the next one, too
                async with asyncio.timeout(_WAIT_FOR_END_S):
                    async for _ in reads:
                        pass

    @property
    def is_done(self) -> bool:
        return any(line.removeprefix(b"data:").strip() == b"[DONE]" for line in self._end.splitlines())


async def with_ticks(websocket: Any, every_s: float) -> AsyncGenerator[Any, None]:
    """A WebSocket's messages, and `None` after each `every_s` without one; raises as its `recv` does.

    unmute's text-to-speech releases what is due only when a message comes: of a voice that pauses it would hold speech
    until the tool has run.
    """
    while True:
        message = None
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                message = await websocket.recv()  # Cancelled, it loses no message.
        yield message


class UnmuteCues(PacedOutput):
    """The cues of one handler.

    Parameters
    ----------
    sample_rate : int
        Of the handler's output, Hz.
    clock : Clock or None
        `None` is the machine's clock.
    **options
        `bank`, `rules`, `tools` and `limits`, as in `CueOptions`.
    """

    def __init__(self, *, sample_rate: int = 24000, clock: Clock | None = None, **options: Unpack[CueOptions]) -> None:
        check_options(options, CueOptions)
        self._limits = options.get("limits") or Limits()
        # `in_time` watches the model and its tools: their failure also ends the stream.
        options["limits"] = replace(self._limits, model_s=math.inf, tool_s=math.inf)
        self._paced = PacedCues(
            {**options, "lead_ms": _LEAD_MS, "clock": clock},
            sample_rate=sample_rate,
            is_constant=True,
            silence_lead_ms=_SILENCE_LEAD_MS,
        )
        self._n_speech = self._n_interrupts = 0
        self._others: deque[tuple[int, Any]] = deque()  # Items that are not audio, after so many samples of speech.
        self._is_cut = self._hurries = self._all_sent = False

    # For the task that generates the response.

    def begin_response(self) -> None:
        """Start a response, also after an interruption."""
        self._hurries = self._is_cut = False
        self.router.begin_turn()
        self._paced.mixer.resume()

    async def in_time(self, events: AsyncGenerator[ServiceEvent, None]) -> AsyncGenerator[ServiceEvent, None]:
        """The model's events, each after its cue has started; calls are logged with name, keys and types, no values.

        Raises
        ------
        ModelError
            If the model, or one of its tools, has sent nothing for longer than its limit; a `StreamFailed` comes first.
        """
        async with aclosing(events):
            while True:
                limit_s = self._limits.tool_s if self.router.waits else self._limits.model_s
                try:
                    async with asyncio.timeout(limit_s):
                        event = await anext(events, None)
                except TimeoutError:
                    event = StreamFailed(f"the model has sent nothing for {limit_s:g} s", code="stalled")
                if event is None:
                    return
                self.handle(event)
                yield event
                if isinstance(event, StreamFailed):
                    raise ModelError(event)

    def handle(self, event: ServiceEvent) -> None:
        """Play the cue of an event, and log calls: name, keys and types, no values."""
        self.router.handle(event)
        if isinstance(event, ToolCallEnd):
            level = logging.INFO if event.status == "ok" else logging.WARNING
            suffix = ("" if event.status == "ok" else f", {event.status}") + (", only told of" if event.told else "")
            # Values may be secrets: log keys and types only.
            name, arguments = logged_name(event.tool_name)[1:-1], logged_arguments(event.arguments_json)
            logger.log(level, "Tool call: %s(%s)%s", name, arguments, suffix)

    def end_response(self) -> None:
        """End the pending calls: the stream is over, so no outcome will come. Its text is still awaited as speech."""
        self.router.end_stream()

    async def finish(self) -> None:
        """Wait until the cues have been heard, 2 s at most, before the handler closes; what was awaited has failed."""
        clock, pacer = self._paced.clock, self.pacer
        if self.router.phase != "done":  # not of the model, which `in_time` reports: the voice has broken off
            self.handle(StreamFailed("the response was cut off"))
        give_up_s = clock.now() + _FINISH_S
        while self._paced.mixer.active and clock.now() < give_up_s:
            await clock.sleep(_FRAME_S)
        unheard_s = pacer.unheard_samples / self._paced.sample_rate
        await clock.sleep(min(unheard_s + _TO_LISTENER_S, give_up_s - clock.now()))
        # Words that wait for their sound are in the history already: the client gets them, too.
        self._hurries, self._all_sent = True, False
        self._paced.wake()
        await clock.sleep(_FRAME_S)
        while not self._all_sent and clock.now() < give_up_s:
            await clock.sleep(_FRAME_S)

    def interrupt(self) -> None:
        """Barge in: sound fades out, and the rest of the response is dropped. Call it first."""
        self._paced.interrupt()
        self._n_speech = self._paced.n_spoken + self.pacer.queued_samples
        self._others.clear()
        self._n_interrupts += 1
        self._is_cut = True

    # For `emit`.

    async def next_item(self, queue: asyncio.Queue[Any]) -> Any:
        """The next item to emit: from the queue, with cues in audio; or cues alone; or `None` after 100 ms.

        Replaces `wait_for_item(self.output_queue)`.
        """
        clock, n_interrupts = self._paced.clock, self._n_interrupts
        give_up_s = clock.now() + _POLL_S
        while True:
            while not queue.empty() and n_interrupts == self._n_interrupts:
                self._take(queue.get_nowait())
            waits_for_sound = not (self._hurries or self._is_cut)
            if self._others and (not waits_for_sound or self._others[0][0] <= self._paced.n_spoken):
                return self._others.popleft()[1]
            if frames := self._paced.frames():
                return self._paced.sample_rate, np.concatenate(frames)
            self._all_sent = not self._others  # unmute asks for an item after it has sent the last one
            left_s = give_up_s - clock.now()
            if left_s <= 1e-9 or n_interrupts != self._n_interrupts:  # by then unmute has another queue
                return None
            await self._wait(queue, left_s)

    async def _wait(self, queue: asyncio.Queue[Any], longest_s: float) -> None:
        """Wait for the queue's next item, for a frame that is due, or for `longest_s`."""
        getting, n_interrupts = asyncio.ensure_future(queue.get()), self._n_interrupts
        try:
            await self._paced.wait(longest_s=longest_s, also=getting)
        finally:
            getting.cancel()
        if getting.done() and not getting.cancelled() and n_interrupts == self._n_interrupts:
            self._take(getting.result())

    def _take(self, item: Any) -> None:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], np.ndarray)):
            self._others.append((self._n_speech, item))
            if getattr(item, "type", "") == _SPEECH_ENDS:
                self._paced.end()
            return
        sample_rate, audio = item
        if sample_rate != self._paced.sample_rate:
            raise CueValueError(f"audio has {sample_rate} Hz; it must have {self._paced.sample_rate} Hz")
        if audio.dtype.kind != "f":
            raise CueTypeError(f"audio has dtype {audio.dtype}; it must be floating point")
        # The interrupted task may write on: its speech is muted until the next response.
        (self.pacer if self._is_cut else self._paced).push(audio.reshape(-1))
        self._n_speech += audio.size
