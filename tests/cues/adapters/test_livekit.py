"""LiveKit Agents, the real package: an output in its audio chain, and a whole session whose model calls tools."""

import asyncio
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from livekit import rtc
from livekit.agents import AgentSession

import cues
from cues.adapters.livekit import CueOutput, attach, cue_frames
from cues.errors import CueTypeError, CueValueError
from cues.signal.fades import raised_cosine
from cues.signal.pcm import float_of_pcm16
from stream.events import ToolCallStart, ToolResult
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, speech, splatter_db, steady_voice
from tests.support.livekit_session import ListSink, frames_of, say
from tests.support.virtual_loop import LoopClock, run_virtually

CHUNK = round(0.02 * RATE)
LEAD_S = 0.04
FADE_S = 0.03


def run(script, **options):
    """Run `script(output, clock)`; the sink and the playback events."""

    async def go():
        clock = LoopClock()
        sink, events = ListSink(clock), []
        output = CueOutput(sink, clock=clock, **options)
        output.on("playback_started", lambda _: events.append((clock.now(), "started", None)))
        output.on("playback_finished", lambda event: events.append((clock.now(), "finished", event)))
        await script(output, clock)
        await output.aclose()
        assert len(asyncio.all_tasks()) == 1
        return sink, events, output

    return run_virtually(go)


def test_speech_is_paced_whole_and_reported_as_played():
    x = speech()

    async def script(output, clock):
        await say(output, x)
        await clock.sleep(len(x) / RATE + 0.5)

    sink, events, _ = run(script)
    signal = np.concatenate([frame for _, frame in sink.frames])
    assert np.array_equal(signal[: len(x)], np.rint(x * 32768.0) / 32768.0)
    for n, (at_s, _) in enumerate(sink.frames):
        assert n * 0.02 - LEAD_S - 1e-6 <= at_s <= n * 0.02 + 1e-6
    assert [kind for _, kind, _ in events] == ["started", "finished"]
    assert events[1][2].playback_position == pytest.approx(len(x) / RATE)
    assert not events[1][2].interrupted
    assert len(x) / RATE - 0.03 <= events[1][0] <= len(x) / RATE + 0.1


@pytest.mark.parametrize("known_s", [1.001, 1.0195])
@pytest.mark.parametrize("speaking", [True, False], ids=["while speaking", "in silence"])
def test_the_cue_begins_within_two_chunks(speaking, known_s):
    async def script(output, clock):
        output.start()
        if speaking:
            await say(output, steady_voice(3.0))
        await clock.sleep(known_s)
        output.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(4.0)

    with_cue, without = run(script)[0].signal(), run(script, bank={})[0].signal()
    without = np.pad(without, (0, max(0, len(with_cue) - len(without))))
    onset = first_sound(with_cue - without[: len(with_cue)])
    assert known_s * RATE - 1 <= onset <= known_s * RATE + 2 * CHUNK


def test_a_cue_makes_the_speech_no_longer_moves_no_transcript_and_clicks_nowhere():
    x = speech()

    async def script(output, clock):
        await say(output, x)
        await clock.sleep(0.5)
        output.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(0.6)
        output.router.handle(ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content=""))
        await clock.sleep(len(x) / RATE)

    (a, events_a, _), (b, events_b, _) = run(script), run(script, bank={})
    with_cue, without = a.signal(), b.signal()
    assert last_sound(with_cue) == last_sound(without)
    assert new_clicks(with_cue[: len(without)], without) == []
    assert events_a[-1][2].playback_position == events_b[-1][2].playback_position


def tones():
    """A tone with soft edges, and its beginning, which ends in mid-sound."""
    tone = 0.4 * np.sin(2 * np.pi * 220 * np.arange(RATE) / RATE)
    tone[:480] *= raised_cosine(480)
    tone[-480:] *= raised_cosine(480)[::-1]
    return tone, tone[:12060]


@pytest.mark.parametrize("waits_s", [0.0, 0.1, 0.47], ids=lambda s: f"after {s:g} s")
def test_a_segment_that_ends_in_mid_sound_fades_out_under_the_next_one_that_waits(waits_s):
    tone, cut = tones()

    async def script(output, clock):
        await say(output, cut)
        await clock.sleep(waits_s)
        await say(output, tone)
        await clock.sleep(2.0)

    sink, events, _ = run(script)
    assert splatter_db(np.append(cut, tone), 4000) > -40, "what it would be without"
    assert splatter_db(sink.signal(), 4000) < -65, "the noise of int16"
    positions = [event.playback_position for _, kind, event in events if kind == "finished"]
    assert positions == pytest.approx([len(cut) / RATE, 1.0])


