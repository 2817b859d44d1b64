"""The programs in `samples/` run, each in a process of its own, and what they write has cues and an answer in it.

`tests/fastrtc` runs FastRTC's.
"""

import asyncio
import gc
import importlib.util
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

import cues
import stream
from stream.errors import SpeakerError
from stream.replay.scenarios import Scenario, scenario
from stream.replay.server import ReplayServer
from stream.speech.speaker import PhraseSpeaker

SAMPLES = Path(__file__).parents[3] / "samples"
PROGRAMS = {
    "agents_voice": ["tool_call", "success"],
    "asterisk_call": ["tool_call", "success"],
    "livekit_agent": ["tool_call", "success"],
    "own_loop": ["tool_call", "success"],
    "pipecat_bot": ["tool_call", "success"],
    "realtime_talk": ["tool_call", "success"],
    "realtime_talk --agents": ["tool_call", "success"],
    "twilio_call": ["tool_call", "success"],
}


def test_the_programs_run_by_themselves_and_write_what_is_heard(tmp_path):
    with ThreadPoolExecutor(4) as pool:  # They speak in real time: most of it is waiting.
        list(pool.map(lambda program: check(*program, tmp_path), PROGRAMS.items()))


def check(name, expected, folder):
    out = folder / f"{name}.wav"
    program, *options = name.split()
    command = [sys.executable, str(SAMPLES / f"{program}.py"), *options, "--loopback", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=SAMPLES.parent, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    sounded = [line.split(" at ")[0] for line in done.stdout.splitlines() if " at " in line]
    assert [cue for cue in sounded if cue != "working"] == expected, name
    samples, rate = soundfile.read(out)
    assert rate == (8000 if name.endswith("_call") else 24000)
    loud = np.count_nonzero(np.abs(samples) > 0.05) / rate
    assert 0.3 < loud < 10.0
    assert np.abs(samples).max() < 1.0


def sample(name):
    spec = importlib.util.spec_from_file_location(name, SAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["asterisk_call", "twilio_call"])
@pytest.mark.parametrize("server", ["ollama-announced-calls", "ollama-silent"])
def test_in_a_call_nothing_is_awaited_after_an_answer_without_words(name, server):
    async def go():
        async with ReplayServer(scenario(server), tokens_per_s=None) as model:
            await sample(name).answer(line, model.base_url, "any")

    router = stream.CueRouter(cues.load_bank(""), cues.Mixer(8000))
    line = SimpleNamespace(router=router, push=pytest.fail, end=lambda: None, played=lambda: asyncio.sleep(0))
    asyncio.run(go())
    assert router.is_over


async def never(*_):
    await asyncio.Event().wait()


async def reset_of_asterisk(module):
    server = await asyncio.start_server(module.server_for("http://127.0.0.1:9/v1", "m"), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"\x01\x00\x10" + bytes(16) + b"\x10\x01\x40" + b"\x00\x40" * 160)
    await asyncio.sleep(0.2)
    writer.transport.abort()
    server.close()


async def reset_of_twilio(module):
    messages = [{"type": "websocket.receive", "bytes": b"\xff"}, {"type": "websocket.disconnect"}]
    socket = SimpleNamespace(accept=lambda: asyncio.sleep(0), send_text=never, receive=None)

    async def receive():
        return messages.pop(0)

    socket.receive = receive
    await module.app_for("http://127.0.0.1:9/v1", "m").routes[0].endpoint(socket)


@pytest.mark.parametrize(
    ("name", "call"),
    [("asterisk_call", reset_of_asterisk), ("twilio_call", reset_of_twilio)],
    ids=["asterisk", "twilio"],
)
def test_a_call_that_breaks_off_leaves_no_task(name, call):
    async def go():
        module = sample(name)
        module.answer = never
        await call(module)
        for _ in range(100):
            if len(asyncio.all_tasks()) == 1:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(asyncio.all_tasks())

    asyncio.run(go())


class Device:
    """In place of `pyaudio`, whose library a machine may lack: plays in real time, and notes the first sound."""

    heard = threading.Event()

    def get_format_from_width(self, _):
        return 8

    def open(self, **_):
        return SimpleNamespace(start_stream=int, stop_stream=int, close=int, write=self._write)

    def _write(self, frame):
        time.sleep(len(frame) / 48000.0)  # as a device's buffer does: it keeps the pace, and nothing waits for it
        if np.frombuffer(frame, np.int16).any():
            self.heard.set()


@pytest.mark.filterwarnings("ignore:.*deprecated since 0.0.105:DeprecationWarning")  # within Pipecat
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its open clients
def test_pipecats_program_for_the_loudspeakers_offers_its_tool_and_plays_the_cue(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyaudio", SimpleNamespace(PyAudio=Device, Stream=None))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    calls = Scenario(
        name="own", about="", turns=([["call", "read_folder", {}]], [["say", "Two."]]), without_tools=[["say", "No."]]
    )

    async def go():
        async with ReplayServer(calls) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            running = asyncio.create_task(sample("pipecat_bot").local())
            assert await asyncio.to_thread(Device.heard.wait, 40.0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(go())
    gc.collect()


def test_time_passes_for_the_loops_router_while_no_frame_is_written(monkeypatch):
    program = sample("own_loop")
    loop, now_s = program.Loop(cues.load_bank(), None), time.monotonic()
    loop.router.handle(stream.StreamFailed("gone"))
    for _ in range(10):
        loop.mixer.silence(program.FRAME)
    assert loop.router.sounded()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 5.0)
    assert not loop.router.sounded()


def test_a_voice_that_fails_during_a_call_ends_the_loop_at_once():
    class Failing(PhraseSpeaker):
        name = "failing"

        async def speak(self, phrase):
            raise SpeakerError(phrase)
            yield

    async def events():
        yield stream.TextDelta("Let me see. ")
        yield stream.ToolCallStart("get_weather", "1")
        await never()

    async def go():
        loop = sample("own_loop").Loop(cues.load_bank(), Failing())
        await loop.play(asyncio.gather(loop.answer(events()), loop.speak()), lambda _: None)

    with pytest.raises(SpeakerError, match="Let me see"):  # the call's waiting sound would go on for a minute
        asyncio.run(asyncio.wait_for(go(), 40.0))
