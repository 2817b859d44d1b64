"""Pipecat, the real package: what its transport plays when tools are called, fail, take long and are interrupted."""

import asyncio

import numpy as np
import pytest
from pipecat.audio.mixers.base_audio_mixer import BaseAudioMixer
from pipecat.frames.frames import (
    FunctionCallCancelFrame,
    FunctionCallFromLLM,
    FunctionCallInProgressFrame,
    FunctionCallResultFrame,
    FunctionCallResultProperties,
    FunctionCallsStartedFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    MixerControlFrame,
    MixerEnableFrame,
    MixerUpdateSettingsFrame,
    TTSAudioRawFrame,
)
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.sambanova.llm import SambaNovaLLMService

import cues
from cues.adapters.pipecat import CueFrame, create
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.signal.prediction import faded_continuation
from stream.errors import StreamError
from stream.routing.rules import CueRules
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, speech, steady_voice
from tests.support.pipecat_pipeline import CHUNK_S, run_pipeline, say
from tests.support.talks.pipecat import PipecatTalk
from tests.support.turn_matrix import CHAIN
from tests.support.turn_matrix import play as play_turn

CHUNK = round(CHUNK_S * RATE)
FADE = round(0.03 * RATE)
SILENT = {}
CANCELLED = FunctionCallCancelFrame("read_file", "1")


def called(*ids, name="read_file"):
    return FunctionCallsStartedFrame([FunctionCallFromLLM(name, call_id, {}, None) for call_id in ids])


def result(call_id, name="read_file", **options):
    return FunctionCallResultFrame(name, call_id, {}, options.pop("value", "text"), **options)


def play(script, **options):
    """The sound, and the mixer."""
    mixer, tap = create(RATE, 1, **options)
    return run_pipeline(mixer, [tap], script), mixer


def after_a_call(frame):
    """A script: a call, and half a second later this frame."""

    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(0.5)
        await send(frame)
        await clock.sleep(0.5)

    return script


def test_speech_without_calls_passes_bit_for_bit():
    x = speech()

    async def script(send, clock):
        await say(send, x)
        await clock.sleep(len(x) / RATE + 0.2)

    heard, _ = play(script)
    start = first_sound(heard)
    expected = np.rint(x * 32768.0) / 32768.0
    offset = start - first_sound(expected)
    assert np.array_equal(heard[offset : offset + len(x)], expected)


@pytest.mark.parametrize("x", [speech(), np.zeros(0)], ids=["while speaking", "in silence"])
def test_the_cue_begins_within_two_chunks_of_the_call_and_the_speech_is_no_longer(x):
    async def script(send, clock):
        if len(x):
            await say(send, x)
        await clock.sleep(1.013)
        await send(called("1"))
        await clock.sleep(0.7)
        await send(result("1"))
        await clock.sleep(len(x) / RATE)

    (with_cue, _), (without, _) = play(script), play(script, bank=SILENT)
    assert len(with_cue) == len(without)
    assert 1.013 * RATE <= first_sound(with_cue - without) <= 1.013 * RATE + 2 * CHUNK
    if not len(x):
        return
    assert last_sound(with_cue) == last_sound(without)
    assert new_clicks(with_cue, without) == []


def test_ten_parallel_calls_sound_once_and_one_call_told_twice_too():
    async def script(send, clock):
        await send(called(*(str(n) for n in range(10))))
        for n in range(10):
            await send(FunctionCallInProgressFrame("read_file", str(n), {}, cancel_on_interruption=True))
        await clock.sleep(0.5)
        await send(FunctionCallInProgressFrame("read_file", "3", {}, cancel_on_interruption=True))
        await clock.sleep(0.5)

    _, mixer = play(script)
    assert [span.cue for span in mixer.router.spans if span.cue != "working"] == ["tool_call"]
    assert mixer.router.stats.coalesced == 9


@pytest.mark.parametrize(
    ("frame", "cue"),
    [
        (result("1"), ["success"]),
        (result("1", error="it broke"), ["error"]),
        (result("1", value={"error": "no such file"}), ["error"]),
        (result("1", properties=FunctionCallResultProperties(is_final=False)), []),
        (CANCELLED, []),
    ],
    ids=["result", "raised", "result that says error", "intermediate", "cancelled"],
)
def test_only_the_final_result_decides_how_it_ended(frame, cue):
    _, mixer = play(after_a_call(frame), is_error=lambda value: isinstance(value, dict) and "error" in value)
    assert [span.cue for span in mixer.router.spans if span.cue not in ("working", "tool_call")] == cue


NO_ANSWER = FunctionCallResultProperties(run_llm=False)