@pytest.mark.parametrize("pauses_s", [0.36, 0.4, 0.44, 0.48], ids=lambda s: f"at {s:g} s")
def test_it_does_so_too_after_a_pause_shortly_before_its_end(pauses_s):
    tone, cut = tones()

    async def script(output, clock):
        await say(output, cut)
        await say(output, tone)
        await clock.sleep(pauses_s)
        output.pause()
        await clock.sleep(1.0)
        output.resume()
        await clock.sleep(2.0)

    sink, events, _ = run(script, bank={})
    assert splatter_db(sink.signal(), 4000) < -60, "as without the segment's end"
    positions = [event.playback_position for _, kind, event in events if kind == "finished"]
    assert positions == pytest.approx([len(cut) / RATE, 1.0])


def test_a_cue_in_silence_opens_no_segment():
    async def script(output, clock):
        output.start()
        output.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(2.0)

    sink, events, output = run(script)
    assert events == []
    assert output.captured_playout_segments == 0
    assert first_sound(sink.signal()) is not None


@pytest.mark.parametrize("moment_s", [0.5, 1.1, 4.6], ids=["speech", "cue", "waiting sound"])
def test_a_cleared_buffer_fades_and_reports_what_was_heard(moment_s):
    async def script(output, clock):
        await say(output, steady_voice(1.5 if moment_s > 2 else 10.0))
        await clock.sleep(min(1.0, moment_s))
        output.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(moment_s - clock.now())
        output.clear_buffer()
        output.clear_buffer()  # The framework does it twice.
        await output.wait_for_playout()
        waited_s.append(clock.now() - moment_s)
        await clock.sleep(1.0)
        output.router.handle(
            ToolResult(tool_name="read_file", tool_call_id="1", is_error=True, content="")
        )  # Late: its turn is over.
        await clock.sleep(5.0)

    waited_s = []
    sink, events, _ = run(script)
    signal = sink.signal()
    after = np.concatenate([frame for at_s, frame in sink.frames if at_s >= moment_s])
    assert last_sound(after, 0.0) < FADE_S * RATE + CHUNK
    assert last_sound(signal, 0.0) <= (moment_s + LEAD_S + FADE_S) * RATE
    assert new_clicks(signal, np.zeros_like(signal)) == []
    assert waited_s[0] <= LEAD_S + FADE_S + 0.04
    if moment_s < 2:
        finished = events[-1][2]
        assert finished.interrupted
        assert moment_s <= finished.playback_position <= moment_s + LEAD_S + FADE_S + 0.001


def test_after_a_cleared_buffer_the_next_answer_is_heard_from_its_first_word():
    x = speech("Papa, hear me.")

    async def script(output, clock):
        await say(output, steady_voice(5.0))
        await clock.sleep(1.0)
        output.clear_buffer()
        await output.wait_for_playout()
        at_s.append(clock.now())
        await say(output, x)
        await clock.sleep(len(x) / RATE + 0.5)

    at_s = []
    sink, events, _ = run(script)
    after = sink.signal()[round(at_s[0] * RATE) :]
    assert np.abs(after).max() == pytest.approx(np.abs(x).max(), rel=0.02)
    assert [kind for _, kind, _ in events] == ["started", "finished", "started", "finished"]
    assert events[-1][2].playback_position == pytest.approx(len(x) / RATE)


def test_a_pause_fades_and_resume_goes_on_where_it_was():
    x = steady_voice(3.0)

    async def script(output, clock):
        await say(output, x)
        await clock.sleep(1.0)
        output.pause()
        await clock.sleep(2.0)
        output.resume()
        await clock.sleep(3.0)

    sink, events, _ = run(script)
    signal = sink.signal()
    assert set(sink.told) == {"flush"}  # of the sink's segment, which ends in a long silence
    assert not signal[round(1.2 * RATE) : round(2.9 * RATE)].any()
    assert new_clicks(signal, np.zeros_like(signal)) == []
    # All speech is played; the fades at the pause cost at most 50 ms of it.
    n_heard = int(np.sum([len(frame) for _, frame in sink.frames]))
    assert len(x) <= n_heard <= len(x) + 4 * CHUNK
    assert events[-1][2].playback_position == pytest.approx(3.0)
    assert 4.8 <= events[-1][0] <= 5.2


def test_speech_resumes_without_a_click_after_a_cue_in_the_pause():
    async def script(output, clock):
        await say(output, steady_voice(3.0))
        await clock.sleep(1.0)
        output.pause()
        await clock.sleep(0.5)
        output.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(1.5)
        output.resume()
        await clock.sleep(3.0)

    sink, *_ = run(script)
    signal = sink.signal()
    assert new_clicks(signal, np.zeros_like(signal)) == []


def silent_bank():
    """The built-in cues without their sound, so that the speech alone is heard."""
    return {name: replace(cue, samples=np.zeros_like(cue.samples)) for name, cue in cues.load_bank().items()}


