"""FastRTC's page and its program: their code runs."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from fastrtc import ReplyOnPause

import cues.adapters
import stream
from cues.adapters.fastrtc import with_cues
from cues.errors import CueTypeError
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer
from tests.fastrtc.test_handler import LIMIT_S, Talker
from tests.fastrtc.test_reply_on_pause import Loudness, cues_of, say_something

SAMPLE = Path(__file__).parents[2] / "samples" / "fastrtc_reply.py"
TEXT = Path(cues.adapters.__file__).with_name("fastrtc.md").read_text(encoding="utf-8")


QUESTION = [{"role": "user", "content": "What is the weather in Oslo?"}]
RESULTS = ["Oslo: 12 degrees", "Lisbon: 12 degrees"]


def block(name, url, **taken_for_granted):
    code = re.search(rf"<!-- run: {name} -->\n```python\n(.*?)```", TEXT, re.DOTALL).group(1)
    assert "http://localhost:11434" in code
    namespace = dict(taken_for_granted)
    exec(compile(code.replace("http://localhost:11434", url), f"fastrtc.md: {name}", "exec"), namespace)
    return namespace


def speak(_text):
    return np.full((1, 480), 0.1, dtype=np.float32)


class Voice:
    """Speaks at once into the queue of the page's handler."""

    def __init__(self, handler):
        self._queue = handler.output_queue

    async def send(self, text):
        self._queue.put_nowait((24000, speak(text)))


class Heard:
    """What a handler emits."""

    def __init__(self):
        self._frames = [np.zeros(0, dtype=np.float32)]

    @property
    def sounds(self):
        return np.concatenate(self._frames).any()

    async def hear(self, handler, enough):
        """Take what `emit` gives until `enough()`."""
        while not enough():
            item = await handler.emit()
            if item is not None:
                self._frames.append(item[1])

    async def hear_to_the_end(self, handler):
        """Until nothing waits, and nothing sounds."""
        await self.hear(handler, lambda: handler.router.is_over and handler.pacer.is_silent)


def serving(name, script):
    """Run `script(url)` beside a server: what it returns, and the results of tools that the server got."""
    results = []

    def note(_path, request):
        results.extend(message["content"] for message in request["messages"] if message["role"] == "tool")

    async def go():
        async with asyncio.timeout(LIMIT_S), ReplayServer(scenario(name), tokens_per_s=None, on_request=note) as server:
            return await script(server.base_url)

    return asyncio.run(go()), results


@pytest.mark.parametrize(
    ("name", "ran"), [("ollama-weather", RESULTS), ("openai-cut-in-call", [])], ids=["a structured call", "cut off"]
)
def test_the_lines_for_fastrtc_run_the_calls_of_an_answer_and_then_are_silent(name, ran):
    heard = Heard()

    async def script(url):
        names = block("fastrtc", url)
        handler = names["handler"].copy()
        answering = asyncio.create_task(handler.inner.respond(QUESTION, Voice(handler.inner)))
        await heard.hear(handler, answering.done)
        await answering
        await heard.hear_to_the_end(handler)
        handler.shutdown()
        await names["model"].close()
        return handler

    handler, results = serving(name, script)
    assert heard.sounds
    assert cues_of(handler)[0] == "tool_call"
    assert results == ran


def test_a_stream_that_is_read_in_the_place_of_the_runner_leaves_no_waiting_sound():
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}

    class Reading:
        async def chat(self, _messages):
            chunks = [({"tool_calls": [call]}, None), ({}, "tool_calls")]
            for event in stream.read_sync(
                {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in chunks
            ):
                yield event

    heard = Heard()

    async def go():
        names = block("fastrtc", "http://localhost:1")
        names["runner"], handler = Reading(), names["handler"].copy()
        async with asyncio.timeout(LIMIT_S):
            await handler.inner.respond(QUESTION, Voice(handler.inner))
            await heard.hear_to_the_end(handler)
        handler.shutdown()
        await names["model"].close()
        return cues_of(handler)

    assert asyncio.run(go()) == ["tool_call"]
    assert heard.sounds


def test_the_lines_for_a_reply_function_run_the_calls_of_an_answer_and_then_are_silent():
    heard = Heard()

    async def transcribe(_audio):
        return QUESTION[0]["content"]

    def get_weather(city: str) -> str:
        """Get the weather in a city."""
        return f"{city}: 12 degrees"

    async def script(url):
        names = block("fastrtc-reply", url, transcribe=transcribe, speak=speak, get_weather=get_weather)
        handler = names["with_cues"](ReplyOnPause(names["reply"], model=Loudness(), input_sample_rate=16000))
        handler._loop = asyncio.get_running_loop()
        await say_something(handler)
        await heard.hear(handler, lambda: not handler.inner.event.is_set())
        await heard.hear_to_the_end(handler)
        handler.shutdown()
        await names["model"].close()
        return handler

    handler, results = serving("ollama-weather", script)
    assert heard.sounds
    assert cues_of(handler)[0] == "tool_call"
    assert results == RESULTS


@pytest.mark.parametrize("name", ["ruels", "is_constant"])
def test_a_misspelt_option_is_refused_by_name(name):
    with pytest.raises(CueTypeError, match=f"{name} is no option.*bank, rules, tools, limits, times, lead_ms, clock"):
        with_cues(Talker(), **{name: None})


def test_the_program_runs_by_itself_and_writes_what_is_heard(tmp_path):
    out = tmp_path / "out.wav"
    command = [sys.executable, str(SAMPLE), "--loopback", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=SAMPLE.parents[1], check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "tool_call at " in done.stdout
    samples, rate = soundfile.read(out)
    assert 0.3 < np.count_nonzero(np.abs(samples) > 0.05) / rate < 10.0