@pytest.mark.parametrize(
    "frame",
    [result("1", properties=NO_ANSWER), result("1", run_llm=False), result("1", value=None), CANCELLED],
    ids=["says so", "its frame says so", "empty", "cancelled"],
)
def test_after_a_call_that_asks_for_no_answer_nothing_waits(frame):
    async def script(send, clock):
        await send(LLMFullResponseStartFrame())
        await send(LLMTextFrame("One moment."))
        await clock.sleep(0.1)
        await after_a_call(frame)(send, clock)
        await clock.sleep(8.0)

    _, mixer = play(script)
    assert "working" not in [span.cue for span in mixer.router.spans]


def test_an_interruption_of_speech_and_cue_fades_and_the_next_answer_is_heard():
    async def script(send, clock):
        await say(send, steady_voice(5.0))
        await clock.sleep(1.0)
        await send(called("1"))
        await clock.sleep(0.06)
        await send(InterruptionFrame())
        await clock.sleep(2.0)
        await send(result("1"))  # The tool of the cancelled turn ends late.
        await clock.sleep(2.0)
        await say(send, steady_voice(1.0))
        await clock.sleep(1.5)

    heard, _ = play(script)
    old, new = heard[: 5 * RATE], heard[5 * RATE :]
    assert last_sound(old, 0.0) <= 1.06 * RATE + FADE + CHUNK
    assert new_clicks(old, np.zeros_like(old)) == []
    assert np.abs(new).max() > 0.1


class SlowToStop(FrameProcessor):
    """A voice that takes a while to drop its connection before it passes an interruption on."""

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame):
            await asyncio.sleep(0.1)
        await self.push_frame(frame, direction)


@pytest.mark.parametrize("again_s", [None, 0.01, 0.05], ids=lambda s: f"interrupted again after {s} s")
@pytest.mark.parametrize("moment_s", [1.0, 1.011, 1.023, 1.037])
@pytest.mark.parametrize("processors", [(), (SlowToStop,)], ids=["at once", "late"])
def test_an_answer_in_the_very_next_chunk_after_an_interruption_brings_no_click(processors, moment_s, again_s):
    async def script(send, clock):
        await say(send, steady_voice(5.0))
        await clock.sleep(moment_s)
        for wait_s in (again_s, 1.5):
            if wait_s is not None:
                await send(InterruptionFrame())
                await say(send, steady_voice(1.0))
                await clock.sleep(wait_s)

    mixer, tap = create(RATE, bank=SILENT)
    heard = run_pipeline(mixer, [tap, *(kind() for kind in processors)], script)
    assert new_clicks(heard, np.zeros_like(heard)) == []
    assert np.abs(heard[-RATE:]).max() > 0.1  # the answer


def test_speech_that_may_not_be_interrupted_goes_on_without_a_click():
    x = steady_voice(3.0)

    async def script(send, clock):
        frame = TTSAudioRawFrame(pcm16_of_float(x), RATE, 1)
        frame.interruptible = False
        await send(frame)
        await clock.sleep(1.013)
        await send(InterruptionFrame())
        await clock.sleep(2.5)

    heard, _ = play(script)
    assert new_clicks(heard, np.zeros_like(heard)) == []
    assert last_sound(heard) > 2.9 * RATE


