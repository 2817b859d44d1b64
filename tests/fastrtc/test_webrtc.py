"""FastRTC over WebRTC: a real `Stream` and a peer in the browser's place, in one process, through Opus and loopback."""

import asyncio

import aioice.ice
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack
from fastrtc import AsyncStreamHandler, Stream

import cues
from cues.adapters.fastrtc import with_cues
from cues.signal.fades import raised_cosine
from stream.events import ToolCallStart, ToolResult
from tests.support.listening import RATE, steady_voice

pytestmark = [
    pytest.mark.usefixtures("on_loopback"),
    pytest.mark.filterwarnings("ignore:.* in Gradio 6.0:DeprecationWarning"),  # how fastrtc calls gradio
]

OPUS_RATE = 48000
CODEC_S = 0.01  # Opus looks 6.5 ms ahead (RFC 6716, 2.1.4.2), and a window sees an edge within its half.
FADE_S = 0.03
CUE_HZ, NEXT_HZ = 6000.0, 4000.0  # The voice ends at 2.6 kHz.
LIMIT_S = 10.0  # A test that waits for what never comes fails; nothing waits for this time to pass.


def tone(frequency_hz, seconds, level=0.2):
    x = level * np.sin(2 * np.pi * frequency_hz * np.arange(round(seconds * RATE)) / RATE)
    edge = raised_cosine(round(0.01 * RATE))
    x[: len(edge)] *= edge
    x[-len(edge) :] *= edge[::-1]
    return x.astype(np.float32)


CUE = cues.Cue(name="tool_call", samples=tone(CUE_HZ, 0.6), sample_rate=RATE, spec=None, measured=None)


class Talker(AsyncStreamHandler):
    """Emits what it is given, as fast as it is asked; one for each connection."""

    connected = None

    def __init__(self):
        super().__init__(output_sample_rate=RATE)
        self._items = asyncio.Queue()

    async def receive(self, frame):
        pass

    async def emit(self):
        return await self._items.get()

    def copy(self):
        Talker.connected = Talker()
        return Talker.connected

    def say(self, samples):
        for piece in np.array_split(samples, 10):
            self._items.put_nowait((RATE, piece.reshape(1, -1)))


class Browser:
    """A peer that sends silence and keeps what it receives: mono, 48 kHz, after Opus."""

    def __init__(self):
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._pieces = []

    async def connect(self, stream):
        track = asyncio.get_running_loop().create_future()
        self._peer.on("track", track.set_result)
        self._peer.addTrack(AudioStreamTrack())
        self._peer.createDataChannel("text")
        await self._peer.setLocalDescription(await self._peer.createOffer())
        offer = {"sdp": self._peer.localDescription.sdp, "type": "offer", "webrtc_id": "browser"}
        answer = await stream.handle_offer(offer, stream.set_additional_outputs("browser"))
        await self._peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))
        self._track = await track

    @property
    def signal(self):
        return np.concatenate([np.zeros(0), *self._pieces])

    async def hear(self, enough):
        """Receive until `enough(signal)`; the peer's jitter buffer keeps the last four packets to itself."""
        while True:
            frame = await self._track.recv()
            self._pieces.append(frame.to_ndarray().reshape(-1, 2)[:, 0] / 32768.0)
            if enough(self.signal):
                return

    async def close(self):
        await self._peer.close()


def sounding(signal, frequency_hz):
    """Whether a tone sounds around each sample: more than a quarter of its level, in a window of 10 ms."""
    window = np.hanning(round(0.01 * OPUS_RATE))
    turned = signal * np.exp(-2j * np.pi * frequency_hz * np.arange(len(signal)) / OPUS_RATE)
    level = 2.0 * np.abs(np.convolve(turned, window / window.sum(), "same"))
    return level > 0.25 * 0.2 * np.sqrt(0.5)  # FastRTC makes mono 3 dB quieter.


