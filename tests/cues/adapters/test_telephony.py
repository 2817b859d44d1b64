"""A telephone call: what the far end hears, and what the providers' messages say."""

import asyncio
import base64
import json
from functools import partial

import numpy as np
import pytest

import cues
from cues.adapters.telephony import CallerAudio, Digit, Marked, PhoneLine, Started, Stopped
from cues.signal.g711 import samples_of_bytes
from cues.signal.pcm import float_of_pcm16
from cues.signal.resample import resample
from stream.events import ToolCallStart
from stream.routing.rules import CueRules
from tests.support.listening import speech, steady_voice
from tests.support.phone_calls import RATE, START, FarEnd, twilio_call
from tests.support.virtual_loop import LoopClock, run_virtually


@pytest.mark.parametrize("name", cues.load_bank())
def test_a_cue_has_its_level_at_the_far_end_after_g711_and_back(name):
    async def script(line, clock):
        line.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(3.0)

    far = twilio_call(script, rules=CueRules(working=None, tool_call=name))
    heard = cues.measure(far.signal(), RATE).m100_max_lufs
    assert heard == pytest.approx(cues.load_bank(sample_rate=RATE)[name].measured.m100_max_lufs, abs=0.3)
    assert heard == pytest.approx(cues.load_bank()[name].measured.m100_max_lufs, abs=1.0)


def run_line(make, script):
    """Run `script(line, far, clock)` while a line runs that sends to `far`; the far end."""

    async def go():
        clock = LoopClock()
        far = FarEnd(clock)
        line = make(far.send, clock=clock)
        running = asyncio.create_task(line.run())
        await script(line, far, clock)
        line.close()
        await running
        return far

    return run_virtually(go)


def test_nothing_is_sent_before_the_call_starts_or_while_nothing_sounds():
    async def script(line, far, clock):
        line.push(steady_voice(0.2), 24000)
        await clock.sleep(0.5)
        assert far.messages == []
        line.feed(json.dumps(START))
        line.end()
        await clock.sleep(5.0)

    assert 10 <= len(run_line(PhoneLine, script).messages) <= 12


def test_speech_from_before_the_call_starts_is_heard_at_any_rate():
    x, start = steady_voice(1.0), {"encoding": "audio/x-l16", "sampleRate": 16000}

    async def script(line, _far, clock):
        for piece in np.array_split(x, 10):
            line.push(piece, 24000)
        line.feed(json.dumps({"event": "start", "start": {"streamId": "1", "mediaFormat": start}}))
        await clock.sleep(2.0)

    messages = run_line(partial(PhoneLine, provider="plivo"), script).messages
    sent = b"".join(base64.b64decode(message["media"]["payload"]) for _, message in messages)
    expected = resample(x, 24000, 16000)
    assert np.abs(float_of_pcm16(sent)[: len(expected)] - expected).max() < 1e-3


def test_a_barge_in_ends_who_waits_for_the_speech_where_no_mark_comes_back():
    async def script(line, _far, clock):
        line.feed(json.dumps(START))
        line.push(steady_voice(0.05), 24000)
        line.end()
        played = asyncio.create_task(line.played())
        await clock.sleep(0.05)
        line.barge_in()  # Plivo returns the checkpoints of what was heard alone.
        await clock.sleep(0.1)
        assert played.done()

    run_line(partial(PhoneLine, provider="plivo"), script)


MEDIA = base64.b64encode(bytes([0xFF, 0x80])).decode()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (START, Started(stream_id="MZ1", parameters={"name": "Ada"})),
        (
            {
                "event": "start",
                "stream_id": "32DE",
                "start": {"media_format": {"encoding": "PCMA", "sample_rate": 8000}},
            },
            Started(stream_id="32DE", law="alaw"),
        ),
        (
            {
                "event": "start",
                "start": {"streamId": "b77e", "mediaFormat": {"encoding": "audio/x-l16", "sampleRate": 16000}},
            },
            Started(stream_id="b77e", law=None, sample_rate=16000),
        ),
        ({"event": "dtmf", "dtmf": {"track": "inbound_track", "digit": "5"}}, Digit("5")),
        ({"event": "mark", "mark": {"name": "end"}}, Marked("end")),
        ({"event": "playedStream", "streamId": "b77e", "name": "end"}, Marked("end")),
        ({"event": "stop", "stop": {"callSid": "CA1"}}, Stopped()),
        ({"event": "connected"}, None),
        ({"event": "clearedAudio"}, None),
        ({"event": "media", "media": {"track": "outbound", "payload": MEDIA}}, None),
        ({"event": "media", "media": {"payload": "no base64!"}}, None),
        ({"event": "media"}, CallerAudio(np.zeros(0, dtype=np.float32))),
        ({"event": "start", "start": None}, Started(stream_id="")),
        ([], None),
        ("text", None),
        (None, None),
        ("", None),
        ("{", None),
        ("[" * 100_000, None),
        (b"\xff", None),
        ({"event": 5}, None),
        ({"event": "media", "media": 7}, CallerAudio(np.zeros(0, dtype=np.float32))),
    ],
    ids=lambda value: str(value)[:80],
)
def test_the_messages_of_all_three_providers_are_read(message, expected):
    told = PhoneLine(None).feed(message if isinstance(message, str | bytes) else json.dumps(message))
    if isinstance(expected, CallerAudio):
        assert (len(told.samples), told.chunk) == (0, None)
    else:
        assert told == expected


@pytest.mark.parametrize(("chunk", "number"), [("7", 7), ("9" * 5000, None)], ids=["7", "too long"])
def test_the_callers_audio_is_decoded_and_numbered(chunk, number):
    line = PhoneLine(None)
    line.feed(json.dumps(START))
    heard = line.feed(json.dumps({"event": "media", "media": {"track": "inbound", "chunk": chunk, "payload": MEDIA}}))
    np.testing.assert_array_equal(heard.samples, np.array([0.0, 8031 / 8192], dtype=np.float32))
    assert heard.chunk == number