def test_the_end_that_interrupted_speech_gets_has_the_speechs_own_scale():
    mixer, _ = create(RATE)
    chunk = pcm16_of_float(steady_voice(1.0, level=0.6)[: -RATE // 4][-CHUNK:])

    async def interrupted():
        await mixer.mix(chunk)
        mixer.take(CueFrame())
        return await mixer.mix(bytes(len(chunk)))

    end = faded_continuation(float_of_pcm16(chunk), FADE)
    assert asyncio.run(interrupted())[: 2 * FADE] == pcm16_of_float(end)


class Watcher(FrameProcessor):
    """Keeps the frames of a kind that pass."""

    def __init__(self, kind):
        super().__init__()
        self._kind, self.seen = kind, []

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, self._kind):
            self.seen.append(frame)
        await self.push_frame(frame, direction)


def test_the_taps_reports_reach_the_mixer_as_control_frames_too():
    (mixer, tap), watcher = create(RATE), Watcher(MixerControlFrame)
    run_pipeline(mixer, [tap, watcher], after_a_call(InterruptionFrame()))
    assert [type(frame.event).__name__ for frame in watcher.seen] == ["ToolCallStart", "ToolCallEnd", "NoneType"]
    assert mixer.router.stats.played == 1


class Hum(BaseAudioMixer):
    """A wrapped mixer that adds an offset."""

    def __init__(self, offset):
        self.told, self.rate, self._offset = [], None, offset

    async def start(self, sample_rate):
        self.rate = sample_rate

    async def stop(self):
        self.told.append("stop")

    async def process_frame(self, frame):
        self.told.append(type(frame).__name__)

    async def mix(self, audio):
        return (np.frombuffer(audio, dtype="<i2") + np.int16(self._offset)).tobytes()


def test_another_mixer_is_wrapped_and_gets_its_own_frames():
    hum = Hum(100)

    async def script(send, clock):
        await send(MixerUpdateSettingsFrame({"volume": 0.5}))
        await send(MixerEnableFrame(False))
        await clock.sleep(0.1)
        await send(called("1"))
        await clock.sleep(0.5)
        await send(MixerEnableFrame(True))
        await clock.sleep(0.5)
        await send(called("2"))
        await clock.sleep(0.5)

    heard, mixer = play(script, wrap=hum)
    assert hum.rate == RATE
    assert hum.told[:3] == ["MixerUpdateSettingsFrame", "MixerEnableFrame", "MixerEnableFrame"]
    assert "stop" in hum.told
    before = heard[: round(0.9 * RATE)]
    assert np.allclose(before, 100 / 32768)
    assert mixer.router.stats.muted == 1
    assert mixer.router.stats.played == 1


def test_the_music_of_a_wrapped_mixer_is_no_answer():
    heard, *_ = play_turn(PipecatTalk, CHAIN, lasts_s=30.0, wrap=Hum(3000))
    (waiting,) = heard.waiting
    assert waiting.end_s - waiting.start_s > 10.0


def test_what_was_switched_and_subscribed_before_the_start_holds_at_the_transports_rate():
    told = []

    mixer, tap = create(24000)
    router = mixer.router
    router.mute("success")
    router.spans.subscribe(told.append)
    run_pipeline(mixer, [tap], after_a_call(result("1")), rate=16000)
    assert mixer.router is router
    assert {(span.cue, span.sample_rate) for span in told} == {("tool_call", 16000), ("working", 16000)}
    assert router.stats.muted == 1


def test_both_channels_of_a_stereo_transport_get_the_cue_and_keep_their_own_speech():
    left, right = steady_voice(2.0), steady_voice(2.0, level=0.1)

    async def script(send, clock):
        await say(send, np.stack([left, right], axis=1).reshape(-1), channels=2)
        await clock.sleep(0.5)
        await send(called("1"))
        await clock.sleep(2.0)

    mixer, tap = create(RATE, 2)
    heard = run_pipeline(mixer, [tap], script, channels=2)
    silent, silent_tap = create(RATE, 2, bank=SILENT)
    without = run_pipeline(silent, [silent_tap], script, channels=2)
    assert first_sound(heard[:, 0] - without[:, 0]) == pytest.approx(first_sound(heard[:, 1] - without[:, 1]), abs=24)
    assert np.abs(without[:, 0]).max() == pytest.approx(2 * np.abs(without[:, 1]).max(), rel=0.02)


@pytest.mark.parametrize("channels", [1, 2])
def test_chunks_of_odd_bytes_lose_nothing(channels):
    mixer, _ = create(RATE, channels)
    odd = b"\x01\x02" * channels + b"\x03"

    async def interrupted():
        assert await mixer.mix(odd) == odd
        assert await mixer.mix(b"") == b""
        mixer.take(CueFrame())
        return await mixer.mix(bytes(1921))

    assert len(asyncio.run(interrupted())) == 1921


class Unprintable:
    def __str__(self):
        raise ConnectionError("no text")


@pytest.mark.parametrize(
    ("value", "is_error"),
    [("text", lambda _: 1 / 0), (Unprintable(), lambda _: False)],
    ids=["is_error raises", "str raises"],
)
def test_a_result_that_cannot_be_judged_goes_on_and_is_logged(value, is_error, caplog):
    (mixer, tap), watcher = create(RATE, is_error=is_error), Watcher(FunctionCallResultFrame)
    run_pipeline(mixer, [tap, watcher], after_a_call(result("1", value=value)))
    assert [frame.result for frame in watcher.seen] == [value]
    assert "no cue for FunctionCallResultFrame" in caplog.text


CALL = {"index": 0, "id": "1", "type": "function", "function": {"name": "read_file", "arguments": '{"p'}}
REST = {"index": 0, "function": {"arguments": 'ath": "a"}'}}


def chunk_of(delta, reason=None):
    from openai.types.chat import ChatCompletionChunk

    frame = {"id": "r", "created": 0, "model": "m", "object": "chat.completion.chunk"}
    return ChatCompletionChunk.model_validate(
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    )


class Chunks:
    """What the stream of the `openai` package offers, of an asynchronous generator."""

    def __init__(self, chunks):
        self._chunks, self.is_closed = chunks, False

    def __aiter__(self):
        return self._chunks.__aiter__()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        self.is_closed = True


def service_of(*steps, tool_s=0.0, kind=OpenAILLMService):
    """An OpenAI-compatible service that answers once: deltas, a finish reason, and pauses in seconds."""

    class Service(kind):
        async def get_chat_completions(self, _context):
            async def chunks():
                for step in steps:
                    if isinstance(step, float):
                        await asyncio.sleep(step)
                    else:
                        yield chunk_of({}, step) if isinstance(step, str) else chunk_of(step)

            self.chunks = Chunks(chunks())
            return self.chunks

    async def read_file(params):
        llm.ran.append(params.arguments)
        await asyncio.sleep(tool_s)
        await params.result_callback("text", properties=FunctionCallResultProperties(run_llm=False))

    llm = Service(api_key="none", settings=Service.Settings(model="replay"))
    llm.ran = []
    llm.register_function("read_file", read_file)
    return llm


def ask(llm, mixer, tap, *, then=None, lasts_s=2.0):
    """Ask the service in a pipeline; `then(send, clock)` follows."""
    from pipecat.processors.aggregators.llm_context import LLMContext

    async def script(send, clock):
        await send(LLMContextFrame(LLMContext([{"role": "user", "content": "hi"}])))
        if then is not None:
            await then(send, clock)
        await clock.sleep(lasts_s)

    return run_pipeline(mixer, [llm, tap], script)


@pytest.mark.parametrize("call_id", ["1", "", None])
def test_an_early_cue_sounds_when_the_models_stream_names_the_call_and_only_once(call_id):
    llm = service_of({"tool_calls": [CALL | {"id": call_id}]}, 1.0, {"tool_calls": [REST]}, "tool_calls", tool_s=1.0)
    asked = llm.get_chat_completions
    mixer, tap = create(RATE, llm=llm)
    assert first_sound(ask(llm, mixer, tap)) <= 2 * CHUNK  # The arguments were still to come.
    assert llm.get_chat_completions == asked  # when the pipeline has ended
    assert [span.cue for span in mixer.router.spans if span.cue != "working"] == ["tool_call", "success"]
    assert mixer.router.stats.coalesced == 0


@pytest.mark.parametrize("knows_llm", [True, False])
@pytest.mark.parametrize(
    "deltas",
    [
        [{"content": "Let me"}, {"content": " look."}, {"tool_calls": [CALL]}],
        [{"content": "Let me look.", "tool_calls": [CALL]}],
    ],
    ids=["chunks in one read", "one chunk"],
)
def test_words_that_come_together_with_the_call_are_not_taken_for_the_answer_after_it(deltas, knows_llm):
    llm = service_of(*deltas, {"tool_calls": [REST]}, "tool_calls", tool_s=9.0)
    mixer, tap = create(RATE, llm=llm if knows_llm else None, rules=CueRules(profile="minimal"))
    phases = []

    async def speak(send, clock):
        await clock.sleep(0.3)
        await say(send, steady_voice(1.0))
        await clock.sleep(2.0)
        phases.append(mixer.router.phase)

    ask(llm, mixer, tap, then=speak, lasts_s=5.0)
    assert phases == ["working"]
    (waiting,) = (span for span in mixer.router.spans if span.cue == "working")
    assert waiting.start_s == pytest.approx(1.3 + 2.5, abs=0.1)  # minimal: 2.5 s after the words


@pytest.mark.parametrize("is_watched", [True, False])
@pytest.mark.parametrize("kind", [OpenAILLMService, SambaNovaLLMService])
def test_every_service_of_that_api_answers_as_it_does_without_cues(kind, is_watched):
    llm = service_of({"content": "Let me look."}, {"tool_calls": [CALL]}, {"tool_calls": [REST]}, kind=kind)
    mixer, tap = create(RATE, llm=llm if is_watched else None)
    ask(llm, mixer, tap)
    assert len(llm.ran) == 1
    assert [span.cue for span in mixer.router.spans if span.cue != "working"] == ["tool_call", "success"]
    assert llm.chunks.is_closed


def test_a_call_that_an_interruption_overtakes_in_the_queue_is_silent():
    async def script(send, clock):
        await send(called("1"))
        await send(InterruptionFrame())
        await clock.sleep(10.0)

    _, mixer = play(script)
    assert not mixer.router.spans
    assert mixer.router.is_over


def test_a_call_that_is_named_in_the_moment_of_an_interruption_is_not_awaited():
    llm = service_of(
        {"content": "Let me look."}, 0.5, {"tool_calls": [CALL]}, 1.0, {"tool_calls": [REST]}, "tool_calls"
    )
    mixer, tap = create(RATE, llm=llm)

    async def interrupt(send, clock):
        await clock.sleep(0.5)
        await send(InterruptionFrame())

    ask(llm, mixer, tap, then=interrupt, lasts_s=10.0)
    assert "working" not in [span.cue for span in mixer.router.spans if span.end_s > span.start_s]
    assert (llm.ran, mixer.router.is_over) == ([], True)


@pytest.mark.parametrize("call", [False, True], ids=["answer", "words and a call"])
def test_after_text_that_is_not_for_the_voice_no_voice_is_awaited(call):
    def unspoken(text):
        frame = LLMTextFrame(text)
        frame.skip_tts = True
        return frame

    async def script(send, clock):
        await send(LLMFullResponseStartFrame())
        await send(unspoken("Let me look."))
        if call:
            await send(called("1"))
            await send(LLMFullResponseEndFrame())
            await clock.sleep(0.5)
            await send(result("1"))
            await send(LLMFullResponseStartFrame())
            await send(unspoken("It is dark."))
        await send(LLMFullResponseEndFrame())
        await clock.sleep(30.0)

    _, mixer = play(script)
    assert {span.cue for span in mixer.router.spans if span.end_s > span.start_s} <= {"tool_call", "success"}
    assert mixer.router.is_over


@pytest.mark.parametrize("before", [[], [LLMTextFrame("Let me look.")]], ids=["a call", "words and a call"])
def test_an_empty_answer_to_a_result_ends_the_turn(before):
    async def script(send, clock):
        for frame in (LLMFullResponseStartFrame(), *before, called("1"), LLMFullResponseEndFrame()):
            await send(frame)
        if before:
            await say(send, speech()[:RATE])
        await clock.sleep(2.0)
        for frame in (result("1"), LLMFullResponseStartFrame(), LLMFullResponseEndFrame()):
            await send(frame)
        await clock.sleep(70.0)

    _, mixer = play(script)
    assert {span.cue for span in mixer.router.spans if span.end_s > span.start_s} == {"tool_call", "success"}
    assert mixer.router.is_over


@pytest.mark.parametrize("reason", ["length", "tool_calls", "stop", None])
@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ('{"path": "a', "error"),
        ('{"path": }', "error"),
        ('{"path": "a\nb"}', "error"),
        ('{}{"path": "a"}', "error"),
        ("path=a", "error"),
        ('```json\n{"path": "a"}\n```', "error"),
        ("  ", "error"),
        ('{"path": "a"}', "success"),
        ('{"path": NaN}', "success"),
        ("", "success"),
    ],
    ids=[
        "cut off",
        "malformed",
        "a raw line end",
        "two",
        "no JSON",
        "a fence",
        "white space",
        "complete",
        "NaN",
        "none",
    ],
)
@pytest.mark.parametrize(("n_first", "call_id"), [(3, "1"), (None, "1"), (3, None)], ids=["pieces", "whole", "no id"])
def test_a_structured_call_whose_arguments_pipecat_cannot_read_sounds_as_an_error(
    arguments, outcome, n_first, call_id, reason
):
    call = CALL | {"id": call_id, "function": {"name": "read_file", "arguments": arguments[:n_first]}}
    rest = {"index": 0, "function": {"arguments": arguments[n_first:] if n_first else ""}}
    llm = service_of({"tool_calls": [call]}, {"tool_calls": [rest]}, *([reason] if reason else []))
    mixer, tap = create(RATE, llm=llm)
    ask(llm, mixer, tap)
    assert [span.cue for span in mixer.router.spans if span.cue != "working"] == ["tool_call", outcome]
    assert len(llm.ran) == (outcome == "success")
    assert not mixer.router.waits


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"tools": "get_weather"}, "tools: 'get_weather' is one text"),
        ({"channels": 3}, "channels is 3; it must be"),
        ({"wrap": 3}, "wrap is 3; it must be a BaseAudioMixer"),
        ({"is_error": True}, "is_error is True; it must be a function"),
        ({"llm": 3}, "llm is 3; it must be an LLMService"),
    ],
    ids=str,
)
def test_an_option_of_another_type_or_range_is_refused(option, message):
    with pytest.raises((cues.CueError, StreamError), match=message):
        create(**option)
