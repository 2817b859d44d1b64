"""`cues record --api` against a replay of each API, and that no key is in what it writes."""

import asyncio
import contextlib
import json
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from cues.cli import group
from stream.replay.recording import load_recording
from stream.replay.server import ReplayServer

PROVIDERS = Path(__file__).parents[2] / "stream" / "data" / "providers"
KEY = "sk-hidden-0123456789"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]


@contextlib.contextmanager
def served(recording, requests):
    """The root of a replay in a thread of its own."""
    ready, found = threading.Event(), {}

    async def serve():
        found["over"], found["loop"] = asyncio.Event(), asyncio.get_running_loop()
        note = lambda path, body: requests.append((path, body))  # noqa: E731
        async with ReplayServer([recording], tokens_per_s=1e6, on_request=note) as server:
            found["root"] = server.base_url.removesuffix("/v1")
            ready.set()
            await found["over"].wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(10.0)
    try:
        yield found["root"]
    finally:
        found["loop"].call_soon_threadsafe(found["over"].set)
        thread.join(10.0)


def recorded(api, name, tmp_path):
    requests, file = [], tmp_path / f"x.{name.split('.')[-1]}"
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    headers = {"anthropic": "x-api-key", "gemini": "x-goog-api-key", "live": "x-goog-api-key"}
    header = f"{headers[api]}: {KEY}" if api in headers else f"Authorization: Bearer {KEY}"
    with served(load_recording(PROVIDERS / name), requests) as root:
        options = ["--api", api, "--model", "m", "--prompt", "hello \udcff", "--tools", str(tmp_path / "tools.json")]
        result = CliRunner().invoke(group, ["record", root, *options, "--header", header, "-o", str(file)])
    assert result.exit_code == 0, result.output
    return load_recording(file), requests, tmp_path


CASES = [
    ("responses", "responses/two-rounds-call.sse", "/v1/responses"),
    ("anthropic", "anthropic/thinking-then-call.sse", "/v1/messages"),
    ("gemini", "gemini/call-with-signature.sse", "/v1beta/models/m:streamGenerateContent"),
]


@pytest.mark.parametrize(("api", "name", "path"), CASES, ids=[case[0] for case in CASES])
def test_an_answer_is_recorded_byte_by_byte_and_its_request_in_the_apis_form(api, name, path, tmp_path):
    recording, requests, folder = recorded(api, name, tmp_path)
    original = load_recording(PROVIDERS / name)
    assert (recording.body, recording.api, recording.kind) == (original.body, api, original.kind)
    assert [(asked, body) for asked, body in requests] == [(path, recording.request)]
    assert "hello \ufffd" in json.dumps(recording.request, ensure_ascii=False)
    assert all(KEY not in file.read_text(encoding="utf-8") for file in folder.iterdir())


SESSIONS = [
    ("realtime", "realtime/openai-tool-round.jsonl", "response.done"),
    ("live", "live/tool-round.jsonl", "toolCall"),
]


@pytest.mark.parametrize(("api", "name", "last"), SESSIONS, ids=[case[0] for case in SESSIONS])
def test_a_session_is_recorded_until_its_turn_is_over(api, name, last, tmp_path):
    recording, _, folder = recorded(api, name, tmp_path)
    original = load_recording(PROVIDERS / name).messages()
    messages = recording.messages()
    assert messages == original[: len(messages)]
    assert messages[-1].get("type", next(iter(messages[-1]))) == last
    assert (recording.api, len(recording.reads)) == (api, len(messages))
    assert all(KEY not in file.read_text(encoding="utf-8") for file in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--api", "anthropic", "--model", "m"], "--prompt or --body"),
        (["--api", "live", "--prompt", "p"], "needs --model"),
        (["--api", "nonsense"], "is not one of"),
    ],
)
def test_what_is_missing_is_named(arguments, says, tmp_path):
    result = CliRunner().invoke(group, ["record", "http://127.0.0.1:9", *arguments, "-o", str(tmp_path / "x.sse")])
    assert result.exit_code == 2
    assert says in result.output


def test_a_session_that_cannot_be_opened_is_one_line_without_the_key(tmp_path):
    options = ["--api", "live", "--model", "m", "--prompt", "p", "-o", str(tmp_path / "x.jsonl")]
    result = CliRunner().invoke(group, ["record", f"http://u:{KEY}@127.0.0.1:9", *options])
    assert result.exit_code == 1
    assert KEY not in str(result.exception) + result.output


def test_a_sessions_secret_is_not_recorded():
    from stream.replay.hiding import Secrets

    created = {"type": "session.created", "session": {"client_secret": {"value": "ek_hidden", "expires_at": 1}}}
    resumed = {"sessionResumptionUpdate": {"newHandle": 'hand\\le"hidden', "resumable": True}}
    for message in (created, resumed):
        body = json.dumps(message).encode()
        hidden = Secrets("http://h/", {}).hide(body)
        assert b"hidden" not in hidden
        assert len(hidden) == len(body)
        json.loads(hidden)
