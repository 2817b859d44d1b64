"""A call from Asterisk over TCP on loopback: what the caller hears, and what the messages say."""

import asyncio
import uuid

import numpy as np
import pytest

import cues
from cues.adapters._paced import PacedCues
from cues.adapters.audiosocket import AudioSocketLine, CallerAudio, Digit, Started, Stopped
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from cues.signal.resample import resample
from stream.events import ToolCallStart
from stream.routing.rules import CueRules, Limits
from tests.support.listening import first_sound, last_sound, new_clicks, speech, steady_voice
from tests.support.virtual_loop import LoopClock, run_virtually

CALL_ID = uuid.UUID("40325ec2-5efd-4bd3-805f-53576e581d13")


def message(kind, payload=b""):
    return bytes([kind]) + len(payload).to_bytes(2, "big") + payload


FRAME = message(0x10, pcm16_of_float(steady_voice(0.02, 8000)))
OPENING = message(0x01, CALL_ID.bytes)


class Asterisk:
    """The client: it plays each frame as it comes, after those that still play."""

    def __init__(self, rate=8000):
        self.kinds, self.rate, self._heard = set(), rate, np.zeros(0, dtype=np.float32)

    async def listen(self, reader):
        while header := await reader.read(3):
            samples = float_of_pcm16(await reader.readexactly(int.from_bytes(header[1:], "big")))
            self.kinds.add(header[0])
            start = max(len(self._heard), round(LoopClock().now() * self.rate))
            self._heard = np.concatenate([np.pad(self._heard, (0, start - len(self._heard))), samples])

    def signal(self):
        return self._heard


def call(script, *, opening=(OPENING, FRAME), rate=8000, **options):
    """Run `script(line, clock)` during a call over TCP; what the caller heard, and what the line read."""

    async def go():
        clock, asterisk, events, has_begun = LoopClock(), Asterisk(rate), [], asyncio.Event()

        async def answer(reader, writer):
            line = AudioSocketLine(writer.write, clock=clock, **options)
            running = asyncio.create_task(line.run())
            talking = None
            while data := await reader.read(4096):
                events.extend(line.feed(data))
                talking = talking or asyncio.create_task(script(line, clock))
            await asyncio.wait([running])  # a hangup ends it
            await talking
            writer.close()
            has_begun.set()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            hearing = asyncio.create_task(asterisk.listen(reader))
            writer.write(b"".join(opening))
            await clock.sleep_until(8.0)
            writer.write(message(0x00))
            writer.write_eof()
            await has_begun.wait()
            await hearing
            writer.close()
        return asterisk, events

    return run_virtually(go)


def test_the_caller_hears_all_of_the_speech_at_its_pace():
    x = speech()

    async def script(line, clock):
        line.push(x, 24000)
        line.end()
        await line.played()
        played_s.append(clock.now())

    played_s = []
    asterisk, events = call(script)
    at_8k = resample(x, 24000, 8000)
    heard = asterisk.signal()[: len(at_8k)]
    assert np.abs(heard - at_8k).max() < 2 / 32768
    assert played_s[0] == pytest.approx(len(x) / 24000, abs=0.1)
    assert [type(event) for event in events] == [Started, CallerAudio, Stopped]
    assert events[0] == Started(stream_id=str(CALL_ID), law=None)


@pytest.mark.parametrize("known_s", [1.001, 1.013])
def test_a_cue_over_speech_is_heard_within_two_frames_and_one(known_s):
    async def script(line, clock):
        line.push(steady_voice(3.0), 24000)
        await clock.sleep_until(known_s)
        line.router.handle(ToolCallStart("read_file", "1"))

    with_cue, without = (call(script, **options)[0].signal() for options in ({}, {"bank": {}}))
    n = min(len(with_cue), len(without))
    onset = first_sound(with_cue[:n] - without[:n])
    assert known_s * 8000 <= onset <= (known_s + 0.06) * 8000


@pytest.mark.parametrize("moment_s", [0.5, 0.513, 1.1, 4.6], ids=["speech", "in a frame", "cue", "waiting sound"])
def test_a_barge_in_is_silent_within_80_ms_and_does_not_click(moment_s):
    async def script(line, clock):
        line.push(steady_voice(0.9 if moment_s > 2 else 10.0), 24000)
        await clock.sleep_until(min(1.0, moment_s))
        line.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep_until(moment_s)
        line.barge_in()

    heard = call(script)[0].signal()
    assert last_sound(heard, 0.0) <= (moment_s + 0.08) * 8000
    assert new_clicks(heard, np.zeros_like(heard), 8000) == []


@pytest.mark.parametrize(("kind", "rate"), [(0x10, 8000), (0x12, 16000), (0x16, 48000)])
def test_a_cue_is_sent_at_the_callers_rate_and_with_its_level(kind, rate):
    async def script(line, _clock):
        line.router.handle(ToolCallStart("read_file", "1"))

    asterisk, _ = call(script, opening=(OPENING, message(kind, b"\0" * 640)), rate=rate, rules=CueRules(working=None))
    assert asterisk.kinds == {kind}
    cue = cues.load_bank(sample_rate=rate)["tool_call"]
    assert cues.measure(asterisk.signal(), rate).m100_max_lufs == pytest.approx(cue.measured.m100_max_lufs, abs=0.3)


STREAM = (
    OPENING + FRAME + message(0x03, b"5") + message(0x77, b"what?") + message(0x01, b"short") + message(0x10, b"\0")
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
def test_messages_cut_anywhere_say_the_same(size):
    line = AudioSocketLine(lambda _: None)
    events = [event for at in range(0, len(STREAM), size) for event in line.feed(STREAM[at : at + size])]
    assert [type(event) for event in events] == [Started, CallerAudio, Digit, CallerAudio]
    assert [len(event.samples) for event in events if isinstance(event, CallerAudio)] == [160, 0]
    assert events[2] == Digit("5")


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
