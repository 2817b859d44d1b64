"""Cues in a Pipecat pipeline: an audio mixer for the output transport, and a processor that tells it what to play.

Tested with pipecat-ai 1.14. The transport calls the mixer with each chunk just before it is written, which is after the
point that paces audio: a cue sounds within one or two chunks of 40 ms, however much speech is queued.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.adapters._packages import require
from cues.adapters._pipeline_cues import PipelineCues
from cues.errors import CueTypeError
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.signal.prediction import faded_continuation
from cues.units import checked_whole_number
from stream.events import TextDelta, ToolCallStart, ToolResult

PIPECAT = require("pipecat-ai", at_least="1.14", below="2", extra="pipecat")

from pipecat.audio.mixers.base_audio_mixer import BaseAudioMixer  # noqa: E402  (a missing package is told first)
from pipecat.frames.frames import (  # noqa: E402
    Frame,
    FunctionCallCancelFrame,
    FunctionCallInProgressFrame,
    FunctionCallResultFrame,
    FunctionCallsStartedFrame,
    InterruptionFrame,
    LLMTextFrame,
    MixerControlFrame,
    MixerEnableFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from cues import Cue
    from stream.events import Event
    from stream.readers.options import Tools
    from stream.routing.router import CueRouter
    from stream.routing.rules import CueRules

__all__ = ["CueFrame", "CueMixer", "CueTap", "create"]

_PAST_S = 0.04
_TAIL_S = 0.03
_MOST_CHANNELS = 2  # The transports are mono or stereo.


@dataclass
class CueFrame(MixerControlFrame):  # type: ignore[misc]  # the package may be absent where types are checked
    """What happened, for the mixer downstream.

    Parameters
    ----------
    event : a call, its result, or text that is about to be spoken; `None` is an interruption.
    ended_call : id of a call that is over without an outcome.
    is_taken : whether the mixer knows already.
    """

    event: Event | None = None
    ended_call: str | None = None
    is_taken: bool = field(default=False)


class CueMixer(BaseAudioMixer):  # type: ignore[misc]
    """The transport's mixer: cues over the speech, and around another mixer if one is given.

    Made by `create`. `router` decides on the cues; `router.muted = True` switches them off. A `MixerEnableFrame` does
    the same, and reaches the wrapped mixer too.
    """

    def __init__(self, deck: PipelineCues, wrap: BaseAudioMixer | None) -> None:
        self._cues, self._wrapped = deck, wrap
        self._last = b""
        self._cut = False
        self._early: Counter[str] = Counter()

    @property
    def router(self) -> CueRouter:
        """What decides on the cues."""
        return self._cues.router

    # What the transport calls.

    async def start(self, sample_rate: int) -> None:
        """Get ready for the transport's sample rate (Hz)."""
        if sample_rate != self._cues.sample_rate:
            self._cues.retune(sample_rate)
        if self._wrapped is not None:
            await self._wrapped.start(sample_rate)

    async def stop(self) -> None:
        """Forget the calls under way."""
        self._cues.router.barge_in()
        if self._wrapped is not None:
            await self._wrapped.stop()

    async def process_frame(self, frame: MixerControlFrame) -> None:
        """Do what a frame says; what is not for cues is for the wrapped mixer."""
        if isinstance(frame, CueFrame):
            self.take(frame)
            return
        if isinstance(frame, MixerEnableFrame):
            self._cues.router.muted = not frame.enable
        if self._wrapped is not None:
            await self._wrapped.process_frame(frame)

    async def mix(self, audio: bytes) -> bytes:
        """One chunk as it goes out (int16 little-endian, channels interleaved)."""
        if any_speech := not _is_silent(audio):
            n_samples = len(audio) // (2 * self._cues.channels)
            self._cues.router.speech(self._cues.mixer.position + n_samples)
        elif self._cut:
            audio, self._cut = self._with_tail(audio), False
        self._last = audio if any_speech else b""
        if self._wrapped is not None:
            audio = await self._wrapped.mix(audio)
        mixed = self._cues.mix_pcm16(audio)
        self._cues.router.poll()
        return mixed

    # What the tap calls.

    def take(self, frame: CueFrame) -> None:
        """Do what the frame says, once."""
        if frame.is_taken:
            return
        frame.is_taken = True
        if frame.ended_call is not None:
            self._cues.router.end_call(frame.ended_call)
        elif frame.event is None:
            self._cues.router.barge_in()
            self._cut = True
            self._early.clear()
        elif not self._was_early(frame.event):
            self._cues.router.handle(frame.event)

    def take_early(self, event: ToolCallStart) -> None:
        """Announce a call that the model's stream has just named; the frame that says the same later is silent."""
        if not event.tool_call_id:
            self._early[event.tool_name] += 1
        self._cues.router.handle(event)

    def _was_early(self, event: Event) -> bool:
        """Whether a call without an id has been announced; a call with an id is known to the router."""
        known = isinstance(event, ToolCallStart) and not event.tool_call_id and self._early[event.tool_name] > 0
        if known and isinstance(event, ToolCallStart):
            self._early[event.tool_name] -= 1
        return known

    def _with_tail(self, audio: bytes) -> bytes:
        """A silent chunk after speech that was cut off: it begins with the end that the speech did not get."""
        if not self._last:
            return audio
        channels = self._cues.channels
        past = float_of_pcm16(self._last).reshape(-1, channels)
        n_past, n_tail = (round(s * self._cues.sample_rate) for s in (_PAST_S, _TAIL_S))
        n_tail = min(n_tail, len(audio) // (2 * channels))
        if n_tail < 1:
            return audio
        tail = np.stack([faded_continuation(past[-n_past:, n], n_tail) for n in range(channels)], axis=1)
        data = pcm16_of_float(tail)
        return data + audio[len(data) :]


class CueTap(FrameProcessor):  # type: ignore[misc]
    """Watches the pipeline for tool calls, results, text and interruptions, and passes every frame on.

    It tells the mixer at once, and sends the same downstream as a `CueFrame` for whoever else wants to know. It sees
    what passes its place in the pipeline: anywhere between the LLM service and the output transport.
    """

    def __init__(self, mixer: CueMixer, is_error: Callable[[Any], bool]) -> None:
        super().__init__()
        self._mixer, self._is_error = mixer, is_error

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Pass a frame on; what it means for the cues goes before it."""
        await super().process_frame(frame, direction)
        for told in self._meaning(frame):
            self._mixer.take(told)
            await self.push_frame(told, FrameDirection.DOWNSTREAM)
        await self.push_frame(frame, direction)

    def _meaning(self, frame: Frame) -> list[CueFrame]:
        match frame:
            case FunctionCallsStartedFrame():
                return [
                    CueFrame(ToolCallStart(call.function_name, call.tool_call_id or ""))
                    for call in frame.function_calls
                ]
            case FunctionCallInProgressFrame() if frame.tool_call_id:
                # Known from the frame above, unless that one was missed; the router takes a call once.
                return [CueFrame(ToolCallStart(frame.function_name, frame.tool_call_id))]
            case FunctionCallResultFrame():
                return self._result(frame)
            case FunctionCallCancelFrame():
                return [CueFrame(ended_call=frame.tool_call_id)]
            case LLMTextFrame() if self._mixer.router.waits and frame.text.strip():
                return [CueFrame(TextDelta(frame.text))]
            case InterruptionFrame():
                return [CueFrame()]
            case _:
                return []

    def _result(self, frame: FunctionCallResultFrame) -> list[CueFrame]:
        if frame.properties is not None and not frame.properties.is_final:
            return []
        failed = frame.error is not None or self._is_error(frame.result)
        content = "" if frame.result is None else str(frame.result)
        return [CueFrame(ToolResult(frame.tool_call_id or "", frame.function_name, is_error=failed, content=content))]


def create(
    sample_rate: int = 24000,
    channels: int = 1,
    *,
    bank: Mapping[str, Cue] | None = None,
    rules: CueRules | None = None,
    tools: Tools = None,
    wrap: BaseAudioMixer | None = None,
    is_error: Callable[[Any], bool] = lambda _: False,
    early: Any = None,
) -> tuple[CueMixer, CueTap]:
    """A mixer for `TransportParams(audio_out_mixer=…)` and a processor to put between the LLM and the transport.

    Parameters
    ----------
    sample_rate : of the transport, Hz; where the transport says otherwise, that counts.
    channels : of the transport (`audio_out_channels`), 1 or 2.
    bank : cues by name, as `cues.load_bank` makes them; `None` takes the built-in ones.
    rules : what sounds for what.
    tools : the declared tools, as `stream.read` takes them; a call of any other sounds as an error. `None`: not known.
    wrap : another mixer, whose sound is in what the cues are mixed into.
    is_error : whether a tool's result means that it failed, beside what raised.
    early : an OpenAI-compatible LLM service whose stream is watched, so that the cue sounds when the call is named
        and not when its arguments are complete. Off by default: a call that is never made has sounded too.

    Raises
    ------
    CueError, StreamError : for a parameter that is none of these.
    """
    channels = checked_whole_number("channels", channels, 1, _MOST_CHANNELS)
    if wrap is not None and not isinstance(wrap, BaseAudioMixer):
        raise CueTypeError(f"wrap is {wrap!r}; it must be a BaseAudioMixer of Pipecat")
    if not callable(is_error):
        raise CueTypeError(f"is_error is {is_error!r}; it must be a function of a tool's result")
    if early is not None and not callable(getattr(early, "get_chat_completions", None)):
        raise CueTypeError(
            f"early is {early!r}; it must be an LLM service of Pipecat's OpenAI-compatible kind (OpenAILLMService, …)"
        )
    deck = PipelineCues(sample_rate=sample_rate, channels=channels, bank=bank, rules=rules, tools=tools)
    mixer = CueMixer(deck, wrap)
    if early is not None:
        _watch(early, mixer)
    return mixer, CueTap(mixer, is_error)


def _watch(llm: Any, mixer: CueMixer) -> None:
    """Have the chunks of an LLM service read on their way."""
    from stream.readers.openai_reader import OpenAIReader

    ask = llm.get_chat_completions

    async def watched(*arguments: Any, **options: Any) -> _WatchedStream:
        return _WatchedStream(await ask(*arguments, **options), OpenAIReader(), mixer)

    llm.get_chat_completions = watched


class _WatchedStream:
    """A stream of chunks that are read on their way; closing it closes the stream."""

    def __init__(self, chunks: Any, reader: Any, mixer: CueMixer) -> None:
        self._chunks, self._reader, self._mixer = chunks, reader, mixer

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for chunk in self._chunks:
            for event in self._reader.feed(chunk):
                if isinstance(event, ToolCallStart):
                    self._mixer.take_early(event)
            yield chunk

    async def close(self) -> None:
        await self._chunks.close()


def _is_silent(audio: bytes) -> bool:
    return audio.count(0) == len(audio)
