"""FastRTC over WebRTC: a real `Stream` and a peer in the browser's place, in one process, through Opus and loopback."""

import asyncio

import aioice.ice
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack
from fastrtc import Stream

import cues
from cues.adapters.fastrtc import with_cues
from cues.signal.fades import raised_cosine
from stream.events import ToolCallStart, ToolResult
from tests.fastrtc.test_handler import Talker
from tests.support.listening import RATE, steady_voice

pytestmark = [
    pytest.mark.usefixtures("on_loopback"),
    pytest.mark.filterwarnings("ignore:.* in Gradio 6.0:DeprecationWarning"),  # how fastrtc calls gradio
]

OPUS_RATE = 48000
LONGEST_S = 0.3  # From a barge-in to the next answer: the lead, the fade, the peer's jitter buffer and Opus.
CUE_HZ, NEXT_HZ = 6000.0, 4000.0  # The voice ends at 2.6 kHz.
LIMIT_S = 10.0  # A test that waits for what never comes fails; nothing waits for this time to pass.


def tone(frequency_hz, seconds, level=0.2):
    x = level * np.sin(2 * np.pi * frequency_hz * np.arange(round(seconds * RATE)) / RATE)
    edge = raised_cosine(round(0.01 * RATE))
    x[: len(edge)] *= edge
    x[-len(edge) :] *= edge[::-1]
    return x.astype(np.float32)


CUE = cues.Cue(name="tool_call", samples=tone(CUE_HZ, 0.6), sample_rate=RATE, spec=None, measured=None)


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


@pytest.fixture
def on_loopback(monkeypatch):
    """No address but the loopback's, and no gradio that calls home."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"])  # noqa: ARG005
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")


def converse(script, make=Talker):
    """Run `script(talker, browser)` over a connection; nothing of it is left afterwards."""

    async def go():
        handler = with_cues(make(), bank={"tool_call": CUE, "success": CUE})
        stream = Stream(
            handler, modality="audio", mode="send-receive", server_rtc_configuration={"iceServers": []}, verbose=False
        )
        browser = Browser()
        await browser.connect(stream)
        try:
            async with asyncio.timeout(LIMIT_S):
                await script(stream.handlers["browser"].inner, browser)
        finally:
            server = stream.pcs["browser"]
            await browser.close()
            await server.close()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*rest, return_exceptions=True)

    asyncio.run(go())


def test_a_cue_sounds_once_in_the_speech_and_after_a_barge_in_the_next_answer_is_heard_alone():
    heard = []

    async def script(talker, browser):
        talker.say(steady_voice(20.0))
        await browser.hear(lambda signal: len(signal) > 0.5 * OPUS_RATE)
        for n in range(10):
            talker.cues.handle(ToolCallStart("read_file", str(n)))
        await browser.hear(lambda signal: sounding(signal, CUE_HZ).any() and not sounding(signal[-4800:], CUE_HZ).any())
        talker.cues.handle(ToolCallStart("read_file", "late"))
        await browser.hear(lambda signal: sounding(signal[-1920:], CUE_HZ).any())
        talker.clear_queue()
        cut = len(browser.signal)
        late = ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content="")
        talker.cues.handle(late)  # Its turn is over.
        talker.say(tone(NEXT_HZ, 1.0))
        await browser.hear(lambda signal: sounding(signal[-9600:], NEXT_HZ).all())
        heard.extend((browser.signal[:cut], browser.signal[cut:]))

    converse(script)
    before, after = heard
    assert np.diff(sounding(before, CUE_HZ).astype(int)).tolist().count(1) == 2
    assert (
        np.abs(before[: len(before) // 960 * 960].reshape(-1, 960)[10:]).max(axis=1).min() > 0.01
    )  # speech without a hole
    next_begins = np.flatnonzero(sounding(after, NEXT_HZ))[0]
    assert next_begins < LONGEST_S * OPUS_RATE
    assert not sounding(after[next_begins + 960 :], CUE_HZ).any()


def test_an_async_shutdown_of_the_handler_runs_at_the_end_of_the_connection():
    ended = []

    class Closing(Talker):
        async def shutdown(self):
            await asyncio.sleep(0)
            ended.append(self)

        def copy(self):
            return Closing()

    async def script(talker, browser):
        talker.say(tone(NEXT_HZ, 1.0))
        await browser.hear(lambda signal: sounding(signal, NEXT_HZ).any())

    converse(script, Closing)
    assert len(ended) == 1
