"""Cues in a FastRTC stream: a wrapper of your handler whose `emit` paces and mixes.

Tested with fastrtc 0.0.34, which queues what `emit` returns without a limit, and paces after its queue. So speech is
queued here, before the mixer, and the mixed audio runs 40 ms ahead of playback; up to 80 ms if the process is late.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from cues import Mixer
from cues.adapters._own_thread import OwnThread
from cues.adapters._paced import PacedCues, PacedOptions, PacedOutput
from cues.errors import CueTypeError, CueValueError
from cues.extras import require
from cues.signal.pcm import float_of_int16
from stream.errors import StreamValueError
from stream.events import StreamFailed
from stream.readers.options import kept
from stream.routing.router import CueRouter

FASTRTC = require("fastrtc")

from fastrtc import AsyncStreamHandler, CloseStream, ReplyOnPause, WebRTCError  # noqa: E402  (report a missing package first)
from fastrtc.utils import Context, current_context  # noqa: E402

__all__ = ["CuedHandler", "PacedOptions", "current_router", "with_cues"]

logger = logging.getLogger(__name__)

_PATIENCE_S = 0.1  # Longest `emit`, as in FastRTC's own `wait_for_item`.
_PHONE_RATE = 8000
_EMIT_FAILED = "the handler's emit failed"
_CLOSE_WITHIN_S = 2.0  # Longest that a `CloseStream` waits for cues after the last speech.
_LAST_FADE_S = 0.2  # The fade, and the lead at which its frames are due.
_ASK_AGAIN_S = 0.01  # Pause before the next `emit` of a handler that returned None.
_STEP: ContextVar[_Step] = ContextVar("cues_step")


@dataclass(slots=True)
class _Closing:
    """A `CloseStream` that is held back, the time until which it may be, and whether sound was faded out then."""

    item: CloseStream
    by_s: float | None = None
    is_cut: bool = False


class _Step:
    """A step of a reply function, which FastRTC cannot end: it drops the generator, and makes another one afterwards.

    A step that begins without a generator makes it; the handler's `state` becomes another one then. The generator is
    held weakly: what a reply starts, such as its connection to a model, keeps this context, and would keep the
    generator open with it.
    """

    def __init__(self, handler: CuedHandler) -> None:
        self._handler, inner = handler, handler.inner
        self._replies = isinstance(inner, ReplyOnPause)
        self._generator = _weak(inner.generator if self._replies else None)
        self._state: Any = inner.state if self._replies else None

    def router(self) -> CueRouter:
        """The connection's router until the user has spoken again."""
        inner = self._handler.inner
        if self._replies and not self._is_current(inner.generator, inner.state):
            return CueRouter({}, Mixer(self._handler.output_sample_rate))
        return self._handler.router

    def settle(self) -> None:
        """Note the generator that the step has made: one that the handler has later is another reply's."""
        if self._replies:
            self._is_current(self._handler.inner.generator, self._handler.inner.state)
            self._generator = self._generator or _weak(self)

    def _is_current(self, generator: Any, state: Any) -> bool:
        """Whether the handler still has the generator that this step began with, or made."""
        if self._generator is None and state is not self._state:
            self._generator = _weak(generator or self)  # no generator: dropped before this step asked
        if self._generator is None:  # the function is being called
            return generator is None
        return generator is not None and generator is self._generator()


def _weak(generator: Any) -> Callable[[], Any] | None:
    """A function that returns the generator as long as it lives. A weak reference, if its type allows one."""
    if generator is None:
        return None
    try:
        return weakref.ref(generator)
    except TypeError:
        return lambda: generator


def current_router() -> CueRouter:
    """The router of the connection for which a reply function runs, as `fastrtc.get_current_context()`.

    Ask for it each time: once the user has spoken again, what the old reply still does has a router without sound.

    Raises
    ------
    StreamValueError
        If no handler made by `with_cues` called the function.
    """
    try:
        return _STEP.get().router()
    except LookupError:
        raise StreamValueError("no handler made by with_cues called this function; give it to a ReplyOnPause") from None


