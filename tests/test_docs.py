"""Every code block of the documentation is run, line by line where it is for a shell.

A line that cannot run here (it asks a live server, serves forever, installs, needs loudspeakers) is in a table with
its reason: a line that is neither run nor in the table fails. The pipelines' page has a test of its own.
"""

import ast
import asyncio
import dataclasses
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

import cues
import stream
from cues.cli import group
from cues.show.audition import stand_in_speech
from stream.readers.text.dialect import Dialect
from stream.readers.text.dialects import json_calls
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer
from tests.typing import page_blocks

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    *("README.md", "CONTRIBUTING.md", "samples/README.md", "stream/README.md"),
    *("stream/services/README.md", "stream/replay/README.md", "stream/session/README.md"),
    *("cues/README.md", "cues/library/README.md", "cues/mixing/README.md", "cues/cli/README.md"),
    "cues/TROUBLESHOOTING.md",
)

# What a line begins with → why it is not run.
NOT_RUN = {
    "python3 -m venv": "installs; .ci/run does it",
    "pip install": "installs",
    ". .venv/bin/activate": "is for a person's shell",
    "bash .ci/run": "runs this test",
    "python -m pytest": "runs this test",
    ".venv/bin/python -m pytest": "runs this test",
    "python -m venv .venv-fastrtc": "installs",
    ".venv-fastrtc/bin/python -m pytest": "runs in that environment",
    "python -m bench": "measures for minutes",
    "cues play": "needs loudspeakers",
    "cues page --serve": "serves until Ctrl-C",
    "cues live": "serves until Ctrl-C",
    "ssh -L": "needs another machine",
    "cues replay": "serves until Ctrl-C",
    "cues proxy": "serves until Ctrl-C",
    "cues record": "asks a live server",
    "cues check-model": "asks a live server",
    'cues speak "': "asks a live server",
    "cues batch measure s3://": "asks a live server",
}
# A cue lasts 0.3 s, and the waiting sound of a call without an outcome begins after 3.5 s.
LISTENING_S = 8
# Pages whose loops run the tool of the model's call.
RUN_A_TOOL = ("README.md", "stream/README.md", "stream/services/README.md", "stream/session/README.md")
# Commands whose exit code says that they found something, as the page tells.
FINDS = ("cues check",)


def blocks(page):
    """(language, code, line number) of each code block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 2


def written():
    return [page for page in PAGES if (ROOT / page).exists()]


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """A folder like a clone with a pack, some recordings and a plan, as the pages take for granted."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    speech = stand_in_speech(24000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUES_CACHE_DIR", os.environ["CUES_CACHE_DIR"])  # `cues warm-up --into` sets it for its process
    (tmp_path / "notes").mkdir()
    soundfile.write("speech.wav", np.tile(speech, 2), 24000)
    for pack in ("other-sounds", "sounds"):
        assert CliRunner().invoke(group, ["new-pack", pack]).exit_code == 0
    (tmp_path / "calls" / "monday").mkdir(parents=True)
    (tmp_path / "monday").mkdir()
    for name in ("0001", "0002"):
        soundfile.write(tmp_path / "calls" / "monday" / f"{name}.wav", np.tile(speech, 2), 24000)
        soundfile.write(tmp_path / "monday" / f"{name}.wav", np.tile(speech, 2), 24000)
    Path("plan.csv").write_text("file,cue,time_s\nmonday/0001.wav,tool_call,1.25\n")
    return tmp_path


