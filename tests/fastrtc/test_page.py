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
from cues.adapters.fastrtc import with_cues
from cues.errors import CueTypeError
from tests.fastrtc.test_handler import Talker
from tests.fastrtc.test_reply_on_pause import Loudness, cues_of, hear, say_something
from tests.support.turns import chunks_with_a_call

SAMPLE = Path(__file__).parents[2] / "samples" / "fastrtc_reply.py"
TEXT = Path(cues.adapters.__file__).with_name("fastrtc.md").read_text(encoding="utf-8")


def block(name):
    code = re.search(rf"<!-- run: {name} -->\n```python\n(.*?)```", TEXT, re.DOTALL)
    namespace = {"asyncio": asyncio}
    exec(compile(code.group(1), f"fastrtc.md: {name}", "exec"), namespace)
    return namespace


def test_the_lines_for_fastrtc_make_a_handler_with_cues():
    async def go():
        handler = block("fastrtc")["handler"]
        sent = []

        class Voice:
            async def send(self, text):
                sent.append(text)

        await handler.inner.respond(chunks_with_a_call(), Voice())
        item = await handler.emit()
        handler.shutdown()
        return sent, item

    sent, item = asyncio.run(go())
    assert sent == ["Let", " me", " look", " Two", " files."]
    assert item[0] == 24000


def test_the_lines_for_a_reply_function_speak_an_answer_with_a_cue():
    names = block("fastrtc-reply")

    async def ask_the_model(_audio):
        return chunks_with_a_call()

    names.update(ask_the_model=ask_the_model, speak=lambda _: np.full((1, 480), 0.1, dtype=np.float32))

    async def go():
        handler = names["with_cues"](ReplyOnPause(names["reply"], model=Loudness(), input_sample_rate=16000))
        handler._loop = asyncio.get_running_loop()
        await say_something(handler)
        await hear(handler, lambda _: cues_of(handler))
        handler.shutdown()
        return cues_of(handler)

    assert asyncio.run(go())[0] == "tool_call"


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
