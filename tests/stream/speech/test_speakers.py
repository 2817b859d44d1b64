"""Every speaker keeps the protocol: 24 kHz float32 in order, words in place, errors as SpeakerError."""

import asyncio
import contextlib
import sys

import numpy as np
import pytest

from cues.synthesis.voicelike import speak_voice_like
from stream.errors import SpeakerError, StreamValueError
from stream.speech import choose_speaker, espeak
from stream.speech.espeak import EspeakSpeaker
from stream.speech.espeak_process import ssml
from stream.speech.openai_speech import OpenAISpeaker
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.all_logs import all_logs


async def speak(speaker, words):
    """All samples, and the words with their place in them."""
    await speaker.start()
    try:
        for word in words:
            await speaker.send(word)
        await speaker.finish()
        pieces, heard, n_samples = [], [], 0
        async for speech in speaker:
            heard += [(word.text, n_samples + word.start_samples) for word in speech.words]
            pieces.append(speech.samples)
            n_samples += len(speech.samples)
        return np.concatenate([np.zeros(0, dtype=np.float32), *pieces]), heard
    finally:
        await speaker.aclose()


BOTH = pytest.mark.parametrize("make", [EspeakSpeaker, VoiceLikeSpeaker], ids=["espeak", "voice-like"])


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "Let me look that up: 東京 first. One, two",
        "It is a walk in the park for all of us, and in a lot of the other places. I would have to be in a",
        "... -- ? ! hello — world https://a.b/c 1234567 e.g. ... --",
        "--",
        '東京 in the 서울 of the 21 Москва <b> &amp; "]]>',
    ],
)
def test_every_word_is_heard_once_in_order_within_full_scale(make, text):
    samples, heard = asyncio.run(speak(make(), [f" {word}" for word in text.split()]))
    assert (samples.dtype, samples.ndim) == (np.float32, 1)
    assert text == "--" or 0.05 < np.abs(samples).max() <= 1.0
    # Also those that the engine runs together.
    assert [word for word, _ in heard] == text.split()
    starts = [start for _, start in heard]
    assert starts == sorted(starts)
    assert starts[-1] <= len(samples)


def test_the_loop_runs_between_the_words_of_a_voice_like_phrase():
    async def go():
        ticks, running = [0], True

        async def tick():
            while running:
                ticks[0] += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        seen = [ticks[0] async for _ in VoiceLikeSpeaker().speak("one two three four")]
        running = False
        await ticking
        return seen

    seen = asyncio.run(go())
    assert len(seen) == 4
    assert seen == sorted(set(seen))


def test_the_pieces_of_a_voice_like_phrase_are_the_whole_signal_to_the_bit():
    samples, heard = asyncio.run(speak(VoiceLikeSpeaker(), [" One,", " two", " tools"]))
    pieces = [speak_voice_like("One,"), speak_voice_like("two tools")]
    np.testing.assert_array_equal(samples, np.concatenate(pieces))
    assert [start for _, start in heard][:2] == [0, len(pieces[0])]


def test_a_word_without_a_time_of_its_own_lies_between_its_neighbors():
    _, heard = asyncio.run(speak(EspeakSpeaker(), [f" {word}" for word in ["a", "walk", "in", "the", "park"]]))
    starts = dict(heard)
    assert starts["in"] < starts["the"] < starts["park"]


@BOTH
def test_after_a_cancel_in_mid_phrase_the_next_answer_begins_with_its_own_words(make):
    async def go():
        speaker = make()
        await speaker.start()
        try:
            await speaker.send("One two three four five six seven eight,")
            async for _ in speaker:
                break
            await speaker.cancel()
            await speaker.send("Nine.")
            await speaker.finish()
            return [word.text async for speech in speaker for word in speech.words]
        finally:
            await speaker.aclose()

    assert asyncio.run(go()) == ["Nine."]


