"""Bytes that real servers have streamed, through the readers and through the real client."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest

from stream import OllamaReader, OpenAIReader, ReasoningDelta, StreamFailed, TextDelta, ToolCallEnd, read, read_sync
from stream.replay.recording import samples_folder
from tests.stream.providers import read_all

FOLDER = samples_folder()
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
LINES = [name for name in EXPECTED if name.endswith(".ndjson")]
SERVER_EVENTS = [name for name in EXPECTED if name.endswith(".sse")]


def summary(events):
    """The entry of a recording in expected.json, from our events."""
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    found = {
        "calls": [[end.tool_name, json.loads(end.arguments_json)] for end in ends if end.status == "ok"],
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)).strip(),
        "thinking": "".join(event.text for event in events if isinstance(event, ReasoningDelta)).strip(),
    }
    failures = [event for event in events if isinstance(event, StreamFailed)]
    if any(failed.code == "unfinished" for failed in failures):
        found["unfinished"] = True
    elif failures:
        found["error"] = True
    if any(getattr(event, "reason", "") == "length" for event in events):
        found["cut"] = True
    return found


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
def test_recorded_lines_read_as_expected_in_reads_of_any_size(name, size):
    body = (FOLDER / name).read_bytes()
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert summary(read_all(OllamaReader(), pieces)) == EXPECTED[name]


@pytest.mark.parametrize("name", SERVER_EVENTS)
def test_recorded_chunks_read_as_expected(name):
    lines = (FOLDER / name).read_bytes().split(b"\n")
    data = [line[6:] for line in lines if line.startswith(b"data: {")]
    assert summary(read_all(OpenAIReader(), map(json.loads, data))) == EXPECTED[name]


class _Replay(BaseHTTPRequestHandler):
    """Answers with the recording that the path names, in writes as large as the path says."""

    def do_POST(self):
        _, size, *rest = self.path.split("/")
        body = (FOLDER / "/".join(rest).removesuffix("/chat/completions")).read_bytes()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for start in range(0, len(body), int(size)):
            self.wfile.write(body[start : start + int(size)])
            self.wfile.flush()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Replay) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.mark.parametrize("name", SERVER_EVENTS)
@pytest.mark.parametrize("size", [1, 10**6])
def test_recording_reads_as_expected_through_the_client_over_loopback(server, name, size):
    async def collect():
        async with openai.AsyncOpenAI(base_url=f"{server}/{size}/{name}", api_key="none", max_retries=0) as client:
            stream = client.chat.completions.create(model="any", messages=[], stream=True)
            return [event async for event in read(stream)]

    assert summary(asyncio.run(collect())) == EXPECTED[name]


def test_synchronous_twin_reads_the_same(server):
    name = SERVER_EVENTS[0]
    with openai.OpenAI(base_url=f"{server}/100/{name}", api_key="none", max_retries=0) as client:
        events = list(read_sync(client.chat.completions.create(model="any", messages=[], stream=True)))
    assert summary(events) == EXPECTED[name]
