"""Cues in a FastRTC stream: a handler around yours, whose `emit` paces and mixes.

Tested with fastrtc 0.0.34. FastRTC empties `emit` as fast as it can into a queue without end, and paces behind it: a
cue that is mixed there comes after all speech that is queued. So the queue moves to the front of the mixer, and what is
mixed runs 40 ms (two frames) ahead of what is heard. A process that is late gets more, up to 80 ms.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.adapters._paced import PacedDeck
from cues.adapters._packages import require
from cues.errors import CueTypeError, CueValueError
from cues.signal.pcm import float_of_int16
from cues.signal.resample import Resampler

FASTRTC = require("fastrtc", at_least="0.0.34", below="0.1", extra="fastrtc")

from fastrtc import AsyncStreamHandler, CloseStream  # noqa: E402  (a missing package is told first)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from cues import Cue, Pacer
    from stream.clock import Clock
    from stream.readers.options import Tools
    from stream.routing.router import CueRouter
    from stream.routing.rules import CueRules

__all__ = ["CuedHandler", "with_cues"]

_FRAME_MS = 20.0
_PATIENCE_S = 0.1  # `emit` answers at least so often, as FastRTC's own `wait_for_item` does.
_ASK_AGAIN_S = 0.01  # A handler that has nothing is asked again after so long.


class CuedHandler(AsyncStreamHandler):  # type: ignore[misc]  # the package may be absent where types are checked
    """Your handler, with cues in what it emits. Made by `with_cues`.

    Your handler gets an attribute `cues`, the router: `self.cues.handle(event)` sounds at once, and
    `self.cues.muted = True` switches the cues off. Its `clear_queue()` is a barge-in: what sounds fades, the rest goes.
    """

    def __init__(self, inner: Any, options: dict[str, Any]) -> None:
        super().__init__(
            expected_layout=inner.expected_layout,
            output_sample_rate=inner.output_sample_rate,
            input_sample_rate=inner.input_sample_rate,
            fps=inner.fps,
        )
        self.inner = inner
        self._options = options
        self._paced = PacedDeck(sample_rate=inner.output_sample_rate, **options)
        self._frames: list[NDArray[np.float32]] = []
        self._asked: asyncio.Future[Any] | None = None
        self._ask_at_s = 0.0
        self._closing: CloseStream | None = None
        self._resampler: Resampler | None = None
        inner.cues = self._paced.deck.router
        inner._clear_queue = self.interrupt  # noqa: SLF001  (FastRTC sets it on the handler that it knows)

    @property
    def router(self) -> CueRouter:
        """What decides on the cues."""
        return self._paced.deck.router

    @property
    def pacer(self) -> Pacer:
        """What paces: its `lead_samples`, `late_calls` and `underruns` tell how well the process keeps up."""
        return self._paced.pacer

    def interrupt(self) -> None:
        """Barge-in: what sounds fades within 30 ms, and nothing of it comes after."""
        if self._asked is not None and self._asked.done():
            self._asked = None  # Given before, not taken yet: it belongs to the answer that was cut off.
        self._paced.interrupt()

    # What FastRTC calls; all but `emit` is the inner handler's.

    async def emit(self) -> Any:
        """The next frame when it is due, or whatever else the inner handler gives, or `None` after a while."""
        give_up_s = self._paced.clock.now() + _PATIENCE_S
        while True:
            item = await self._from_inner()
            if item is not None:
                return item
            self._frames += self._paced.frames()
            if self._frames:
                return self.output_sample_rate, self._frames.pop(0)
            if self._closing is not None and not self._paced.pacer.queued_samples:
                closing, self._closing = self._closing, None
                return closing
            left_s = give_up_s - self._paced.clock.now()
            if left_s <= 0.0:
                return None
            until_ask_s = self._ask_at_s - self._paced.clock.now()
            longest_s = min(left_s, max(until_ask_s, 0.0)) if self._asked is None else left_s
            await self._paced.wait(longest_s=longest_s, also=self._asked)

    async def receive(self, frame: tuple[int, NDArray[np.int16]]) -> None:
        """Hand over what the user says."""
        await _result(self.inner.receive, frame)

    async def start_up(self) -> None:
        """Start the inner handler."""
        await _result(self.inner.start_up)

    def shutdown(self) -> Any:
        """End the inner handler and what is asked of it."""
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None
        self._paced.deck.mixer.close()
        return self.inner.shutdown()

    def copy(self) -> CuedHandler:
        """A handler for another connection."""
        return CuedHandler(self.inner.copy(), self._options)

    def set_channel(self, channel: Any) -> None:
        """Take the data channel."""
        super().set_channel(channel)
        self.inner.set_channel(channel)

    def set_args(self, args: list[Any]) -> None:
        """Take the additional inputs."""
        super().set_args(args)
        self.inner.set_args(args)

    def reset(self) -> None:
        """Forget the additional inputs."""
        super().reset()
        self.inner.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        # FastRTC and its transports set these on the handler that they know; the inner one uses them.
        if name in ("_loop", "phone_mode", "_phone_mode") and "inner" in self.__dict__:
            setattr(self.inner, name, value)
        super().__setattr__(name, value)

    # The inner handler's output.

    async def _from_inner(self) -> Any:
        """What the inner handler has given, if that is not audio; audio is queued."""
        if self._asked is None and self._paced.clock.now() >= self._ask_at_s:
            self._asked = asyncio.ensure_future(_result(self.inner.emit))
            await asyncio.sleep(0)
        if self._asked is None or not self._asked.done():
            return None
        asked, self._asked = self._asked, None
        item = asked.result()
        if item is None:
            self._ask_at_s = self._paced.clock.now() + _ASK_AGAIN_S
            return None
        return self._take(item)

    def _take(self, item: Any) -> Any:
        if isinstance(item, CloseStream):
            self._closing = item
            return None
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], tuple):
            self._take(item[0])
            return self._take(item[1])
        if isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[1], np.ndarray):
            self._paced.push(self._as_speech(*item))
            return None
        return item

    def _as_speech(self, sample_rate: int, audio: NDArray[Any], layout: str = "mono") -> NDArray[np.float32]:
        """Mono float32 at the output's rate."""
        if layout != "mono" or (audio.ndim == 2 and min(audio.shape) > 1):
            raise CueValueError(f"audio has layout {layout!r} and shape {audio.shape}; cues are mixed into mono speech")
        samples = audio.reshape(-1)
        if samples.dtype == np.int16:
            samples = float_of_int16(samples)
        elif samples.dtype.kind != "f":
            raise CueTypeError(f"audio has dtype {audio.dtype}; it must be int16 or floating point")
        samples = samples.astype(np.float32, copy=False)
        return samples if sample_rate == self.output_sample_rate else self._resampled(samples, sample_rate)

    def _resampled(self, samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
        if self._resampler is None or sample_rate != self._resampler.from_rate:
            self._resampler = Resampler(sample_rate, self.output_sample_rate)
        return self._resampler.feed(samples)


async def _result(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a handler's method returns: asynchronous ones are awaited, others run in a thread, as FastRTC does."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await asyncio.to_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def with_cues(
    handler: Any,
    *,
    bank: Mapping[str, Cue] | None = None,
    rules: CueRules | None = None,
    tools: Tools = None,
    lead_ms: float = 80.0,
    clock: Clock | None = None,
) -> CuedHandler:
    """A handler for `Stream(…)` that does what `handler` does, with cues.

    Parameters
    ----------
    handler : a `StreamHandler` or `AsyncStreamHandler` that emits mono audio; it gets an attribute `cues`, the router.
    bank : cues by name; `None` takes the built-in ones.
    rules : what sounds for what.
    tools : the declared tools, as `stream.read` takes them; a call of any other sounds as an error. `None`: not known.
    lead_ms : how far the frames run ahead of what is heard at most, milliseconds. They begin 40 ms ahead, and run 20 ms
        further ahead when the process was late.
    clock : `None` is the machine's.
    """
    options = {"bank": bank, "rules": rules, "tools": tools, "lead_ms": lead_ms, "clock": clock, "frame_ms": _FRAME_MS}
    return CuedHandler(handler, options)
