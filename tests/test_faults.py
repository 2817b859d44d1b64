"""Faults of the surroundings: processes that start at once, streams that stop anywhere, clocks that jump, SIGTERM.

`cues/FAULTS.md` says what users can rely on, and names the test of each line.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import cues
import stream
from stream.events import Finish, StreamFailed, ToolCallEnd, ToolCallStart
from tests.support.turns import RATE

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SAMPLES = ROOT / "samples" / "streams"

STARTING_AT_ONCE = """
import os, sys, cues
cues.load_bank(sample_rate=8000)  # imports all that the children need, and keeps nothing of what they load
os.environ["CUES_CACHE_DIR"] = sys.argv[2]
ready, go = os.pipe()
children = []
for _ in range(200):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(ready, 1)  # all begin when the parent closes its end
        bank = cues.load_bank()
        os._exit(0 if abs(bank["error"].measured.m100_max_lufs - float(sys.argv[1])) < 0.001 else 1)
    children.append(child)
os.close(go)
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))
"""


def test_two_hundred_processes_start_at_once_on_one_cache(tmp_path):
    level = cues.load_bank()["error"].measured.m100_max_lufs
    command = [sys.executable, "-W", "error", "-c", STARTING_AT_ONCE, str(level), str(tmp_path)]
    # One thread, because Python 3.12 warns of a fork of several.
    environment = {**os.environ, "CUES_CACHE_DIR": "", "CUES_PACK": "", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    assert done.stdout.split() == ["0"], "processes with another sound, or a failure"
    assert done.stderr == ""
    assert len([path for path in tmp_path.iterdir() if path.is_file()]) == len(cues.load_bank())


def test_a_pack_that_is_replaced_while_it_plays_sounds_on_as_it_was(tmp_path):
    pack = tmp_path / "pack"
    pack.mkdir()
    tone = 0.2 * np.sin(np.arange(2 * RATE) * 0.1).astype(np.float32)
    soundfile.write(pack / "tool_call.wav", tone, RATE, subtype="FLOAT")
    bank = cues.load_bank(pack)
    expected = cues.load_bank(pack)["tool_call"].samples.copy()
    mixer = cues.Mixer(RATE)
    mixer.play(bank["tool_call"], at=0)
    first = mixer.silence(1000)
    (pack / "tool_call.wav").write_bytes(b"no sound at all")
    rest = mixer.silence(len(expected) - 1000)
    shutil.rmtree(pack)
    assert np.array_equal(bank["tool_call"].samples, expected)
    assert np.array_equal(np.concatenate([first, rest]), expected)


# Three recordings of servers, and what of them is a whole line of the wire.
RECORDED = {
    "llama-server, one call": SAMPLES / "llama-server" / "hermes-one-call.sse",
    "llama-server, thinking": SAMPLES / "llama-server" / "qwen3-thinking.sse",
    "Ollama, text and call": SAMPLES / "ollama" / "api-chat-template-hermes-text-and-call.ndjson",
}


@pytest.mark.parametrize("path", RECORDED.values(), ids=RECORDED.keys())
def test_a_stream_that_stops_at_any_byte_ends_every_call_and_says_so(path):
    body = path.read_bytes()
    whole = list(stream.read_sync([body]))
    for end in range(len(body) + 1):
        events = list(stream.read_sync([body[:end]]))
        started = [event.index for event in events if isinstance(event, ToolCallStart)]
        ended = [event.index for event in events if isinstance(event, ToolCallEnd)]
        assert sorted(ended) == started
        is_over = any(isinstance(event, Finish) for event in events)
        failed = [event for event in events if isinstance(event, StreamFailed)]
        assert [event.code for event in failed] == ([] if is_over else ["unfinished"]), (end, body[:end][-40:])
        known = "".join(event.text for event in whole if isinstance(event, stream.TextDelta))
        assert known.startswith("".join(event.text for event in events if isinstance(event, stream.TextDelta)))


def test_a_consumer_that_is_slow_holds_the_server_back():
    lines = [b'{"message":{"content":"word "},"done":false}\n'] * 100
    taken = 0

    async def source():
        nonlocal taken
        for line in lines:
            taken += 1
            yield line

    async def first_word():
        events = stream.read(source())
        await anext(events)
        await asyncio.sleep(0)
        assert taken <= 2, "the reader ran ahead of who reads it"
        await events.aclose()

    asyncio.run(first_word())


@pytest.mark.parametrize("jump_s", [-3600.0, -0.5, 0.5, 3600.0], ids=lambda s: f"{s:+} s")
def test_a_clock_that_jumps_loses_no_speech_and_makes_no_click(jump_s):
    now = 10.0
    mixer = cues.Mixer(RATE)
    pacer = cues.Pacer(mixer, clock=lambda: now)
    speech = (0.2 * np.sin(np.arange(RATE) * 0.05)).astype(np.float32)
    pacer.push(speech)
    pacer.end()
    out = []
    for tick in range(200):
        now += 0.01 + (jump_s if tick == 30 else 0.0)
        out.extend(pacer.due())
        if jump_s < 0.0 and tick == 60:
            now += -jump_s  # a clock that was set back is set right again
    assert np.array_equal(np.concatenate(out)[: len(speech)], speech)


def test_sigterm_ends_a_session_without_half_a_file_and_without_its_speaker(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "demo.wav").write_bytes(b"of an earlier demo")
    command = [sys.executable, "-m", "cues", "demo", "--speaker", "voice-like", "--out", str(out)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while not (out / "demo.wav.part").exists() or (out / "demo.wav.part").stat().st_size < 10_000:
        assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    printed = running.communicate(timeout=60)
    assert (running.returncode, printed) == (143, (b"", b""))
    assert [path.name for path in out.iterdir()] == ["demo.wav"]
    assert (out / "demo.wav").read_bytes() == b"of an earlier demo"
    with pytest.raises(ProcessLookupError):  # nothing of its process group is left
        os.killpg(running.pid, 0)