@BOTH
def test_a_word_begins_where_the_speaker_says(make):
    samples, heard = asyncio.run(speak(make(), ["Papa,", " papa,", " papa."]))
    energy = np.convolve(samples.astype(float) ** 2, np.ones(2400) / 2400, mode="same")
    for _, start in heard:
        # Loud within a fifth of a second after each word's mark.
        assert energy[start : start + 4800].max() > 0.1 * energy.max()


def test_nothing_to_say_is_no_sound():
    samples, heard = asyncio.run(speak(VoiceLikeSpeaker(), []))
    assert (len(samples), heard) == (0, [])


def test_markup_and_other_scripts_are_escaped_for_espeak():
    assert ssml("<東>") == '&lt;<voice xml:lang="cmn">東</voice>&gt;'


def test_an_unknown_voice_is_reported_in_espeaks_own_words():
    with pytest.raises(SpeakerError, match="no voice 'xx-none'"):
        asyncio.run(speak(EspeakSpeaker(voice="xx-none"), []))


def test_a_child_that_dies_while_it_speaks_is_a_speaker_error():
    async def go():
        speaker = EspeakSpeaker()
        await speaker.start()
        speaker._process.kill()
        await speaker._process.wait()
        await speaker.send("Hello.")
        await speaker.finish()
        try:
            return [speech async for speech in speaker]
        finally:
            await speaker.aclose()

    with pytest.raises(SpeakerError, match="espeak-ng ended"):
        asyncio.run(go())


def test_without_the_extra_espeak_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(espeak.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SpeakerError, match=r"pip install .*\[espeak\]"):
        asyncio.run(EspeakSpeaker().start())


def _speak_from_server(body, *statuses, heads=None, kind=b"audio/pcm", words=("Hello.",), **environment):
    """The speech of a server that answers each request with the next status, at last with 200, in odd pieces.

    `body` may be a function that gives the next one.
    """
    left = [*statuses]

    async def serve(reader, writer):
        (heads if heads is not None else []).append(await reader.readuntil(b"\r\n\r\n"))
        status = left.pop(0) if left else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-type: " + kind + b"\r\nconnection: close\r\n\r\n")
        data = body() if callable(body) else body
        size = 333 if len(data) < 1 << 20 else 1 << 20
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(data), size):
                writer.write(data[start : start + size])
                await writer.drain()
                _speak_from_server.n_sent = start + size
        writer.close()

    async def go():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            speaker = await choose_speaker("openai", environment={"CUES_SPEECH_URL": url, **environment})
            return await speak(speaker, words)

    return asyncio.run(go())


def test_a_speech_servers_odd_reads_become_whole_samples():
    pcm = (np.sin(np.arange(24000) * 0.05) * 12000).astype("<i2")
    samples, _ = _speak_from_server(pcm.tobytes())
    assert np.array_equal(samples, pcm.astype(np.float32) / 32768.0)


def test_a_speech_server_that_refuses_is_a_speaker_error():
    with pytest.raises(SpeakerError, match="failed"):
        _speak_from_server(b'{"error": {"message": "no such voice"}}', b"400 Bad Request")


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (b"application/json", b'{"error": "no such voice"}', "no such voice"),
        (b"Text/HTML", b"<html>", "<html>"),
        (b"audio/wav", b"RIFF$\0\0\0WAVE" + bytes(480), "audio/wav"),
        (b"audio/mpeg", b"\xff\xfb\x90d" + bytes(480), "audio/mpeg"),
    ],
)
def test_what_is_no_raw_sound_is_a_speaker_error_and_not_played_as_noise(kind, body, message):
    with pytest.raises(SpeakerError, match=message):
        _speak_from_server(body, kind=kind)


def test_an_error_page_of_a_speech_server_is_not_read_whole():
    with pytest.raises(SpeakerError) as caught:
        _speak_from_server(b"x" * (100 << 20), b"404 Not Found")
    assert len(str(caught.value)) < 1000
    assert _speak_from_server.n_sent < 50 << 20


