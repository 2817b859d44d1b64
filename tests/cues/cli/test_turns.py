"""`cues demo`, `speak`, `replay` and `record` as a user runs them: processes, files, exit codes and one-line errors."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile

from stream.replay.recording import load_recording, samples_folder

SAMPLES = samples_folder()
CALL = SAMPLES / "llama-server" / "hermes-text-and-call.sse"
CHECK_DEMO = Path(__file__).parents[3] / ".ci" / "check_demo.py"


def cues(*arguments, cwd=None, environment=None, timeout=120, prepare=None):
    return subprocess.run(
        [sys.executable, "-m", "cues", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
        timeout=timeout,
        check=False,
        preexec_fn=prepare,
    )


def one_line(result):
    """The error that a failed command printed: one line and no traceback."""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_the_demo_prints_a_timeline_and_names_the_speaker_and_the_files_which_hold_what_is_claimed(tmp_path):
    result = cues("demo", "--fast", "--speaker", "voice-like", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "speaker: voice-like generator" in result.stdout
    for expected in ("Let me look that up: Tokyo first.", "get_weather", "♪ cue", "demo.wav", "demo.png", "demo.json"):
        assert expected in result.stdout
    checked = subprocess.run([sys.executable, CHECK_DEMO, tmp_path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_disk_that_fills_up_in_a_turn_ends_it_with_one_line(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    out = tmp_path / "out"
    result = cues("demo", "--fast", "--speaker", "voice-like", "--out", out, prepare=limit)
    assert result.returncode == 1
    assert one_line(result).startswith(f"cues: cannot write into the folder {out}: ")
    assert not list(out.glob("*.part"))


def test_what_was_spoken_before_the_stream_broke_is_kept(tmp_path):
    body = CALL.read_bytes()
    (tmp_path / "cut.sse").write_bytes(body[: body.index(b'"tool_calls"')])
    result = cues("speak", "--replay", "cut.sse", "--fast", "--speaker", "voice-like", cwd=tmp_path)
    assert result.returncode == 1
    assert "ended without a finish reason" in one_line(result) or "unfinished" in one_line(result)
    speech, _ = soundfile.read(tmp_path / "speak-speech.wav")
    assert np.abs(speech).max() > 0.1
    assert "Let me look that up" in json.loads((tmp_path / "speak.json").read_text())["spoken_text"]


@contextmanager
def replayed(*arguments, cwd):
    """The URL of `cues replay` in a process of its own, which Ctrl-C ends."""
    command = [sys.executable, "-m", "cues", "replay", *map(str, arguments), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd) as server:
        try:
            yield re.search(r"http://\S+", server.stdout.readline())[0]
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=20)
    assert server.returncode == 0


def test_a_server_that_refuses_is_named_with_its_status_and_words(tmp_path):
    (tmp_path / "no.ndjson").write_text('{"error":{"message":"model \\"x\\" not found"}}')
    (tmp_path / "no.http.json").write_text('{"status": 404, "headers": {"content-type": "application/json"}}')
    with replayed("no.ndjson", cwd=tmp_path) as url:
        result = cues("speak", "hi", "--base-url", url, "--model", "x", "--speaker", "voice-like", cwd=tmp_path)
    assert result.returncode == 1
    assert "404" in one_line(result)
    assert 'model "x" not found' in one_line(result)


def test_a_password_in_a_servers_address_is_not_shown(tmp_path):
    (tmp_path / "busy.ndjson").write_text('{"error":{"message":"busy"}}')
    (tmp_path / "busy.http.json").write_text('{"status": 403, "headers": {"content-type": "application/json"}}')
    with replayed("busy.ndjson", cwd=tmp_path) as url:
        own = url.replace("http://", "http://me:hunter2@")
        result = cues("speak", "hi", "--base-url", own, "--model", "x", "--speaker", "voice-like", cwd=tmp_path)
    assert result.returncode == 1
    assert f"{url} answered HTTP 403: busy" in one_line(result)


def test_tools_that_a_model_is_not_offered_are_told_of(tmp_path):
    chunk = '{"choices":[{"index":0,"delta":{"content":"I cannot."},"finish_reason":"stop"}]}'
    (tmp_path / "say.sse").write_text(f"data: {chunk}\n\ndata: [DONE]\n\n")
    with replayed("say.sse", cwd=tmp_path) as url:
        asked = ["list the files", "--base-url", url, "--model", "gemma3:4b", "--folder", ".", "--fast"]
        told = cues("speak", *asked, "--speaker", "voice-like", cwd=tmp_path).stdout
    assert "not offered (the model calls no tools): list_directory" in " ".join(told.split())


def test_a_folder_is_listed_for_a_model_that_asks(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    call = '"tool_calls":[{"index":0,"id":"c1","function":{"name":"list_directory","arguments":"{}"}}]'
    for name, delta, finish in (("ask", call, "tool_calls"), ("say", '"content":"There it is."', "stop")):
        chunk = f'{{"choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":"{finish}"}}]}}'
        (tmp_path / f"{name}.sse").write_text(f"data: {chunk}\n\ndata: [DONE]\n\n")
    with replayed("ask.sse", "say.sse", cwd=tmp_path) as url:
        asked = ["list the files", "--base-url", url, "--model", "m", "--folder", ".", "--speaker", "voice-like"]
        record = json.loads(cues("speak", *asked, "--fast", "--json", cwd=tmp_path).stdout)
    (listed,) = [event for event in record["events"] if event["type"] == "ToolResult"]
    assert "notes.txt" in listed["content"]
    assert record["spoken_text"] == "There it is."
    assert [cue["cue"] for cue in record["cues"]] == ["tool_call", "success"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["speak", "--replay", "none.sse"], "none.sse"),
        (["speak", "--replay", "picture.sse"], "not a recording"),
        (["replay", "none.sse"], "none.sse"),
        (["record", "http://127.0.0.1:9/v1", "--model", "m", "--prompt", "p", "-o", "x.sse"], "127.0.0.1:9"),
        (["demo", "--out", "file"], "file"),
        (["demo", "--fast", "--out", "file/below"], "file/below"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_with_what_and_where(arguments, says, tmp_path):
    (tmp_path / "picture.sse").write_bytes(b"\x89PNG")
    (tmp_path / "file").write_text("")
    result = cues(*arguments, cwd=tmp_path)
    assert result.returncode in (1, 2)
    assert says in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("there", ["x.sse", "x.http.json", "x.request.json"])
def test_a_recording_is_never_written_over_another(there, tmp_path):
    (tmp_path / there).write_text("kept")
    request = ["record", "http://127.0.0.1:9/v1", "--model", "m", "--prompt", "p"]
    result = cues(*request, "-o", "x.sse", cwd=tmp_path)
    assert result.returncode == 2
    assert f"'{there}' exists; name another file" in result.stderr
    assert (tmp_path / there).read_text() == "kept"


def test_replay_serves_what_record_keeps(tmp_path):
    with replayed(CALL, "--tokens-per-s", "1000", cwd=tmp_path) as url:
        asked = ["--model", "m", "--prompt", "p", "--header", "Authorization: Bearer k3y", "-o", "mine.sse"]
        result = cues("record", f"{url}/chat/completions", *asked, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    kept = load_recording(tmp_path / "mine.sse")
    assert kept.body == CALL.read_bytes()
    assert kept.request["messages"] == [{"role": "user", "content": "p"}]
    assert not any("k3y" in path.read_text() for path in tmp_path.iterdir())
