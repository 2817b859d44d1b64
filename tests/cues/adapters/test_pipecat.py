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
    MixerControlFrame,
    MixerEnableFrame,
    MixerUpdateSettingsFrame,
)
from pipecat.processors.frame_processor import FrameProcessor

import cues
from cues.adapters.pipecat import CueFrame, create
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.signal.prediction import faded_continuation
from stream.errors import StreamError
from stream.events import ToolCallStart
from stream.routing.rules import CueRules
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, speech, steady_voice
from tests.support.pipecat_pipeline import CHUNK_S, run_pipeline, say
from tests.support.talks.pipecat import PipecatTalk
from tests.support.turn_matrix import CHAIN
from tests.support.turn_matrix import play as play_turn

CHUNK = round(CHUNK_S * RATE)
FADE = round(0.03 * RATE)
SILENT = {}


def called(*ids, name="read_file"):
    return FunctionCallsStartedFrame([FunctionCallFromLLM(name, call_id, {}, None) for call_id in ids])


def result(call_id, name="read_file", **options):
    return FunctionCallResultFrame(name, call_id, {}, options.pop("value", "text"), **options)


def play(script, **options):
    """The sound, and the mixer."""
    mixer, tap = create(RATE, 1, **options)
    return run_pipeline(mixer, [tap], script), mixer


def onset_of_first(mixer):
    return next(iter(mixer.router.spans)).start_samples


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


@pytest.mark.parametrize("speaking", [True, False], ids=["while speaking", "in silence"])
def test_the_cue_begins_within_two_chunks_of_the_call(speaking):
    async def script(send, clock):
        if speaking:
            await say(send, steady_voice(3.0))
        await clock.sleep(1.013)
        await send(called("1"))
        await clock.sleep(1.0)

    with_cue, mixer = play(script)
    without, _ = play(script, bank=SILENT)
    onset = first_sound(with_cue - without)
    assert 1.013 * RATE <= onset <= 1.013 * RATE + 2 * CHUNK
    assert mixer.router.stats.played == 1


def test_a_cue_makes_the_speech_no_longer_and_clicks_nowhere():
    x = speech()

    async def script(send, clock):
        await say(send, x)
        await clock.sleep(0.5)
        await send(called("1"))
        await clock.sleep(0.7)
        await send(result("1"))
        await clock.sleep(len(x) / RATE)

    with_cue, _ = play(script)
    without, _ = play(script, bank=SILENT)
    assert len(with_cue) == len(without)
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
        (FunctionCallCancelFrame("read_file", "1"), []),
    ],
    ids=["result", "raised", "result that says error", "intermediate", "cancelled"],
)
def test_only_the_final_result_decides_how_it_ended(frame, cue):
    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(0.5)
        await send(frame)
        await clock.sleep(0.5)

    _, mixer = play(script, is_error=lambda value: isinstance(value, dict) and "error" in value)
    assert [span.cue for span in mixer.router.spans if span.cue not in ("working", "tool_call")] == cue


def test_a_call_of_thirty_seconds_gets_one_waiting_sound_that_goes_on_through_another_call():
    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(15.0)
        await send(called("2"))
        await clock.sleep(15.0)
        await send(result("1"))
        await clock.sleep(2.0)
        await send(result("2"))
        await clock.sleep(3.0)
        await say(send, steady_voice(1.0))
        await clock.sleep(5.0)

    heard, mixer = play(script, rules=CueRules(success=None))
    (working,) = [span for span in mixer.router.spans if span.cue == "working"]
    assert 3.5 <= working.start_s <= 4.0
    assert 35.0 <= working.end_s <= 35.0 + 2 * CHUNK_S + 0.03
    assert not heard[round(36.2 * RATE) :].any()
    assert np.abs(heard[round(4 * RATE) : round(35 * RATE)]).max() > 0.001


def test_speech_ends_the_waiting_sound_and_the_next_silence_of_the_same_call_brings_it_back():
    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(6.0)
        await say(send, steady_voice(2.0))
        await clock.sleep(8.0)
        await send(FunctionCallCancelFrame("read_file", "1"))
        await clock.sleep(0.5)

    _, mixer = play(script)
    working = [span for span in mixer.router.spans if span.cue == "working"]
    assert len(working) == 2
    assert working[0].end_s <= 6.0 + 2 * CHUNK_S + 0.03
    assert 11.4 <= working[1].start_s <= 11.6
    assert working[1].end_s <= 14.0 + 2 * CHUNK_S + 0.03