class CuedHandler(PacedOutput, AsyncStreamHandler):  # type: ignore[misc]  # the package may be absent where types are checked
    """Your handler with cues in its output; made by `with_cues`.

    Your handler gets the router as its attribute `cues`: `self.cues.handle(event)` plays a cue at once, and
    `self.cues.muted = True` switches cues off. Its `clear_queue()` is a barge-in: sound fades out, the rest is dropped.

    `router` and `interrupt` may be used from any thread.
    """

    def __init__(self, inner: Any, options: PacedOptions) -> None:
        super().__init__(
            expected_layout=inner.expected_layout,
            output_sample_rate=inner.output_sample_rate,
            input_sample_rate=inner.input_sample_rate,
            fps=inner.fps,
        )
        self.inner = inner
        self._options = options
        self._paced = PacedCues(options, sample_rate=inner.output_sample_rate)
        self._frames: list[NDArray[np.float32]] = []
        self._least_frames = 1
        self._asked: asyncio.Future[Any] | None = None
        self._step: _Step  # of `_asked`
        self._ask_at_s = 0.0
        self._closing: _Closing | None = None
        self._replies = False
        self._ending: asyncio.Future[Any] | None = None
        self._context = Context(webrtc_id=None)
        self._emitting, self._receiving = OwnThread("fastrtc emit"), OwnThread("fastrtc receive")
        inner.cues = self.router
        inner._clear_queue = self.interrupt  # noqa: SLF001  (FastRTC sets it on this handler only)

    def interrupt(self) -> None:
        """Barge in, from any thread: sound fades out within 30 ms, and the rest of the answer is dropped."""
        loop = self._paced.loop
        if loop is None or loop.is_closed() or loop is _running_loop():
            self._interrupt()
        else:
            loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        if self._asked is not None and self._asked.done():
            self._cancel_asked()  # An item of the interrupted answer.
        self._paced.interrupt()
        self._replies = False
        self._note_question()

    # Called by FastRTC; all but `emit` delegates to the inner handler.

    async def emit(self) -> Any:
        """The next frame when it is due, another item of the inner handler, or `None` after 100 ms."""
        self._paced.loop = asyncio.get_running_loop()
        if current_context.get() is None:  # A WebSocket: FastRTC sets it in `emit` of sync handlers alone.
            current_context.set(self._context)
        try:
            return await self._next_item()
        except asyncio.CancelledError:  # A WebSocket's end: FastRTC calls no `shutdown` there.
            self._end_calls()
            raise

    async def _next_item(self) -> Any:
        give_up_s = self._paced.clock.now() + _PATIENCE_S
        while True:
            item = await self._from_inner()
            if item is not None:
                return item
            self._paced.push_held_back()  # a handler does not say where its speech ends
            self._frames += self._paced.frames()
            if len(self._frames) >= self._least_frames or (self._frames and not self._more_comes()):
                frames, self._frames = self._frames, []
                return self._paced.sample_rate, np.concatenate(frames)
            if self._closing is not None and self._may_close(self._closing):
                closing, self._closing = self._closing, None
                return closing.item
            left_s = give_up_s - self._paced.clock.now()
            if left_s <= 0.0:
                return None
            until_ask_s = self._ask_at_s - self._paced.clock.now()
            longest_s = min(left_s, max(until_ask_s, 0.0)) if self._asked is None else left_s
            hold_back_s = self._paced.hold_back_s()
            longest_s = longest_s if hold_back_s is None else min(longest_s, hold_back_s)
            await self._paced.wait(longest_s=longest_s, also=self._asked)

    async def receive(self, frame: tuple[int, NDArray[np.int16]]) -> None:
        """Pass the user's audio on."""
        await _result(self._receiving, self.inner.receive, frame)

    async def start_up(self) -> None:
        """Start the inner handler."""
        if (known := current_context.get()) is not None:  # `emit` may wait already, with this context.
            self._context.webrtc_id, self._context.websocket = known.webrtc_id, known.websocket
        with closing(OwnThread("fastrtc start_up")) as starting:
            await _result(starting, self.inner.start_up)

    def shutdown(self) -> Any:
        """Shut the inner handler down and cancel its `emit`."""
        self._end_calls()
        self._ask_at_s = inf  # FastRTC calls `emit` once more.
        self._paced.mixer.close()
        ending = self.inner.shutdown()
        if inspect.isawaitable(ending):  # FastRTC awaits it only if this method is `async`.
            ending = self._ending = asyncio.ensure_future(ending)
        return ending

    def _more_comes(self) -> bool:
        """Whether a frame follows in time to be sent with this one: the fade-out of speech that stalls does not."""
        return self._paced.pacer.queued_samples > 0 or self._paced.mixer.active

    def _may_close(self, closing: _Closing) -> bool:
        """Whether all is silent, or the time for it is over: FastRTC cuts off what it gets after a `CloseStream`."""
        pacer, now_s = self._paced.pacer, self._paced.clock.now()
        if self._frames or pacer.queued_samples:
            return False
        if closing.by_s is None:
            closing.by_s = now_s + _CLOSE_WITHIN_S
        if not self.router.has_waiting_cue:
            self.router.cancel()  # No answer comes that would end the waiting sound.
        if not (self._paced.mixer.active or pacer.fades_out):
            return True
        if now_s < closing.by_s:
            return False
        is_over, closing.is_cut = closing.is_cut, True
        if not is_over:
            closing.by_s = now_s + _LAST_FADE_S
            self._paced.interrupt()
        return is_over

    def _end_calls(self) -> None:
        self._cancel_asked()
        self._emitting.close()
        self._receiving.close()

    def _cancel_asked(self) -> None:
        asked, self._asked = self._asked, None
        if asked is None or asked.cancel() or asked.cancelled():
            return
        if error := asked.exception():
            logger.error(_EMIT_FAILED, exc_info=error)

    def copy(self) -> CuedHandler:
        """A handler for another connection."""
        return CuedHandler(self.inner.copy(), self._options)

    @property
    def needs_args(self) -> Any:
        """Whether the reply function gets FastRTC's `WebRTCData`: a `Stream` with a text box sets it."""
        return self.inner.needs_args

    @needs_args.setter
    def needs_args(self, value: bool) -> None:
        self.inner.needs_args = value

    @property
    def trigger_response(self) -> Any:
        """The inner handler's, if it has one: the text box calls it."""
        return self.inner.trigger_response

    def set_channel(self, channel: Any) -> None:
        """Set the data channel."""
        super().set_channel(channel)
        self.inner.set_channel(channel)

    def set_args(self, args: list[Any]) -> None:
        """Set the additional inputs."""
        super().set_args(args)
        self.inner.set_args(args)

    def reset(self) -> None:
        """Clear the additional inputs."""
        super().reset()
        self.inner.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        # FastRTC and its transports set these on this handler; the inner one uses them.
        if name in ("_loop", "phone_mode", "_phone_mode") and "inner" in self.__dict__:
            setattr(self.inner, name, value)
        super().__setattr__(name, value)
        if name == "phone_mode":
            # A WebSocket: FastRTC sends an item each 20 ms and more, and a telephone's at 8 kHz, each resampled alone.
            self._least_frames = 2
            self._paced.retune(_PHONE_RATE if value else self.output_sample_rate)

    # Output of the inner handler.

    async def _from_inner(self) -> Any:
        """An item of the inner handler that is not audio; audio is queued."""
        if self._asked is None and self._paced.clock.now() >= self._ask_at_s:
            self._note_question()
            self._step = _Step(self)
            _STEP.set(self._step)  # for the reply function, which runs in a copy of this context
            self._asked = asyncio.ensure_future(_result(self._emitting, self.inner.emit))
            await asyncio.sleep(0)
        if self._asked is None or not self._asked.done():
            return None
        asked, self._asked = self._asked, None
        self._step.settle()
        try:
            item = asked.result()
        except Exception as error:
            self._ask_at_s = self._paced.clock.now() + _ASK_AGAIN_S
            if self._closing is None:
                self.router.handle(StreamFailed(f"{type(error).__name__}: {error}", code="handler"))
            if isinstance(error, WebRTCError):
                raise
            logger.exception(_EMIT_FAILED)  # Raised, it would end the output of a WebSocket.
            return None
        finally:
            self._note_reply()
        if item is None or self._is_interrupted():
            self._ask_at_s = self._paced.clock.now() + _ASK_AGAIN_S
            return None
        if self._closing is not None:
            self._ask_at_s = self._paced.clock.now() + _ASK_AGAIN_S
        return self._take(item)

    def _is_interrupted(self) -> bool:
        """Whether a reply function gave its item while a `ReplyOnPause` closed it: the item is of the old answer."""
        return isinstance(self.inner, ReplyOnPause) and self.inner.generator is None

    def _note_question(self) -> None:
        """Begin a turn when a `ReplyOnPause` has heard the end of a question."""
        if not self._replies and isinstance(self.inner, ReplyOnPause) and self.inner.event.is_set():
            self._replies = True
            self.router.begin_turn()

    def _note_reply(self) -> None:
        """End the turn when the reply function of a `ReplyOnPause` has ended: no result comes any more."""
        if self._replies and not self.inner.event.is_set():
            self._replies = False
            self.router.end_stream()

    def _take(self, item: Any) -> Any:
        if isinstance(item, CloseStream):
            self._closing = self._closing or _Closing(item)
            self._paced.end()
            return None
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], tuple):
            self._take(item[0])
            return self._take(item[1])
        if isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[1], np.ndarray):
            if self._closing is None:  # FastRTC plays nothing that comes after it.
                self._paced.push(self._as_speech(*item))
            return None
        return item

    def _as_speech(self, sample_rate: int, audio: NDArray[Any], layout: str = "mono") -> NDArray[np.float32]:
        """Audio as mono float32 at the output's rate."""
        if layout != "mono" or (audio.ndim == 2 and min(audio.shape) > 1):
            raise CueValueError(f"audio has layout {layout!r} and shape {audio.shape}; cues are mixed into mono speech")
        samples = audio.reshape(-1)
        if samples.dtype == np.int16:
            samples = float_of_int16(samples)
        elif samples.dtype.kind != "f":
            raise CueTypeError(f"audio has dtype {audio.dtype}; it must be int16 or floating point")
        samples = samples.astype(np.float32, copy=False)
        return self._paced.at_own_rate(samples, sample_rate)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _result(thread: OwnThread, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a handler's method; sync methods run in `thread`."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await thread.run(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def with_cues(handler: Any, **options: Unpack[PacedOptions]) -> CuedHandler:
    """Your handler with cues, for `Stream(…)`.

    Parameters
    ----------
    handler : StreamHandler or AsyncStreamHandler
        It must emit mono audio, and gets the router as its attribute `cues`.
    **options
        `bank`, `rules`, `tools`, `limits`, `lead_ms` and `clock`, as in `PacedOptions`.
    """
    options["tools"] = kept(options.get("tools"))  # FastRTC copies the handler for each connection
    return CuedHandler(handler, options)