@pytest.mark.parametrize("page", written())
def test_every_line_for_a_shell_works(page, surroundings):
    text = (ROOT / page).read_text(encoding="utf-8")
    for file, code in re.findall(
        r"Save this as `(\S+)`[^\n]*\n\n```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        Path(file).write_text(code)
    for language, code, number in blocks(page):
        if language == "toml" and Path("my-sounds").exists():  # the page changes the pack that it has made
            change_pack(Path("my-sounds/pack.toml"), code)
        if language == "sh":
            for offset, line in enumerate(code.replace("\\\n", " ").splitlines()):
                run_line(line, f"{page}:{number + offset}")


def change_pack(file, code):
    """Write each line of a page's TOML into its section of the file, in place of the line with the same key."""
    text, section = file.read_text(), ""
    for line in filter(None, code.splitlines()):
        key = line.partition(" =")[0]
        if line.startswith("["):
            section = line
        elif f"\n{key} =" in text:
            text = re.sub(rf"\n{re.escape(key)} =.*", lambda _, line=line: f"\n{line}", text, count=1)
        else:
            text = text.replace(f"\n{section}", f"\n{section}\n{line}", 1)
    file.write_text(text)


def run_line(line, where):
    command = shlex.join(words) if (words := shlex.split(line, comments=True)) else ""
    if not command or any(line.startswith(start) for start in NOT_RUN):
        return
    if words[:2] in (["cues", "demo"], ["cues", "speak"]) and "--fast" not in words:
        words.append("--fast")  # nobody listens
    if words[0] == "cues":
        result = CliRunner().invoke(group, words[1:])
        found_something = line.startswith(FINDS) and isinstance(result.exception, SystemExit)
        assert result.exit_code == 0 or found_something, f"{where}: {line}\n{result.output}\n{result.exception!r}"
    else:
        assert words[0] in {"cp", "python", "ls"}, f"{where}: is neither run nor named in NOT_RUN: {line}"
        words[0] = sys.executable if words[0] == "python" else words[0]
        subprocess.run(words, check=True, capture_output=True)


@pytest.mark.parametrize("page", written())
def test_the_python_blocks_of_a_page_work_one_after_the_other(page, surroundings):
    CliRunner().invoke(group, ["new-pack", "my-sounds"])
    namespace = {**common_names(), "__name__": "a page"}

    for language, code, _ in blocks(page):
        for table, file in (("[[family]]", "models.toml"), ("[[tier]]", "tiers.toml")):
            if language == "toml" and table in code:
                Path(file).write_text(code)

    model = Model()

    async def run_page():
        # Where a page asks a model server, one on this machine answers.
        async with ReplayServer(model, tokens_per_s=None) as server:
            namespace["url"] = server.base_url
            try:
                for language, code, number in blocks(page):
                    if language == "python":
                        asked = re.sub(r"http://localhost:11434(/v1)?", server.base_url, code)
                        await run_block(asked, namespace, page, number)
                    if language == "python":
                        until_silent(namespace, f"{page}:{number}")
                    if "get_weather" in namespace:  # from here on a page's tools can be run
                        namespace["tools"] = [namespace["get_weather"]]
            finally:
                if "client" in namespace:
                    await namespace["client"].close()

    asyncio.run(asyncio.wait_for(run_page(), 300.0))
    assert bool(model.results or namespace["ran"]) == (page in RUN_A_TOOL)
    assert set(model.results) <= {"Oslo: 12 degrees"}
    assert all(arguments == {"city": "Oslo"} for arguments in namespace["ran"])


class Model:
    """A model that calls a tool and answers; `requests` is what it was asked, and `results` what the tool gave it."""

    def __init__(self, turn=(["say", "Let me look."], ["call", "get_weather", {"city": "Oslo"}])):
        self._script = dataclasses.replace(scenario("ollama-plain-text"), turns=[list(turn), [["say", "It is done."]]])
        self.requests, self.results = [], []

    def __getattr__(self, name):
        return getattr(self._script, name)

    def answer(self, path, request):
        self.requests.append(request)
        self.results += [message["content"] for message in request["messages"] if message["role"] == "tool"]
        return self._script.answer(path, request)


@pytest.mark.parametrize("page", ["cues/FAULTS.md", "tests/REQUIREMENTS.md"])
def test_a_page_names_tests_that_there_are(page):
    named = re.findall(r"`(?:tests/)?([\w/]+\.py)::(test_\w+)", (ROOT / page).read_text(encoding="utf-8"))
    assert named
    for file, name in named:
        path = ROOT / "tests" / file
        assert path.is_file(), f"{page}: {file}"
        assert f"def {name}(" in path.read_text(encoding="utf-8"), f"{page}: {file}::{name}"


def test_the_loop_on_the_page_raises_at_once_what_a_tool_raises():
    page = "stream/session/README.md"
    ((code, number),) = ((code, number) for _, code, number in blocks(page) if "await answering" in code)

    def get_weather(_):
        raise ZeroDivisionError

    namespace = {**common_names(), "functions": {"get_weather": get_weather}}
    with pytest.raises(ZeroDivisionError):  # the call's waiting sound would go on for a minute
        asyncio.run(asyncio.wait_for(run_block(code, namespace, page, number), 40.0))


def test_the_python_blocks_pass_a_users_mypy(tmp_path):
    files = page_blocks.write_modules([ROOT / page for page in (*written(), "cues/adapters/own_loop.md")], tmp_path)
    assert len(files) > 20
    strict = ["--strict", "--config-file=", "--cache-dir", ROOT / ".mypy_cache" / "pages"]
    command = [sys.executable, "-m", "mypy", *strict, *(file.name for file in files)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def until_silent(namespace, where):
    """Listen to every mixer of a page: after an example, nothing sounds and nothing waits for long."""
    mixers = {id(each): each for each in namespace.values() if isinstance(each, cues.Mixer)}
    for mixer in mixers.values():
        heard = np.concatenate([mixer.silence(480) for _ in range(LISTENING_S * mixer.sample_rate // 480)])
        assert np.isfinite(heard).all()
        assert not heard[-mixer.sample_rate :].any(), f"{where}: something still sounds {LISTENING_S} s later"
        assert not mixer.active, f"{where}: something still waits {LISTENING_S} s later"


async def run_block(code, namespace, page, number):
    # Blank lines before it, so that an error names the page's own line.
    tree = compile(
        "\n" * (number - 1) + code, str(ROOT / page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    running = eval(tree, namespace)
    if inspect.iscoroutine(running):
        await running


def common_names():
    """Names that the pages take for granted: a client's stream, a voice, audio."""
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "One moment, please. "}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call("get_weather", '{"city": "Oslo"}')]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]

    class Voice:
        async def send(self, text):
            assert "{" not in text

    samples = stand_in_speech(24000)
    bank = cues.load_bank()
    mixer = cues.Mixer(sample_rate=24000)
    frame = samples[4800:5280].copy()
    ran = []

    def get_weather(arguments):
        ran.append(arguments)
        return f"{arguments['city']}: 12 degrees"

    return {
        "ran": ran,
        "openai_stream": Replayed(chunks),
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
        "tts": Voice(),
        "router": stream.CueRouter(bank, mixer),
        "bank": bank,
        "mixer": mixer,
        "samples": samples,
        "frame": frame,
        "frames": np.zeros((1000, 480), dtype=np.float32),
        "data": (32767 * frame).astype("<i2").tobytes(),
        "send": lambda _: None,
        "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
        "functions": {"get_weather": get_weather},
        "plan": [],
        "load_search_tools": list,
        "listing": [],
        "Dialect": Dialect,
        "json_calls": json_calls,
    }


def call(name, arguments):
    return {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


class Replayed:
    """An asynchronous iterator over chunks that can be gone through again and again."""

    def __init__(self, chunks):
        self.chunks = chunks

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk


@pytest.mark.parametrize("api", ["chat", "ollama"])
def test_the_request_bodies_on_the_page_are_those_that_are_sent(api):
    page = [json.loads(code) for language, code, _ in blocks("stream/services/README.md") if language == "json"]
    body, messages = page[0], page[1 if api == "chat" else 2]
    if api == "ollama":
        del body["stream_options"]
        body["options"] = {"temperature": body.pop("temperature")}
    (tool,) = (definition["function"] for definition in body["tools"])
    read_file = stream.Tool(**tool, function=lambda path: "hello")  # noqa: ARG005  (the model fills it in)
    model = Model([["call", "read_file", {"path": "a.txt"}]])

    async def ask():
        async with (
            ReplayServer(model, tokens_per_s=None) as server,
            stream.connect(server.base_url, body["model"], api=api) as connection,
        ):
            runner = stream.ToolRunner(connection, [read_file])
            return [event async for event in runner.chat(body["messages"], temperature=0.2)]

    called = next(event for event in asyncio.run(ask()) if isinstance(event, stream.ToolCallEnd))
    first, second = model.requests
    assert first == body
    answer = json.loads(json.dumps(second["messages"][1:]).replace(called.tool_call_id, "call_1"))
    assert answer == messages
