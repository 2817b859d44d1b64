"""`cues live` in a real browser: what the mixer wrote is what the page plays.

A second worklet, connected after the page's own, records every sample that leaves it.
"""

import base64
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import cues
from cues.cli.live.browser import conversation
from cues.cli.live.scripts import Script, built_in_scripts
from cues.cli.live.turn import Target
from cues.meters.clicks import find_clicks
from stream.replay.recording import Recording
from tests.support.chromium import until
from tests.support.live_server import live_server

RATE = 24000
RECORDER = """
registerProcessor("recorder", class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.blocks = [];
    this.port.onmessage = () => this.port.postMessage({ blocks: this.blocks, first: this.first });
  }
  process([[block]]) {
    this.first ??= currentFrame;
    this.blocks.push(block ? block.slice() : new Float32Array(128));
    return true;
  }
});
"""
START_RECORDING = """async (MODULE) => {
  await live.startSound();
  await live.context.audioWorklet.addModule(`data:text/javascript,${encodeURIComponent(MODULE)}`);
  window.recorder = new AudioWorkletNode(live.context, "recorder", { channelCount: 1, channelCountMode: "explicit" });
  live.player.connect(recorder);
  recorder.connect(live.context.destination);
}"""
RECORDED = """() => new Promise((done) => {
  recorder.port.onmessage = ({ data: { blocks, first } }) => {
    const bytes = new Uint8Array(new Blob(blocks).size ? blocks.length * 512 : 0);
    blocks.forEach((block, at) => bytes.set(new Uint8Array(block.buffer), 512 * at));
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) { text += String.fromCharCode(...bytes.subarray(at, at + 8192)); }
    done([btoa(text), first]);
  };
  recorder.port.postMessage("give");
})"""
LAST_POSITION = "Math.round(24000 * (live.timeline.levels.at(-1).atS + live.timeline.levels.at(-1).lengthS))"
QUIET = "live.events.some(event => event.type === 'live.end') && live.report.state === 'idle'"


