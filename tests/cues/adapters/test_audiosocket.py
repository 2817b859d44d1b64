"""A call from Asterisk over TCP on loopback: what the caller hears, and what the messages say."""

import asyncio

import numpy as np
import pytest

import cues
from cues.adapters._paced import PacedCues
from cues.adapters.audiosocket import AudioSocketLine, CallerAudio, Digit, Started, Stopped
from stream.events import ToolCallStart
from stream.routing.rules import CueRules, Limits
from tests.support.listening import steady_voice
from tests.support.phone_calls import CALL_ID, FRAME, OPENING, asterisk_call, message
from tests.support.virtual_loop import LoopClock, run_virtually


@pytest.mark.parametrize(("kind", "rate"), [(0x10, 8000), (0x12, 16000), (0x16, 48000)])
def test_a_cue_is_sent_at_the_callers_rate_and_with_its_level(kind, rate):
    async def script(line, _clock):
        line.router.handle(ToolCallStart("read_file", "1"))

    asterisk, _ = asterisk_call(
        script, opening=(OPENING, message(kind, b"\0" * 640)), rate=rate, rules=CueRules(working=None)
    )
    assert asterisk.kinds == {kind}
    cue = cues.load_bank(sample_rate=rate)["tool_call"]
    assert cues.measure(asterisk.signal(), rate).m100_max_lufs == pytest.approx(cue.measured.m100_max_lufs, abs=0.3)


def test_a_greeting_from_before_the_callers_first_audio_is_heard_whole_though_that_has_another_rate():
    x, audio = steady_voice(1.0, 8000), message(0x12, b"\0" * 640)

    async def script(line, clock):
        line.push(x, 8000)
        line.end()
        await clock.sleep(0.05)
        line.feed(audio)
        await clock.sleep(1.5)
        line.feed(audio)
        line.push(steady_voice(1.0, 8000), 8000)

    asterisk, _ = asterisk_call(script, opening=(OPENING,), bank={})
    assert np.abs(asterisk.signal()[: len(x)] - x).max() < 2 / 32768
    assert asterisk.kinds == {0x10, 0x12}


STREAM = (
    OPENING + FRAME + message(0x03, b"5") + message(0x77, b"what?") + message(0x01, b"short") + message(0x10, b"\0")
)


def test_a_peer_that_changes_its_rate_with_each_message_gets_a_new_mixer_once_a_second():
    async def go():
        clock = LoopClock()
        line, pacers = AudioSocketLine(lambda _data: None, bank={}, clock=clock), set()
        for _ in range(5):
            line.feed(b"".join(message(0x10 + n % 9, b"") for n in range(2000)))
            pacers.add(line.pacer)
            await clock.sleep(0.5)
        return len(pacers)

    assert run_virtually(go) == 3


@pytest.mark.parametrize("rates", [(24000, 8000), (24000, 16000), (8000, 24000)])
def test_speech_that_changes_its_rate_in_between_is_heard_whole_and_in_order(rates):
    def word(rate):
        n = np.arange(rate)
        return (0.3 * np.hanning(rate) * np.sin(2 * np.pi * 300 * n / rate)).astype(np.float32)

    async def script(line, clock):
        for rate in rates:
            line.push(word(rate)[: -rate // 10], rate)  # ends in mid-sound
        line.end()
        await clock.sleep(3.0)

    asterisk, _ = asterisk_call(script, opening=(OPENING,), bank={})
    whole = np.concatenate([word(8000)[:7200]] * 2)
    assert np.abs(asterisk.signal()[: len(whole)] - whole).max() < 0.01
    assert len(np.trim_zeros(asterisk.signal(), "b")) <= len(whole) + 160


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
def test_messages_cut_anywhere_say_the_same(size):
    line = AudioSocketLine(lambda _: None)
    events = [event for at in range(0, len(STREAM), size) for event in line.feed(STREAM[at : at + size])]
    assert [type(event) for event in events] == [Started, CallerAudio, Digit, CallerAudio]
    assert [len(event.samples) for event in events if isinstance(event, CallerAudio)] == [160, 0]
    assert (events[0], events[2]) == (Started(stream_id=str(CALL_ID), law=None), Digit("5"))


@pytest.mark.parametrize("last", [message(0x00), message(0xFF, b"\1")], ids=["hangup", "error"])
def test_a_hangup_and_an_error_end_the_line(last):
    async def go():
        line = AudioSocketLine(lambda _: None)
        running = asyncio.create_task(line.run())
        await asyncio.sleep(0)
        assert line.feed(OPENING + last)[1:] == [Stopped()]
        await running
        await line.played()

    run_virtually(go)


@pytest.mark.parametrize("rates", [(8000, 48000), (48000, 8000)])
def test_at_another_rate_the_time_for_limits_and_coalescing_is_still_that_of_the_clock(rates):
    async def script():
        clock = LoopClock()
        paced = PacedCues({"clock": clock, "limits": Limits(tool_s=20.0)}, sample_rate=rates[0])
        await clock.sleep(100.0)
        paced.router.handle(ToolCallStart("read_file", "1"))
        paced.retune(rates[1])
        for call_id in "23":  # the second coalesces with the first
            paced.router.handle(ToolCallStart("read_file", call_id))
            await clock.sleep(0.05)
        await clock.sleep(19.0)
        in_time = paced.router.overdue()
        await clock.sleep(1.5)
        return in_time, paced.router.overdue(), paced.router.stats

    in_time, late, stats = run_virtually(script)
    assert (in_time, late.code) == (None, "stalled")
    assert (stats.played, stats.coalesced) == (2, 1)
