"""The turn matrix in Pipecat: its own LLM service, context aggregators and output transport, on virtual time."""

import asyncio
import functools

import numpy as np
import pytest
from pipecat.frames.frames import (
    EndFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import FunctionCallFromLLM, LLMService
from pipecat.services.settings import LLMSettings
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

import cues.adapters.pipecat
from cues.signal.pcm import pcm16_of_float
from stream.routing.rules import CueRules
from tests.support.listening import new_clicks, steady_voice
from tests.support.pipecat_pipeline import CHUNK_S, ListTransport
from tests.support.turn_matrix import (
    ASKED_S,
    CHAIN,
    HANGS,
    INTERRUPTED,
    PERIOD_S,
    RATE,
    STATES,
    THINKING,
    TURNS,
    Heard,
    check_hang,
    check_silent_after,
    check_whole_turn,
    lasts_s,
)
from tests.support.virtual_loop import LoopClock, run_virtually

TIMEOUT_S = 6.0


class ScriptedLLM(LLMService):
    """Plays a turn: one response for each call, and one with the answer."""

    def __init__(self, turn):
        settings = LLMSettings()
        super().__init__(settings=settings, function_call_timeout_secs=None)
        self._turn, self._round = turn, 0
        self.register_function("search", self._search, timeout_secs=TIMEOUT_S if self._times_out() else None)

    def _times_out(self):
        return any(call.ends == "timeout" for call in self._turn.calls)

    async def _search(self, params):
        call = self._turn.calls[int(params.tool_call_id)]
        await asyncio.sleep(call.runs_s if call.ends in ("success", "error") else 1e6)
        if call.ends == "error":
            raise RuntimeError("no such page")
        await params.result_callback("found")

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            await self.push_frame(LLMFullResponseStartFrame())
            await self._respond(frame.context)
            await self.push_frame(LLMFullResponseEndFrame())
        else:
            await self.push_frame(frame, direction)

    async def _respond(self, context):
        await asyncio.sleep(self._turn.think_s)
        number, self._round = self._round, self._round + 1
        if number < len(self._turn.calls):
            call = FunctionCallFromLLM(self._turn.calls[number].name, str(number), {}, context)
            await self.run_function_calls([call])
        else:
            await self.push_frame(LLMTextFrame(self._turn.answer))


class SlowVoice(FrameProcessor):
    """Speaks an answer `delay_s` after its text, in one piece, as a text-to-speech service does."""

    def __init__(self, delay_s):
        super().__init__()
        self._delay_s, self._speaking = delay_s, None

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self._speaking = asyncio.create_task(self._speak())
        elif isinstance(frame, InterruptionFrame) and self._speaking is not None:
            self._speaking.cancel()
        await self.push_frame(frame, direction)

    async def _speak(self):
        await asyncio.sleep(self._delay_s)
        await self.push_frame(TTSStartedFrame())
        await self.push_frame(TTSAudioRawFrame(pcm16_of_float(steady_voice(2.0)), RATE, 1))
        await self.push_frame(TTSStoppedFrame())


def _played(turn, lasts_s, interrupt_s, options):
    async def go():
        mixer, tap = cues.adapters.pipecat.create(RATE, **options)
        context = LLMContext([{"role": "user", "content": "How is the weather?"}])
        aggregators = LLMContextAggregatorPair(context)
        params = TransportParams(
            audio_out_enabled=True, audio_out_sample_rate=RATE, audio_out_mixer=mixer, audio_out_end_silence_secs=0
        )
        transport = ListTransport(LoopClock(), params)
        parts = [
            aggregators.user(),
            ScriptedLLM(turn),
            tap,
            SlowVoice(turn.voice_s),
            transport,
            aggregators.assistant(),
        ]
        worker = PipelineWorker(
            Pipeline(parts),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
            params=PipelineParams(audio_out_sample_rate=RATE),
        )
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        started = asyncio.Event()

        @worker.event_handler("on_pipeline_started")
        async def _on_started(_worker, _frame):
            started.set()

        async def play():
            await started.wait()
            await asyncio.sleep(ASKED_S)
            asked = sum(len(audio) for _, audio in transport.written) // 2
            await worker.queue_frame(LLMContextFrame(context))
            if interrupt_s is not None:
                await asyncio.sleep(interrupt_s)
                await worker.queue_frame(InterruptionFrame())
            await asyncio.sleep(lasts_s - (interrupt_s or 0.0))
            await worker.queue_frame(EndFrame())
            return asked

        asked, _ = await asyncio.gather(play(), runner.run())
        mixed = np.frombuffer(b"".join(audio for _, audio in transport.written), dtype="<i2") / 32768.0
        return mixed, tuple(mixer.router.spans), asked, mixer.router

    return run_virtually(go)


@functools.cache
def _speech_of(turn, lasts_s, interrupt_s):
    return _played(turn, lasts_s, interrupt_s, {"bank": {}})[0]


def play(turn, *, lasts_s, interrupt_s=None, **options):
    """Output of the transport, and the same without any cue."""
    mixed, spans, asked, router = _played(turn, lasts_s, interrupt_s, options)
    speech = _speech_of(turn, lasts_s, interrupt_s)
    n = min(len(mixed), len(speech))
    heard = Heard(mixed[:n], speech[:n], spans, asked if router._rules.thinking else spans[0].start_samples)
    return heard, router


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("thinking", [True, False], ids=["thinking", "from the first call"])
def test_no_dead_air_from_the_question_to_the_first_word(name, thinking):
    turn = TURNS[name]
    if not (thinking or turn.calls):
        return
    heard, _ = play(turn, lasts_s=lasts_s(turn), rules=THINKING if thinking else CueRules())
    check_whole_turn(turn, heard)
    assert new_clicks(heard.mixed, heard.speech) == []


@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state):
    heard, router = play(INTERRUPTED, lasts_s=90.0, interrupt_s=STATES[state], rules=THINKING)
    at = heard.asked + round(STATES[state] * RATE)
    assert heard.mixed[at - round(PERIOD_S * RATE) : at].any()
    check_silent_after(heard, at, 0.03 + 2 * CHUNK_S)
    assert router.phase == "done"


@pytest.mark.parametrize(("turn", "limits"), HANGS.values(), ids=HANGS.keys())
def test_a_hang_is_waited_for_with_a_sound_and_ends_with_the_error_cue(turn, limits, caplog):
    heard, _ = play(turn, lasts_s=45.0, interrupt_s=40.0, rules=THINKING, limits=limits)
    check_hang(heard, caplog.text)


def test_the_music_of_a_wrapped_mixer_is_no_answer():
    class Hum(cues.adapters.pipecat.BaseAudioMixer):
        async def start(self, sample_rate): ...

        async def stop(self): ...

        async def process_frame(self, frame): ...

        async def mix(self, audio):
            return (np.frombuffer(audio, dtype="<i2") + np.int16(3000)).tobytes()

    heard, _ = play(CHAIN, lasts_s=30.0, wrap=Hum())
    assert len(heard.waiting) == 1
    assert heard.waiting[0].end_s - heard.waiting[0].start_s > 10.0