@pytest.mark.parametrize("moment_s", [0.5, 1.06, 5.06], ids=["speech", "cue", "waiting sound"])
def test_an_interruption_is_over_after_its_fade_and_one_chunk_and_nothing_comes_later(moment_s):
    async def script(send, clock):
        await say(send, steady_voice(1.5 if moment_s > 2 else 5.0))
        await clock.sleep(min(moment_s, 1.0))
        await send(called("1"))
        await clock.sleep(moment_s - clock.now())
        await send(InterruptionFrame())
        await clock.sleep(2.0)
        await send(result("1"))  # The tool of the cancelled turn ends late.
        await clock.sleep(6.0)

    heard, _ = play(script)
    at = round(moment_s * RATE)
    assert np.abs(heard[at - RATE // 4 : at]).max() > 0.001
    assert last_sound(heard, 0.0) <= at + FADE + CHUNK
    assert new_clicks(heard, np.zeros_like(heard)) == []


def test_the_end_that_interrupted_speech_gets_has_the_speechs_own_scale():
    mixer, _ = create(RATE)
    chunk = pcm16_of_float(steady_voice(1.0, level=0.6)[: -RATE // 4][-CHUNK:])

    async def interrupted():
        await mixer.mix(chunk)
        mixer.take(CueFrame())
        return await mixer.mix(bytes(len(chunk)))

    end = faded_continuation(float_of_pcm16(chunk), FADE)
    assert asyncio.run(interrupted())[: 2 * FADE] == pcm16_of_float(end)


def test_an_interruption_does_not_silence_the_next_answer():
    async def script(send, clock):
        await say(send, steady_voice(3.0))
        await clock.sleep(1.0)
        await send(InterruptionFrame())
        await clock.sleep(0.5)
        await say(send, steady_voice(1.0))
        await send(called("2"))
        await clock.sleep(1.5)

    heard, _ = play(script)
    assert np.abs(heard[round(1.6 * RATE) : round(2.4 * RATE)]).max() > 0.1


def test_what_the_tap_says_reaches_the_mixer_as_control_frames_too():
    seen = []

    class Watcher(FrameProcessor):
        async def process_frame(self, frame, direction):
            await super().process_frame(frame, direction)
            if isinstance(frame, MixerControlFrame):
                seen.append(frame)
            await self.push_frame(frame, direction)

    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(0.5)
        await send(InterruptionFrame())
        await clock.sleep(0.5)

    mixer, tap = create(RATE)
    run_pipeline(mixer, [tap, Watcher()], script)
    assert [type(frame.event).__name__ for frame in seen] == ["ToolCallStart", "ToolCallEnd", "NoneType"]
    assert all(isinstance(frame, CueFrame) for frame in seen)
    assert mixer.router.stats.played == 1


class Hum(BaseAudioMixer):
    """A wrapped mixer: a constant offset, so that it can be told from everything."""

    def __init__(self):
        self.told, self.on, self.rate = [], True, None

    async def start(self, sample_rate):
        self.rate = sample_rate

    async def stop(self):
        self.told.append("stop")

    async def process_frame(self, frame):
        self.told.append(type(frame).__name__)

    async def mix(self, audio):
        return (np.frombuffer(audio, dtype="<i2") + np.int16(100)).tobytes()


def test_another_mixer_is_wrapped_and_gets_its_own_frames():
    hum = Hum()

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
    class Music(Hum):
        async def mix(self, audio):
            return (np.frombuffer(audio, dtype="<i2") + np.int16(3000)).tobytes()

    heard, *_ = play_turn(PipecatTalk, CHAIN, lasts_s=30.0, wrap=Music())
    (waiting,) = heard.waiting
    assert waiting.end_s - waiting.start_s > 10.0


def test_the_transports_sample_rate_counts_and_cues_keep_their_pitch():
    async def script(send, clock):
        await clock.sleep(0.5)
        await send(called("1"))
        await clock.sleep(1.0)

    mixer, tap = create(24000, bank=cues.load_bank())
    heard = run_pipeline(mixer, [tap], script, rate=16000)
    cue = heard[first_sound(heard) : last_sound(heard)]
    spectrum = np.abs(np.fft.rfft(cue, 16000))
    assert 640 <= np.argmax(spectrum) <= 900  # Hz; the tool call's chirp is of 660 and 880 Hz.


def test_what_was_switched_and_subscribed_before_the_start_holds_at_the_transports_rate():
    told = []

    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(0.5)
        await send(result("1"))
        await clock.sleep(0.5)

    mixer, tap = create(24000)
    router = mixer.router
    router.mute("success")
    router.spans.subscribe(told.append)
    run_pipeline(mixer, [tap], script, rate=16000)
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
    passed = []

    class Watcher(FrameProcessor):
        async def process_frame(self, frame, direction):
            await super().process_frame(frame, direction)
            passed.append(frame)
            await self.push_frame(frame, direction)

    async def script(send, clock):
        await send(called("1"))
        await clock.sleep(0.5)
        await send(result("1", value=value))
        await clock.sleep(0.5)

    mixer, tap = create(RATE, is_error=is_error)
    run_pipeline(mixer, [tap, Watcher()], script)
    assert [frame.result for frame in passed if isinstance(frame, FunctionCallResultFrame)] == [value]
    assert "no cue for FunctionCallResultFrame" in caplog.text


def test_an_early_cue_sounds_when_the_models_stream_names_the_call_and_only_once():
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.services.openai.llm import OpenAILLMService

    from stream.replay.recording import load_recording, samples_folder
    from stream.replay.server import ReplayServer

    recording = load_recording(samples_folder() / "llama-server" / "hermes-text-and-call.sse")

    async def go():
        async with ReplayServer([recording], tokens_per_s=2000.0) as server:
            llm = OpenAILLMService(
                api_key="none", base_url=server.base_url, settings=OpenAILLMService.Settings(model="replay")
            )
            asked = llm.get_chat_completions
            mixer, tap = create(RATE, early=llm)
            sounded_at, n_chunks = None, 0
            chunks = await llm.get_chat_completions(LLMContext([{"role": "user", "content": "hi"}]))
            async for _ in chunks:
                n_chunks += 1
                if sounded_at is None and mixer.router.stats.played:
                    sounded_at = n_chunks
            await chunks.close()
            await llm._client.close()
            await tap.cleanup()  # as Pipecat does when the pipeline ends
            assert llm.get_chat_completions == asked
            # Pipecat tells of the same call when the stream has ended.
            call = next(iter(mixer.router._calls.awaited))
            for told in tap._meaning(called(call.tool_call_id, name=call.tool_name)):
                mixer.take(told)
            return sounded_at, n_chunks, mixer.router.stats

    sounded_at, n_chunks, stats = asyncio.run(go())
    assert sounded_at < n_chunks - 3  # The arguments were still to come.
    assert stats.played == 1
    assert stats.coalesced == 0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"bank": "my-sounds"}, "bank is 'my-sounds'; it must be a mapping of cues by name"),
        ({"rules": {"read_*": "agent"}}, "rules is .*; it must be stream.CueRules"),
        ({"tools": "get_weather"}, "tools: 'get_weather' is one text"),
        ({"channels": 0}, "channels is 0; it must be"),
        ({"channels": 3}, "channels is 3; it must be"),
        ({"channels": "2"}, "channels is '2'; it must be"),
        ({"wrap": 3}, "wrap is 3; it must be a BaseAudioMixer"),
        ({"is_error": True}, "is_error is True; it must be a function"),
        ({"early": 3}, "early is 3; it must be an LLM service"),
        ({"sample_rate": "24000"}, "sample_rate is '24000'; it must be"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_told_when_the_mixer_is_made(option, message):
    with pytest.raises((cues.CueError, StreamError), match=message):
        create(**option)


def test_tools_may_be_declared_as_the_dicts_that_the_model_gets():
    mixer, _ = create(RATE, tools=[{"type": "function", "function": {"name": "get_weather"}}])
    assert mixer.router.handle(ToolCallStart("get_weather", "1")).cue == "tool_call"
    assert mixer.router.handle(ToolCallStart("get_wether", "2")).cue == "error"