@pytest.mark.parametrize(
    "layout",
    [
        {"encoding": "OPUS", "sampleRate": 48000},
        {"encoding": "PCMU", "sampleRate": "x" * 100_000},
        {"encoding": "x" * 100_000},
    ],
    ids=["codec", "rate", "long"],
)
def test_a_call_in_another_codec_or_of_another_provider_is_refused_with_a_sentence(layout):
    with pytest.raises(cues.CueValueError, match="must be µ-law, A-law or L16 at 8000 or 16000 Hz") as refused:
        PhoneLine(None).feed(json.dumps({"event": "start", "start": {"mediaFormat": layout}}))
    assert len(str(refused.value)) < 200
    with pytest.raises(cues.CueValueError, match="provider is 'acme'; it must be one of twilio, telnyx, plivo"):
        PhoneLine(None, provider="acme")


def plivo(encoding):
    start = {"streamId": "b77e", "mediaFormat": {"encoding": encoding, "sampleRate": 8000}}
    return (
        "plivo",
        {"event": "start", "start": start},
        [{"event": "playAudio"}, {"event": "clearAudio", "streamId": "b77e"}],
    )


@pytest.mark.parametrize(
    ("provider", "start", "expected"),
    [
        ("twilio", START, [{"event": "media", "streamSid": "MZ1"}, {"event": "clear", "streamSid": "MZ1"}]),
        ("telnyx", {"event": "start", "stream_id": "32DE", "start": {}}, [{"event": "media"}, {"event": "clear"}]),
        plivo("audio/x-l16"),
        plivo("audio/x-alaw"),
    ],
    ids=["twilio", "telnyx", "plivo", "plivo, A-law"],
)
def test_each_provider_is_sent_the_messages_that_it_knows(provider, start, expected):
    async def script(line, _far, clock):
        line.feed(json.dumps(start))
        line.push(steady_voice(1.0), 24000)
        await clock.sleep(0.5)
        line.barge_in()
        line.barge_in()  # A second one adds nothing.
        await clock.sleep(0.5)

    sent = [message for _, message in run_line(partial(PhoneLine, provider=provider), script).messages]
    media = sent[0].pop("media")
    if provider == "plivo":
        assert (media["contentType"], media["sampleRate"]) == (start["start"]["mediaFormat"]["encoding"], 8000)
    is_16_bit = media.get("contentType") == "audio/x-l16"
    assert len(base64.b64decode(media["payload"])) == (320 if is_16_bit else 160)
    assert [sent[0], *(message for message in sent if "clear" in message["event"])] == expected


TELNYX = {"event": "start", "stream_id": "32DE", "start": {"media_format": {"encoding": "PCMA", "sample_rate": 8000}}}


# The documentation of `streaming_start`: stream_bidirectional_codec, by default PCMU, is that of the audio from us.
@pytest.mark.parametrize(("options", "law"), [({}, "mulaw"), ({"codec": "PCMU"}, "mulaw"), ({"codec": "PCMA"}, "alaw")])
def test_telnyx_hears_the_codec_of_its_command_whatever_the_callers_is(options, law):
    async def script(line, _far, clock):
        started = line.feed(json.dumps(TELNYX))
        assert started.law == "alaw"
        line.push(steady_voice(1.0, RATE), RATE)
        line.end()
        await clock.sleep(2.0)
        heard = line.feed(json.dumps({"event": "media", "media": {"payload": base64.b64encode(b"\xd5").decode()}}))
        assert abs(heard.samples).max() < 0.001  # silence in A-law, and half of full scale in µ-law

    sent = [message for _, message in run_line(partial(PhoneLine, provider="telnyx", **options), script).messages]
    heard = samples_of_bytes(b"".join(base64.b64decode(message["media"]["payload"]) for message in sent), law)
    said = steady_voice(1.0, RATE)[RATE // 4 : RATE // 2]
    at = np.argmax(np.correlate(heard[:RATE], said, "valid"))
    noise = heard[at : at + len(said)] - said
    # G.711's own noise; with the wrong law, less than 0 dB are left.
    assert 10 * np.log10(np.mean(said**2) / np.mean(noise**2)) > 30.0


def test_telnyx_is_refused_a_codec_that_is_not_spoken():
    with pytest.raises(cues.CueValueError, match="codec is 'OPUS'; it must be one of PCMU, PCMA"):
        PhoneLine(None, provider="telnyx", codec="OPUS")
    start = {"event": "start", "start": {"media_format": {"encoding": "L16", "sample_rate": 16000}}}
    with pytest.raises(cues.CueValueError, match="Telnyx's L16; its stream_codec must be PCMU or PCMA"):
        PhoneLine(None, provider="telnyx").feed(json.dumps(start))


@pytest.mark.parametrize("ended", ["the WebSocket fails", "run is cancelled", "the call stops"])
def test_a_run_that_ends_ends_who_waits_for_the_speech(ended):
    async def go():
        async def send(_text):
            if ended == "the WebSocket fails":
                raise ConnectionError

        clock = LoopClock()
        line = PhoneLine(send, clock=clock)
        line.feed(json.dumps(START))
        line.push(speech(), 24000)

        async def script():
            run, played = asyncio.create_task(line.run()), asyncio.create_task(line.played())
            await clock.sleep(0.2)
            if ended == "run is cancelled":
                run.cancel()
            elif ended == "the call stops":
                line.feed(json.dumps({"event": "stop"}))
            await asyncio.wait({run})
            await clock.sleep(0.1)
            return played.done()

        return await script()

    assert run_virtually(go)