def spans_s(signal, frequency_hz):
    """Seconds from and to which a tone sounds, each time it does."""
    edges = np.diff(np.concatenate([[0], sounding(signal, frequency_hz).astype(int), [0]]))
    starts, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    return [(start / OPUS_RATE, end / OPUS_RATE) for start, end in zip(starts, ends, strict=True)]


def voice_dbfs(signal):
    """Level of what lies below 3 kHz, where the voice is, for each 20 ms."""
    blocks = signal[: len(signal) // 960 * 960].reshape(-1, 960) * np.hanning(960)
    power = np.abs(np.fft.rfft(blocks, axis=1)) ** 2
    return 10 * np.log10(2 * power[:, : 3000 * 960 // OPUS_RATE].sum(axis=1) / (960 * (np.hanning(960) ** 2).sum()))


@pytest.fixture
def on_loopback(monkeypatch):
    """No address but the loopback's, and no gradio that calls home."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"])  # noqa: ARG005
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")


def converse(script):
    """Run `script(talker, browser, mixer)` over a connection; nothing of it is left afterwards."""

    async def go():
        handler = with_cues(Talker(), bank={"tool_call": CUE, "success": CUE})
        stream = Stream(
            handler, modality="audio", mode="send-receive", server_rtc_configuration={"iceServers": []}, verbose=False
        )
        browser = Browser()
        await browser.connect(stream)
        try:
            async with asyncio.timeout(LIMIT_S):
                await script(Talker.connected, browser, stream.handlers["browser"]._paced.mixer)
        finally:
            server = stream.pcs["browser"]
            await browser.close()
            await server.close()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*rest, return_exceptions=True)

    asyncio.run(go())


def test_the_browser_hears_one_cue_in_speech_without_a_hole():
    heard = {}

    async def script(talker, browser, mixer):
        talker.say(steady_voice(2.0))
        await browser.hear(lambda signal: len(signal) > 0.5 * OPUS_RATE)
        heard["known_s"] = mixer.position / RATE
        for n in range(10):
            talker.cues.handle(ToolCallStart("read_file", str(n)))
        await browser.hear(lambda signal: len(signal) >= 1.8 * OPUS_RATE)
        heard["signal"] = browser.signal

    converse(script)
    ((start_s, end_s),) = spans_s(heard["signal"], CUE_HZ)
    assert heard["known_s"] <= start_s <= heard["known_s"] + 2 * CODEC_S
    assert end_s - start_s == pytest.approx(0.6, abs=0.02)
    voice = voice_dbfs(heard["signal"])
    assert voice[5:].min() > -40.0


def test_after_a_barge_in_the_browser_hears_a_fade_and_then_the_next_answer_alone():
    heard = {}

    async def script(talker, browser, mixer):
        talker.say(steady_voice(20.0))
        talker.cues.handle(ToolCallStart("read_file", "1"))
        await browser.hear(lambda signal: sounding(signal[-1920:], CUE_HZ).any())
        talker.clear_queue()
        heard["cut_s"] = mixer.position / RATE
        talker.cues.handle(
            ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content="")
        )  # Late: its turn is over.
        talker.say(tone(NEXT_HZ, 1.0))
        await browser.hear(lambda signal: sounding(signal[-9600:], NEXT_HZ).all())
        heard["signal"] = browser.signal

    converse(script)
    ((_, cue_end_s),) = spans_s(heard["signal"], CUE_HZ)
    ((next_s, _),) = spans_s(heard["signal"], NEXT_HZ)
    faded_s = heard["cut_s"] + FADE_S
    assert cue_end_s <= faded_s + CODEC_S
    assert faded_s <= next_s <= faded_s + 2 * CODEC_S
    voice = voice_dbfs(heard["signal"])
    assert voice[: round(heard["cut_s"] / 0.02)].max() > -35.0
    assert voice[round(next_s / 0.02) + 2 :].max() < -80.0