@pytest.mark.parametrize("goes_on_s", [0.23, 0.6, 0.75], ids=["before the pause", "in it", "after it"])
@pytest.mark.parametrize("calls_s", [(0.1, 0.45), (0.24,), (0.1, 0.3)], ids=str)
@pytest.mark.parametrize("paused_s", [0.17, 0.25], ids=["with its last samples", "later"])
def test_speech_that_runs_dry_goes_on_after_a_pause_without_a_step(paused_s, calls_s, goes_on_s):
    n, loud = round(0.207 * RATE), 0.9 * np.sin(2 * np.pi * 440.0 * np.arange(RATE) / RATE)

    async def script(output, clock):
        def call(call_id):
            output.router.handle(ToolCallStart("read_file", call_id))

        async def go_on():
            for frame in frames_of(loud[n:]):
                await output.capture_frame(frame)

        for frame in frames_of(loud[:n]):
            await output.capture_frame(frame)
        steps = [(at_s, partial(call, str(at_s))) for at_s in calls_s]
        steps += [(paused_s, output.pause), (0.7, output.resume), (goes_on_s, go_on)]
        for at_s, step in sorted(steps, key=lambda step: step[0]):
            await clock.sleep(at_s - clock.now())
            if (told := step()) is not None:
                await told
        output.flush()
        await clock.sleep(2.0)

    sink, *_ = run(script, bank=silent_bank())
    signal = sink.signal()[:-1]
    heard = signal[: 1 + last_sound(signal)]
    assert len(heard) > RATE  # it goes on
    assert np.abs(np.diff(heard)).max() <= 1.01 * 0.9 * 2 * np.pi * 440.0 / RATE


def test_a_barge_in_reports_all_segments_also_those_that_were_not_yet_spoken():
    async def script(output, clock):
        await say(output, steady_voice(2.0))
        await say(output, steady_voice(2.0))
        await clock.sleep(0.5)
        output.clear_buffer()
        await asyncio.wait_for(output.wait_for_playout(), 5.0)

    _, events, _ = run(script)
    assert events[-1][0] < 0.7
    finished = [event for _, kind, event in events if kind == "finished"]
    assert [event.interrupted for event in finished] == [True, True]
    assert [event.playback_position for event in finished] == [pytest.approx(0.55, abs=0.03), 0.0]


def test_frames_of_another_rate_are_converted():
    async def script(output, clock):
        await say(output, steady_voice(1.0, rate=16000), rate=16000)
        await clock.sleep(2.0)

    sink, _, _ = run(script)
    assert last_sound(sink.signal()) == pytest.approx(RATE, rel=0.03)
    assert new_clicks(sink.signal(), np.zeros(1)) == []


def test_frames_of_two_channels_are_refused_with_a_sentence():
    async def script(output, clock):
        with pytest.raises(CueValueError, match="2 channels"):
            await output.capture_frame(rtc.AudioFrame(bytes(1280), RATE, 2, 320))

    run(script)


def test_attaching_before_the_session_has_an_output_is_refused_with_a_sentence():
    async def go():
        with pytest.raises(CueTypeError, match=r"after `await session\.start"):
            attach(AgentSession())

    asyncio.run(go())


def test_a_loop_as_a_track_of_another_rate_has_no_click_at_its_seam():
    at = np.arange(RATE) / RATE
    pad = np.sin(2.0 * np.pi * 220.0 * at + 1.0) + 0.5 * np.sin(2.0 * np.pi * 331.0 * at)  # whole periods in a second
    cue = cues.Cue(name="pad", samples=(0.1 * pad).astype(np.float32), sample_rate=RATE, loop=True)

    async def go():
        frames = cue_frames(cue, sample_rate=2 * RATE, loop=True)
        return np.concatenate([float_of_pcm16(bytes((await anext(frames)).data)) for _ in range(150)])

    bends = np.abs(np.diff(asyncio.run(go()), 2))
    seam, period = slice(2 * RATE - 200, 2 * RATE + 200), slice(RATE // 2, RATE + RATE // 2)
    assert bends[seam].max() <= 1.01 * bends[period].max() + 2.0**-15


@pytest.mark.parametrize("loop", [False, True], ids=["once", "loop"])
def test_a_cue_as_a_track_of_its_own_has_every_sample(loop):
    cue = cues.load_bank()["tool_call"]

    async def go():
        frames = []
        async for frame in cue_frames(cue, sample_rate=24000, loop=loop):
            frames.append(float_of_pcm16(bytes(frame.data)))
            if len(frames) >= 40:
                break
        return np.concatenate(frames)

    samples = asyncio.run(go())
    expected = np.rint(cue.samples * 32768.0) / 32768.0
    assert np.array_equal(samples[: len(cue)], expected)
    if loop:
        assert np.array_equal(samples[len(cue) : 2 * len(cue)], expected)
    else:
        assert not samples[len(cue) :].any()
        assert len(samples) < len(cue) + 480
