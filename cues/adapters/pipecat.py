"""Cues in a Pipecat pipeline: an audio mixer for the output transport, and a processor that feeds it events.

The processor also guards the voice: of the model's text it passes on what may be spoken, and has calls in it run.

Tested with pipecat-ai 1.14. The transport mixes each chunk just before it is written, after its queue: a cue plays
within one or two chunks of 40 ms, however much speech is queued.
"""

import logging
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from cues.adapters._pipeline_cues import CueOptions, PipelineCues, check_options
from cues.errors import CueTypeError
from cues.extras import require
from cues.signal.concealment import is_audible
from cues.signal.fades import raised_cosine
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.signal.prediction import faded_continuation
from cues.units import checked_whole_number
from stream.events import (
    AudioDelta,
    Finish,
    InvalidToolCall,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.readers.options import Start, kept
from stream.routing.router import CueRouter

PIPECAT = require("pipecat")

from pipecat.audio.mixers.base_audio_mixer import BaseAudioMixer  # noqa: E402  (report a missing package first)
from pipecat.frames.frames import (  # noqa: E402
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    Frame,
    FunctionCallCancelFrame,
    FunctionCallInProgressFrame,
    FunctionCallResultFrame,
    FunctionCallsStartedFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    MixerControlFrame,
    MixerEnableFrame,
    StartFrame,
    TTSAudioRawFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor  # noqa: E402
from pipecat.services.llm_service import LLMService  # noqa: E402

from cues.adapters._pipecat_guard import CueFrame, TextGuard  # noqa: E402

__all__ = ["CueFrame", "CueMixer", "CueOptions", "CueTap", "create"]

logger = logging.getLogger(__name__)

_PAST_S = 0.04
_TAIL_S = 0.03
_MOST_CHANNELS = 2  # The transports are mono or stereo.


class CueMixer(BaseAudioMixer):  # type: ignore[misc]
    """The transport's mixer; made by `create`.

    It adds cues to the speech, or to the output of the wrapped mixer. `router.muted = True` switches cues off. A
    `MixerEnableFrame` does the same, also for the wrapped mixer.
    """

    def __init__(self, pipeline_cues: PipelineCues, wrap: BaseAudioMixer | None) -> None:
        self._cues, self._wrapped = pipeline_cues, wrap
        self._last = b""
        self._cut = self._is_dropped = False  # The speech is interrupted; the transport has dropped its queue.
        self.is_speaking = False  # the transport, also in a pause of the speech
        self.router.words_go_on(lambda: self.is_speaking or None)

    @property
    def router(self) -> CueRouter:
        """The router, which chooses the cues."""
        return self._cues.router

    # Called by the transport.

    async def start(self, sample_rate: int) -> None:
        """Prepare for the transport's sample rate (Hz)."""
        self._cues.retune(sample_rate)
        if self._wrapped is not None:
            await self._wrapped.start(sample_rate)

    async def stop(self) -> None:
        """End the pending calls."""
        self._cues.router.barge_in()
        if self._wrapped is not None:
            await self._wrapped.stop()

    async def process_frame(self, frame: MixerControlFrame) -> None:
        """Handle a frame; frames that are not for cues go to the wrapped mixer, and `MixerEnableFrame` to both."""
        if isinstance(frame, CueFrame):
            self.take(frame)
            self._is_dropped = self._is_dropped or (self._cut and frame.is_interruption)
            return
        if isinstance(frame, MixerEnableFrame):
            self._cues.router.muted = not frame.enable
        if self._wrapped is not None:
            await self._wrapped.process_frame(frame)

    async def mix(self, audio: bytes) -> bytes:
        """Mix cues into a chunk (int16 little-endian, channels interleaved)."""
        n_rest = len(audio) % (2 * self._cues.channels)
        audio, rest = audio[: len(audio) - n_rest], audio[len(audio) - n_rest :]
        self._cues.hear(audio)  # without what the wrapped mixer adds: music is no answer
        any_speech = audio.count(0) != len(audio)
        if self._cut and (self._is_dropped or not any_speech):
            audio, self._cut, self._is_dropped = self._with_tail(audio), False, False
        self._last = audio if any_speech else b""
        if self._wrapped is not None:
            audio = await self._wrapped.mix(audio)
        mixed = self._cues.mixer.mix_pcm16(audio)
        self._cues.poll()
        return mixed + rest

    # Called by the tap.

    def take(self, frame: CueFrame) -> None:
        """Handle a frame once."""
        if frame.is_taken:
            return
        frame.is_taken = True
        if frame.ended_call is not None:
            self._cues.router.end_call(frame.ended_call)
            if not self._cues.router.waits:
                self._cues.router.end_stream()  # nobody asks the model
        elif frame.event is not None:
            self._cues.router.handle(frame.event)
        else:
            self._cues.router.barge_in()
            self._cut = True

    def _with_tail(self, audio: bytes) -> bytes:
        """The first chunk after interrupted speech, with a fade-out of that speech added at its beginning."""
        channels, rate = self._cues.channels, self._cues.sample_rate
        n_tail = min(round(_TAIL_S * rate), len(audio) // (2 * channels))
        if not self._last or n_tail < 1:
            return audio
        past = float_of_pcm16(self._last).reshape(-1, channels)[-round(_PAST_S * rate) :]
        tail = np.stack([faded_continuation(past[:, n], n_tail) for n in range(channels)], axis=1)
        n_bytes = 2 * tail.size
        begin = float_of_pcm16(audio[:n_bytes]).reshape(-1, channels)
        if is_audible(begin[0]):  # such as speech that may not be interrupted, and goes on
            begin *= raised_cosine(n_tail).astype(np.float32)[:, None]
        return pcm16_of_float(begin + tail) + audio[n_bytes:]


class CueTap(FrameProcessor):  # type: ignore[misc]
    """A processor that reports tool calls, results, text and interruptions to the mixer, and guards the voice.

    It passes on every frame, but of the model's text only what may be spoken (with `guard`). It also sends each report
    downstream as a `CueFrame`. It belongs between the LLM service and the text-to-speech service.
    """

    def __init__(
        self,
        mixer: CueMixer,
        is_error: Callable[[Any], bool],
        guard: TextGuard,
        unwatch: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._mixer, self._is_error, self._guard, self._unwatch = mixer, is_error, guard, unwatch
        guard.tell = self._tell
        self._begin_response()
        self._queued: list[CueFrame] = []  # reports of calls, sent after the words before them
        self._has_started = False
        self._early: list[CueFrame] = []  # reports before that, which the mixer plays once it has started

    def _begin_response(self) -> None:
        """Forget the last response; the next one has not begun."""
        self._in_response = self._has_calls = False
        self._awaited: set[str] = set()  # ids of the calls without a result
        self._has_words = False  # since the last result

    async def _tell(self, report: CueFrame) -> None:
        if self._has_started:
            await self.queue_frame(report)
        else:
            self._early.append(report)

    async def cleanup(self) -> None:
        """End with the pipeline; a service that was watched is as before."""
        await super().cleanup()
        self._guard.unfollow()
        self._unwatch()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Pass a frame on, or what of it may be spoken, after its `CueFrame`s.

        An interruption goes before its own, and so do announced calls: theirs wait for the words before them.
        """
        await super().process_frame(frame, direction)
        is_ours = direction is FrameDirection.DOWNSTREAM
        for passed in await self._guard.in_place_of(frame) if is_ours else [frame]:
            try:
                reports = self._meaning(passed)
            except Exception:
                # Such as `is_error`, or `str` of a tool's result.
                logger.exception("no cue for %s", type(passed).__name__)
                reports = []
            if isinstance(passed, FunctionCallsStartedFrame):  # it has overtaken the words before them
                self._queued += reports
                for report in reports:
                    await self.queue_frame(report)
                reports = []
            for report in reports:
                self._mixer.take(report)
            cuts = isinstance(passed, InterruptionFrame)
            if cuts:  # Its report tells the mixer that the transport has dropped its queue.
                await self.push_frame(passed, direction)
            for report in reports:
                await self.push_frame(report, FrameDirection.DOWNSTREAM)
            if not (cuts or passed in reports):
                await self.push_frame(passed, direction)
        if isinstance(frame, StartFrame):
            self._has_started = True
            for report in self._early:
                await self.push_frame(report, FrameDirection.DOWNSTREAM)

    def _meaning(self, frame: Frame) -> list[CueFrame]:
        router = self._mixer.router
        match frame:
            case CueFrame(is_taken=False):
                return [frame]
            case LLMFullResponseStartFrame():
                self._in_response = True
                router.begin_answer()
                if router.phase == "done":
                    router.begin_turn()
            case LLMFullResponseEndFrame():
                # After calls, which may have ended already, another response follows. But a live model's calls come
                # before a response, or in it, and it answers them there.
                is_answer = not self._has_calls or (self._has_words and not self._awaited)
                self._begin_response()
                if self._guard.has_run or not is_answer:
                    return []
                failure = self._guard.failure
                return [CueFrame(StreamFailed(failure) if failure else Finish("stop"))]
            case FunctionCallsStartedFrame():
                if self._guard.note(frame.function_calls):
                    self._has_calls = True
                    self._awaited.update(call.tool_call_id for call in frame.function_calls)
                return [report for call in frame.function_calls for report in self._called(call)]
            case FunctionCallInProgressFrame() if frame.tool_call_id:
                # For pipelines that missed the frame above; the router handles a call once.
                self._drop_queued(self._guard.id_of(frame))
                return self._called(frame)
            case FunctionCallResultFrame():
                return self._result(frame)
            case FunctionCallCancelFrame():
                self._call_ended(frame)
                if not frame.run_llm:
                    return [CueFrame(ended_call=self._guard.id_of(frame))]
                return [self._ended(frame, is_error=True, content="timeout")]  # by its timeout, and by nothing else
            case LLMTextFrame():
                return self._text(frame)
            case TTSAudioRawFrame() if self._speaks_first(frame):
                router.alive()
                return self._words(AudioDelta(frame.audio, f"audio/pcm;rate={frame.sample_rate}"))
            case BotStartedSpeakingFrame() | BotStoppedSpeakingFrame():
                self._mixer.is_speaking = isinstance(frame, BotStartedSpeakingFrame)
            case InterruptionFrame():
                self._begin_response()
                self._drop_queued()
                return [CueFrame()]
        return []

    def _drop_queued(self, call_id: str | None = None) -> None:
        """Drop the reports of a call that a frame has overtaken in the queue; without an id, of all."""
        for report in self._queued:
            if call_id in (None, getattr(report.event, "tool_call_id", None)):
                report.is_taken = True
        self._queued = [report for report in self._queued if not report.is_taken]

    def _result(self, frame: FunctionCallResultFrame) -> list[CueFrame]:
        self._mixer.router.alive()
        if frame.properties is not None and not frame.properties.is_final:
            return []
        self._call_ended(frame)
        name, content = frame.function_name, "" if frame.result is None else str(frame.result)
        failed = frame.error is not None or self._is_error(frame.result)
        reports = [self._ended(frame, is_error=failed, content=content)]
        if content == LLMService.MISSING_FUNCTION_CALL_MESSAGE_TEMPLATE.format(function_name=name):
            reports.insert(0, CueFrame(InvalidToolCall(name, self._guard.id_of(frame), 0, "unknown_tool", content)))
        if not _asks_the_model(frame):
            reports.append(CueFrame(ended_call=self._guard.id_of(frame)))
        self._guard.forget(frame)
        return reports

    def _text(self, frame: LLMTextFrame) -> list[CueFrame]:
        router = self._mixer.router
        router.alive()
        if not frame.text.strip():
            return []
        if frame.skip_tts:
            self._has_words = True
            router.written()
            return []
        return self._words(TextDelta(frame.text))

    def _speaks_first(self, frame: TTSAudioRawFrame) -> bool:
        """Whether a live model's answer begins with this sound, before its text. Other voices join after the tap."""
        awaits_words = self._in_response and not (self._has_words or self._awaited)
        return awaits_words and frame.audio.count(0) != len(frame.audio)

    def _words(self, event: TextDelta | AudioDelta) -> list[CueFrame]:
        self._has_words = True
        return [] if self._mixer.router.phase == "done" else [CueFrame(event)]

    def _call_ended(self, frame: Any) -> None:
        self._awaited.discard(frame.tool_call_id)
        self._has_words = False

    def _called(self, call: Any) -> list[CueFrame]:
        """The reports of a call; Pipecat announces it when its arguments are complete."""
        name, call_id = call.function_name, self._guard.id_of(call)
        return [CueFrame(ToolCallStart(name, call_id)), CueFrame(ToolCallEnd(name, call_id))]

    def _ended(self, call: Any, *, is_error: bool, content: str) -> CueFrame:
        name, call_id = call.function_name, self._guard.id_of(call)
        return CueFrame(ToolResult(tool_name=name, tool_call_id=call_id, is_error=is_error, content=content))


def _asks_the_model(frame: FunctionCallResultFrame) -> bool:
    """Whether Pipecat asks the model for an answer to a result, when no call of its group runs."""
    asks = frame.run_llm if frame.properties is None or frame.properties.run_llm is None else frame.properties.run_llm
    return bool(frame.result) and asks is not False


def create(
    sample_rate: int = 24000,
    channels: int = 1,
    *,
    wrap: BaseAudioMixer | None = None,
    is_error: Callable[[Any], bool] = lambda _: False,
    llm: LLMService[Any] | None = None,
    guard: bool = True,
    start: Start = "text",
    **options: Unpack[CueOptions],
) -> tuple[CueMixer, CueTap]:
    """A mixer for `TransportParams(audio_out_mixer=…)` and a processor to put between the LLM and the transport.

    Parameters
    ----------
    sample_rate : int
        Of the transport, Hz; if the transport reports another rate, that is used.
    channels : {1, 2}
        Of the transport (`audio_out_channels`).
    wrap : BaseAudioMixer or None
        Another mixer; cues are mixed into its output.
    is_error : Callable
        Whether a tool's result is a failure; exceptions always are.
    llm : LLMService or None
        The pipeline's LLM service. It runs the calls that its model writes as text, if their tools are offered. The cue
        of a structured call of an OpenAI-compatible service plays as soon as it is named, before its arguments are
        complete; a call that then does not run has played its cue.
    guard : bool
        Whether only text that may be spoken is passed on: without calls, thoughts and markers.
    start : {"text", "reasoning"}
        `"reasoning"` if the model's prompt opens a block of thoughts and its server does not parse them, so that only
        the block's end comes; see `stream.OpenAIReader`.
    **options
        `bank`, `rules`, `tools` and `limits`, as in `CueOptions`.

    Raises
    ------
    CueError, StreamError
        If a parameter is out of range or of another type.
    """
    check_options(options, CueOptions)
    channels = checked_whole_number("channels", channels, 1, _MOST_CHANNELS)
    if wrap is not None and not isinstance(wrap, BaseAudioMixer):
        raise CueTypeError(f"wrap is {wrap!r}; it must be a BaseAudioMixer of Pipecat")
    if not callable(is_error):
        raise CueTypeError(f"is_error is {is_error!r}; it must be a function of a tool's result")
    if llm is not None and not isinstance(llm, LLMService):
        raise CueTypeError(f"llm is {llm!r}; it must be an LLMService of Pipecat")
    options["tools"] = kept(options.get("tools"))
    mixer = CueMixer(PipelineCues(options, sample_rate=sample_rate, channels=channels, hears=False), wrap)
    text_guard = TextGuard(llm, options["tools"], is_on=guard, start=start)
    if not hasattr(llm, "get_chat_completions"):
        return mixer, CueTap(mixer, is_error, text_guard)
    from cues.adapters._pipecat_watch import watch  # other services need no parser of chunks

    return mixer, CueTap(mixer, is_error, text_guard, watch(llm))
