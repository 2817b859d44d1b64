"""`cues live --pipeline fastrtc` in a real browser: what arrives over WebRTC, measured with WebAudio."""

import base64

import numpy as np
import pytest

import cues
from tests.support.chromium import until
from tests.support.live_server import live_server

# how fastrtc calls gradio
pytestmark = pytest.mark.filterwarnings("ignore:.* in Gradio 6.0:DeprecationWarning")

RECORDER = """
registerProcessor("recorder", class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.blocks = [];
    this.port.onmessage = () => this.port.postMessage(this.blocks);
  }
  process([[block]]) {
    this.blocks.push(block ? block.slice() : new Float32Array(128));
    return true;
  }
});
"""
START_RECORDING = """async (MODULE) => {
  await live.startSound();
  await live.context.audioWorklet.addModule(`data:text/javascript,${encodeURIComponent(MODULE)}`);
  window.recorder = new AudioWorkletNode(live.context, "recorder", { channelCount: 1, channelCountMode: "explicit" });
  live.call.gain.connect(recorder).connect(live.context.destination);
}"""
RECORDED = """() => new Promise((done) => {
  recorder.port.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data.length * 512);
    data.forEach((block, at) => bytes.set(new Uint8Array(block.buffer), 512 * at));
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) { text += String.fromCharCode(...bytes.subarray(at, at + 8192)); }
    done([btoa(text), live.context.sampleRate]);
  };
  recorder.port.postMessage("give");
})"""
OVER = "live.events.some(event => event.type === 'live.end') && live.report?.state === 'idle'"


@pytest.fixture
def page(browser):
    context = browser.new_context(bypass_csp=True)  # for the recorder, which is no file of the page
    yield context.new_page()
    context.close()


@pytest.fixture(autouse=True)
def without_analytics(monkeypatch):
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")


def opened(page, server):
    page.goto(server.url)
    until(page, "live.state.open")
    page.evaluate(START_RECORDING, RECORDER)


def recorded(page):
    text, rate = page.evaluate(RECORDED)
    return np.frombuffer(base64.b64decode(text), "<f4").astype(float), rate


def likeness(heard, rate, cue):
    """The cue's best match anywhere in the sound, 0 … 1, whatever its level."""
    n_samples = round(len(cue.samples) * rate / cue.sample_rate)
    wanted = np.interp(np.arange(n_samples) * cue.sample_rate / rate, np.arange(len(cue.samples)), cue.samples)
    size = 1 << (len(heard) + n_samples).bit_length()
    match = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(wanted, size)), size)[: len(heard) - n_samples]
    sums = np.concatenate([[0.0], np.cumsum(heard**2)])
    energy = (sums[n_samples:] - sums[:-n_samples])[: len(match)] * np.dot(wanted, wanted)
    return float(np.max(np.abs(match) / np.sqrt(np.maximum(energy, 1e-6 * energy.max()))))


def test_speech_and_the_cues_of_calls_arrive_over_webrtc_and_the_page_shows_them(page):
    with live_server(pipeline="fastrtc") as server:
        opened(page, server)
        page.click("#scripts button")
        until(page, OVER)
        heard, rate = recorded(page)
        log = page.inner_text("#log")
        levels = page.evaluate("live.timeline.levels.map(level => [level.mixed, level.speech])")
        spans = page.evaluate("[...live.timeline.cues.values()].map(span => span.cue)")
        page.close()
    # `success` sounds alone, after the tool; Opus and FastRTC's 3 dB change it a little.
    bank = cues.load_bank("")
    assert likeness(heard, rate, bank["success"]) > 0.9
    assert likeness(heard, rate, bank["attention"]) < 0.7
    assert np.count_nonzero(np.abs(heard) > 0.01) > 2 * rate  # the speech
    assert spans == ["tool_call", "success"]
    for line in ("What is the weather in Tokyo?", "get_weather answered", "♪ tool_call at", "after its result"):
        assert line in log
    assert any(mixed > -40.0 and speech <= -59.0 for mixed, speech in levels)  # a cue alone


def test_an_interrupt_silences_the_page_and_the_next_question_is_heard(page):
    with live_server(pipeline="fastrtc") as server:
        opened(page, server)
        page.click("#scripts button")
        until(page, "live.report?.peak > 0.05 && live.state.running")
        page.click("#interrupt")
        until(page, "live.events.some(event => event.type === 'live.end' && event.interrupted)")
        until(page, "live.report.state === 'idle'")
        heard, rate = recorded(page)
        assert np.abs(heard[-rate // 10 :]).max() < 1e-3
        page.click("#scripts button:nth-child(5)")
        until(
            page, "live.events.filter(event => event.type === 'live.end').length === 2 && live.report.state === 'idle'"
        )
        again, _ = recorded(page)
        assert np.abs(again[len(heard) :]).max() > 0.05
        page.close()


def test_an_offer_that_is_none_and_a_question_without_one_are_failures_on_the_page(page):
    with live_server(pipeline="fastrtc") as server:
        page.goto(server.url)
        until(page, "live.state.open")
        page.evaluate("worker.postMessage({ send: { type: 'offer', sdp: 'v=0\\r\\nm=audio x\\r\\n' } })")
        until(page, "live.events.some(event => event.code === 'webrtc')")
        page.evaluate("worker.postMessage({ send: { type: 'ask', text: 'And?', script: 0 } })")
        until(page, "live.events.some(event => event.type === 'live.end' && event.failure)")
        assert page.inner_text("#log").count("no WebRTC connection") == 2
        page.close()


def test_after_a_lost_connection_the_next_question_makes_a_new_one_and_is_heard(page):
    with live_server(pipeline="fastrtc") as server:
        opened(page, server)
        page.click("#scripts button")
        until(page, "live.report?.peak > 0.05 && live.state.running")
        page.evaluate("Object.defineProperty(live.call.peer, 'connectionState', { value: 'failed' })")
        page.evaluate("live.call.peer.dispatchEvent(new Event('connectionstatechange'))")
        assert "the WebRTC connection was lost" in page.inner_text("#log")
        page.click("#scripts button:nth-child(5)")
        until(page, "live.report?.peak > 0.05 && live.state.turn > 1")
        until(page, "live.events.filter(event => event.type === 'live.end').length === 2")
        page.close()