@pytest.fixture
def open_page(browser):
    """A function that opens a page, and fails the test for what the browser complains of."""
    complaints, contexts = [], []

    def opened(url, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        until(page, "live.state.open")
        return page

    opened.complaints = complaints
    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def mixed(monkeypatch):
    """Output of each page's mixer, frame by frame."""
    mixers = []

    class Recording(cues.Mixer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.frames = []
            mixers.append(self)

        def mix(self, frame):
            out = super().mix(frame)
            self.frames.append(out.copy())
            return out

    monkeypatch.setattr(conversation, "Mixer", Recording)
    return mixers


def recorded(page):
    """All samples since the recording began, and the context's frame of the first."""
    text, first = page.evaluate(RECORDED)
    return np.frombuffer(base64.b64decode(text), "<f4"), first


def ask(page, script=0):
    page.click(f"#scripts button:nth-child({script + 1})")


def test_the_page_plays_the_mixers_samples_to_the_bit_with_the_cue_of_the_call(open_page, mixed):
    with live_server(buffer_ms=1000) as server:  # A busy machine stalls for longer than the usual buffer.
        page = open_page(server.url, bypass_csp=True)  # for the recorder, which is no file of the page
        page.evaluate(START_RECORDING, RECORDER)
        ask(page)
        until(page, QUIET)
        played, _ = recorded(page)
        assert page.evaluate("live.report.underruns") == 0
        cues_of_turn = page.evaluate("live.events.find(event => event.type === 'live.end').cues")
        page.close()
    # In silence the page may wait for late frames, or skip what is late: all that sounds is the same.
    wrote = np.concatenate(mixed[0].frames)
    np.testing.assert_array_equal(played[played != 0], wrote[wrote != 0])
    # The cue is in it: nothing else sounds where the call begins.
    onset = round(RATE * cues_of_turn[0]["onset_s"])
    cue = cues.load_bank("")["tool_call"].samples
    heard = wrote[onset : onset + len(cue)]
    assert cues_of_turn[0]["cue"] == "tool_call"
    assert np.dot(heard, cue) / np.dot(cue, cue) == pytest.approx(1.0, abs=0.35)


def test_interrupt_silences_the_page_within_100_ms_without_a_click(open_page):
    with live_server(buffer_ms=400) as server:
        page = open_page(server.url, bypass_csp=True)  # for the recorder, which is no file of the page
        page.evaluate(START_RECORDING, RECORDER)
        ask(page)
        until(page, "live.report?.position > 3 * 24000 && live.report.peak > 0.05")
        pressed = page.evaluate(
            "() => { const at = live.context.currentTime; document.querySelector('#interrupt').click(); return at; }"
        )
        until(page, "live.events.some(event => event.type === 'live.end')")
        until(page, f"live.context.currentTime > {pressed} + 1")
        played, first = recorded(page)
        assert "interrupted" in page.inner_text("#log")
        page.close()
    last = (first + np.flatnonzero(played)[-1]) / RATE
    assert last - pressed < 0.1
    assert len(find_clicks(played[: np.flatnonzero(played)[-1] + RATE // 10], RATE)) == 0


def test_a_question_in_mid_answer_is_answered_after_the_fade(open_page):
    with live_server() as server:
        page = open_page(server.url)
        ask(page)
        until(page, "live.report?.state === 'playing' && live.report.position > 24000")
        ask(page, 4)
        until(page, "live.events.filter(event => event.type === 'live.end').length === 2")
        until(page, "live.report.state === 'idle' && live.report.turn > 1")
        page.close()


def test_ten_pages_at_once_each_get_every_frame_of_their_own_conversation(open_page, mixed):
    # Whether they underrun depends on the machine's load: `python -m bench.live_pages` measures it.
    with live_server(speaker="espeak") as server:
        pages = [open_page(server.url, viewport={"width": 390, "height": 700}) for _ in range(10)]
        for page in pages:
            ask(page)
        for page in pages:
            until(page, QUIET)
            assert page.evaluate("live.report.position") == page.evaluate(LAST_POSITION)
            assert page.evaluate("live.timeline.levels.every((level, k) => Math.abs(level.atS - 0.02 * k) < 1e-6)")
    assert sorted(page.evaluate(LAST_POSITION) for page in pages) == sorted(480 * len(own.frames) for own in mixed)


def test_the_page_connects_again_and_begins_a_new_conversation(open_page):
    with live_server() as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        page = open_page(server.url)
        ask(page)
        until(page, "live.report?.state === 'playing'")
    until(page, "!live.state.open && live.report.state === 'idle'")
    assert page.evaluate("document.querySelector('#interrupt').disabled")
    with live_server(port=port):
        until(page, "live.state.open")
        ask(page)
        until(page, "live.report.state === 'playing' && live.report.turn === 1")
        page.close()
    # The browser reports each failed attempt.
    assert all("WebSocket" in complaint for complaint in open_page.complaints)
    open_page.complaints.clear()


def test_the_page_says_once_why_a_turn_failed(open_page):
    nobody = Target(base_url="http://127.0.0.1:9/v1", model="m", api="chat")
    with live_server(targets=[nobody], offers_scripts=False) as server:
        page = open_page(server.url)
        page.fill("#text", "Anything?")
        page.keyboard.press("Enter")
        until(page, "live.events.some(event => event.type === 'live.end')")
        (failure,) = page.evaluate("live.events.filter(event => event.type === 'error').map(event => event.message)")
        assert page.inner_text("#log").count(failure) == 1
        page.close()


def test_a_live_model_is_asked_in_the_form_and_recordings_by_their_buttons_alone(open_page):
    with live_server(offers_scripts=False) as server:
        page = open_page(server.url)
        page.fill("#text", "Anything?")
        page.keyboard.press("Enter")
        until(page, "live.report?.state === 'playing'")
        assert "Anything?" in page.inner_text("#log")
        page.close()
    with live_server() as server:
        page = open_page(server.url)
        assert not page.is_visible("#text, #send")
        assert "--base-url" in page.inner_text("#hint")
        page.close()


LABELS = """() => {
  const labels = [], { pen } = live.timeline, fillText = pen.fillText;
  pen.fillText = (text, x, y) => {
    const start = pen.textAlign === "left" ? x : NaN;
    if (text && start) { labels.push([y, start, start + pen.measureText(text).width, text]); }
  };
  live.timeline.draw();
  pen.fillText = fillText;
  return labels;
}"""
LAST_ANSWER = "[...document.querySelectorAll('.answer')].at(-1)"


def test_a_waiting_sound_that_is_only_planned_is_not_shown(open_page):
    slow = [replace(script, tool_s=2.0, tokens_per_s=100.0) for script in built_in_scripts()]
    with live_server(scripts=slow) as server:
        page = open_page(server.url)
        ask(page, 0)
        planned = "live.events.some(each => each.type === 'cues.span' && each.cue === 'working')"
        until(page, f"{planned} && live.events.some(each => each.type === 'cues.tool_result')")
        shown = page.evaluate("[document.querySelector('#log').innerText, [...live.timeline.cues.values()]]")
        page.close()
    assert "tool_call" in shown[0]
    assert "working" not in str(shown)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_ten_turns_are_followed_with_their_words_calls_and_cues_in_order_and_labels_apart(
    open_page, width, height, tmp_path
):
    scripts = [replace(script, tool_s=0.3, tokens_per_s=100.0) for script in built_in_scripts()]
    with live_server(scripts=scripts) as server:
        page = open_page(server.url, viewport={"width": width, "height": height})
        # The breaking-off turns come last: at once one after the other, they use up the burst of cues.
        for turn, script in enumerate((0, 3, 4, 4, 4, 4, 4, 4, 4, 1), start=1):
            ask(page, script)
            if turn == 10:
                heard = "each.type === 'response.text.delta' && each.delta === 'mild,'"
                until(page, f"live.events.some(each => each.turn === live.state.turn && {heard})")
                page.keyboard.press("Escape")
            ended = f"live.events.filter(event => event.type === 'live.end').length === {turn}"
            until(page, f"{ended} && live.report.state === 'idle'")
        labels = sorted(page.evaluate(LABELS))
        log, heard, *last = page.evaluate(f"""[
            document.querySelector('#log').innerText,
            [...{LAST_ANSWER}.querySelectorAll('.heard')].map(word => word.textContent).join(''),
            live.events.findLast(event => event.type === 'response.text.done').text,
            {LAST_ANSWER}.innerText,
        ]""")
        left = page.evaluate(
            "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(log)"
        )
        page.screenshot(path=tmp_path / f"ten-turns-{width}.png")
        page.close()
    assert left < 2
    assert heard
    order = [
        "in Tokyo?",
        "Let me look",
        "♪ tool_call",
        "get_weather({",
        "♪ success",
        "get_weather answered",
        "It is 21",
    ]
    order += ["in Zurich?", "Zurich first", '"Zurich"', "♪ error", "get_weather failed", "I am sorry"]
    places = [log.index(line, log.index("in Tokyo?")) for line in order[:7]]
    places += [log.index(line, log.index("in Zurich?")) for line in order[7:]]
    assert places == sorted(places)
    # Words that the buffer still held when the sound faded were not heard.
    assert last[0].startswith(heard.strip())
    assert len(heard) < len(last[1])
    for (y, _, end, text), (next_y, start, _, next_text) in pairwise(labels):
        assert y != next_y or end <= start, (text, next_text)


def streamed(*deltas, reason):
    """An answer of Chat Completions."""
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices) + "data: [DONE]\n\n"
    return Recording(name="own", kind="sse", body=body.encode(), request={"tools": [LOOK]})


LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def test_the_last_word_before_a_structured_call_stands_before_it_and_the_answer_after_it(open_page):
    call = {
        "tool_calls": [{"index": 0, "id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    }
    turns = [
        streamed({"content": "Let me look"}, {"content": " that up."}, call, reason="tool_calls"),
        streamed({"content": "It is"}, {"content": " a finch."}, reason="stop"),
    ]
    script = Script(title="own", prompt="What is it?", turns=turns, results={"look": "a finch"}, tool_s=0.3)
    with live_server(scripts=[script]) as server:
        page = open_page(server.url)
        ask(page)
        until(page, QUIET)
        said = page.inner_text("#log").split("What is it?")[-1]
        page.close()
    order = ["Let me look that up.", "look()", "look answered", "It is a finch."]
    places = [said.index(line) for line in order]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_live_page_is_no_wider_than_the_screen_and_its_controls_fit_fingers(open_page, width):
    with live_server() as server:
        page = open_page(server.url, viewport={"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        controls = "[...document.querySelectorAll('button, input')].filter(each => !each.hidden)"
        heights = page.evaluate(f"{controls}.map(each => each.offsetHeight)")
        assert min(heights) >= 24  # WCAG 2.2, 2.5.8 (AA)
        page.close()