def test_a_speech_server_that_is_busy_is_asked_again(monkeypatch):
    monkeypatch.setattr("stream.speech.openai_speech.RETRIES_S", (0.0, 0.0))
    samples, _ = _speak_from_server(bytes(4800), b"503 Busy", b"429 Busy")
    assert len(samples) == 2400
    with pytest.raises(SpeakerError, match="HTTP 503"):
        _speak_from_server(b"busy", *[b"503 Busy"] * 3)


def test_an_answer_without_sound_is_asked_for_again_if_there_is_a_word_to_say(monkeypatch):
    """As Kokoro-FastAPI answers under load (its issue 222)."""
    monkeypatch.setattr("stream.speech.openai_speech.RETRIES_S", (0.0, 0.0))
    heads = []
    with pytest.raises(SpeakerError, match="sent no sound"):
        _speak_from_server(b"", heads=heads)
    assert len(heads) == 3
    samples, _ = _speak_from_server(b"", heads=heads, words=["...", " —"])
    assert len(samples) == 0


def test_a_phrase_without_sound_amid_others_is_left_out(monkeypatch, caplog):
    monkeypatch.setattr("stream.speech.openai_speech.RETRIES_S", (0.0, 0.0))
    bodies = [bytes(4800), b"", b"", b"", bytes(2400)]
    samples, _ = _speak_from_server(lambda: bodies.pop(0), words=["Hello.", " 今天。", " Bye."])
    assert (len(samples), bodies) == (3600, [])
    assert "no sound" in caplog.text


def test_a_speaker_that_is_closed_while_it_waits_for_a_busy_server_is_a_speaker_error(monkeypatch):
    async def go():
        async def refuse(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()

        async def close(_):
            await speaker.aclose()

        monkeypatch.setattr("stream.speech.openai_speech.asyncio.sleep", close)
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            speaker = OpenAISpeaker(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
            await speaker.start()
            return [speech async for speech in speaker.speak("Hello.")]

    with pytest.raises(SpeakerError, match="was closed"):
        asyncio.run(go())


@pytest.mark.parametrize("key", [{}, {"CUES_SPEECH_API_KEY": "its-own"}], ids=["no key", "a key of its own"])
def test_openais_key_goes_to_openai_alone(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    heads = []
    _speak_from_server(bytes(480), heads=heads, **key)
    sent = [line.lower() for line in heads[0].split(b"\r\n") if line.lower().startswith(b"authorization")]
    assert sent == ([b"authorization: bearer its-own"] if key else [])


def test_openais_key_goes_over_https_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    heads = []

    async def serve(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\nconnection: close\r\n\r\n" + bytes(480))
        writer.close()

    async def go():
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as proxy:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
            await speak(OpenAISpeaker("http://api.openai.com/v1"), ["Hello."])

    asyncio.run(go())
    assert b"host: api.openai.com" in heads[0].lower()
    assert b"sk-secret" not in heads[0]


def test_what_a_speech_server_is_asked_to_say_is_in_no_log():
    with all_logs() as heard:
        _speak_from_server(bytes(4800))
    assert any(record.name.startswith("http") for record in heard.records)
    assert [line for line in heard.lines if "Hello" in line] == []


def chosen(name, environment=None):
    async def go():
        speaker = await choose_speaker(name, environment=environment or {})
        await speaker.aclose()
        return type(speaker)

    return asyncio.run(go())


def test_auto_takes_the_best_that_is_there(monkeypatch):
    assert chosen("auto", {"CUES_SPEECH_URL": "http://127.0.0.1:9/v1"}) is OpenAISpeaker
    assert chosen("auto") is EspeakSpeaker
    monkeypatch.setattr(espeak.importlib.util, "find_spec", lambda _: None)
    assert chosen("auto") is VoiceLikeSpeaker


def test_auto_goes_on_when_espeak_is_installed_but_broken(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert chosen("auto") is VoiceLikeSpeaker
    with pytest.raises(SpeakerError, match="exit code 1"):
        chosen("espeak")


def test_an_unknown_speaker_is_refused_with_the_names_there_are():
    with pytest.raises(StreamValueError, match="'openai', 'espeak' or 'voice-like'"):
        chosen("nobody")
