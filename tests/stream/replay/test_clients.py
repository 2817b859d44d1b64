"""A replay as clients meet it: the providers' packages, whole answers, errors, pages, and clients that misbehave."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import httpx2
import openai
import pytest

import stream
from stream.replay.recording import load_recording, samples_folder
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer

PROVIDERS = Path(__file__).parent.parent / "data" / "providers"
FAST = 1_000_000.0


def serving(script, ask, **options):
    """The result of `ask(root)` against a replay of recordings or a scenario."""

    async def go():
        async with ReplayServer(script, tokens_per_s=FAST, **options) as server:
            return await ask(server.base_url.removesuffix("/v1"))

    return asyncio.run(asyncio.wait_for(go(), 20.0))


async def completion(root):
    async with openai.AsyncOpenAI(base_url=f"{root}/v1", api_key="none", max_retries=0) as client:
        choice = (await client.chat.completions.create(model="m", messages=[])).choices[0]
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    return calls, choice.message.content or "", choice.finish_reason


async def native(root):
    async with httpx2.AsyncClient() as client:
        answer = (await client.post(f"{root}/api/chat", json={"messages": [], "stream": False})).json()
    functions = [call["function"] for call in answer["message"].get("tool_calls", ())]
    return (
        [(each["name"], each["arguments"]) for each in functions],
        answer["message"]["content"],
        answer["done_reason"],
    )


SAMPLES = [
    ("llama-server/hermes-two-calls.sse", completion, 2, "tool_calls"),
    ("llama-server/hermes-text-and-call.sse", completion, 1, "tool_calls"),
    ("ollama/v1-template-hermes-two-calls.sse", completion, 2, "tool_calls"),
    ("ollama/v1-template-hermes-plain-text.sse", completion, 0, "stop"),
    ("ollama/api-chat-template-hermes-two-calls.ndjson", native, 2, "stop"),
    ("ollama/api-chat-native-gpt-oss.ndjson", native, 1, "stop"),
]


@pytest.mark.parametrize(("name", "ask", "calls", "reason"), SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_a_whole_answer_of_a_local_server_has_what_its_stream_has(name, ask, calls, reason):
    recording = load_recording(samples_folder() / name)
    streamed = list(stream.read_sync([recording.body]))
    found, text, finish = serving([recording], ask)
    ends = [(event.tool_name, event.arguments) for event in streamed if isinstance(event, stream.ToolCallEnd)]
    assert (found, len(found), finish) == (ends, calls, reason)
    assert text.strip() == "".join(event.text for event in streamed if isinstance(event, stream.TextDelta)).strip()


@pytest.mark.parametrize(
    "name", ["litellm-index-zero", "litellm-empty-ids", "llama-server-repeated-ids", "fork-duplicate"]
)
def test_a_servers_quirks_with_calls_are_gone_in_its_whole_answer(name):
    calls, _, _ = serving(scenario(name), completion)
    assert calls == [(step[1], step[2]) for step in scenario(name).turns[0] if step[0] == "call"]


PATHS = {"chat": "/v1/chat/completions", "ollama": "/api/chat"}


def refused(api, script, **request):
    """The status of an answer, and its words in the form of the API; any other form raises."""

    async def ask(root):
        async with httpx2.AsyncClient() as client:
            return await client.post(root + PATHS[api], **request)

    answer = serving(scenario(script), ask)
    error = answer.json()["error"]
    return answer.status_code, error if api == "ollama" else error["message"]


@pytest.mark.parametrize(("api", "other"), [("chat", "fork-error-in-done"), ("ollama", "vllm-fragments")])
def test_another_path_is_refused_in_the_form_of_the_server_that_was_asked(api, other):
    status, message = refused(api, other, json={"stream": True})
    assert status == 404
    assert "this replay answers" in message


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(
    "body", [b"{", b"", b"[]", b"5", b"\xff", b"[" * 100_000], ids=["cut", "none", "list", "number", "bytes", "deep"]
)
def test_a_body_that_is_no_object_is_refused_in_the_form_of_the_api(api, body):
    status, message = refused(api, "ollama-plain-text", content=body)
    assert status == 400
    assert "cannot be parsed" in message


def test_pages_answer_and_head_has_their_headers_without_a_body():
    async def ask(root):
        async with httpx2.AsyncClient() as client:
            pages = [await client.get(root + path) for path in ("/v1/models", "/api/tags", "/api/version")]
            heads = [await client.head(root + path) for path in ("/v1/models", "/api/version", "/nothing")]
        return pages, heads

    pages, heads = serving(scenario("ollama-plain-text"), ask)
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert pages[1].json()["models"][0]["name"] == pages[0].json()["data"][0]["id"] == "replay"
    assert [(head.status_code, head.content) for head in heads] == [(200, b""), (200, b""), (404, b"")]
    assert heads[1].headers["content-length"] == pages[2].headers["content-length"]


def test_every_answer_is_reported_with_its_status():
    seen = []

    async def ask(root):
        async with httpx2.AsyncClient() as client:
            await client.post(root + "/api/chat", json={})
            await client.get(root + "/nothing")
            await client.post(root + "/api/chat", content=b"{")

    serving(scenario("ollama-plain-text"), ask, on_answer=lambda *answer: seen.append(answer))
    assert seen == [("POST", "/api/chat", 200), ("GET", "/nothing", 404), ("POST", "/api/chat", 400)]


def test_recordings_of_two_apis_or_of_one_that_is_not_served_are_refused():
    chat, native = (
        load_recording(samples_folder() / "ollama" / name)
        for name in ("v1-template-hermes-plain-text.sse", "api-chat-template-hermes-two-calls.ndjson")
    )
    with pytest.raises(stream.errors.StreamValueError, match="turns are of chat, ollama; they must be"):
        ReplayServer([chat, native])
    with pytest.raises(stream.errors.StreamValueError, match="turns are of anthropic; they must be"):
        ReplayServer([load_recording(PROVIDERS / "anthropic" / "two-calls.sse")])


def test_halves_of_characters_in_a_request_do_not_end_the_answer():
    async def ask(root):
        async with httpx2.AsyncClient() as client:
            return await client.post(root + "/v1/chat/completions", content=b'{"model": "\\ud83d", "stream": true}')

    assert serving(scenario("ollama-plain-text"), ask).text.count("sunny") == 1


def test_a_client_that_does_not_read_does_not_hold_the_server_open():
    async def go():
        short = load_recording(samples_folder() / "llama-server" / "hermes-plain-text.sse")
        long = replace(short, body=b"data: " + b"x" * 50_000_000 + b"\n\n", reads=())
        full = asyncio.Event()
        async with ReplayServer([long], tokens_per_s=FAST, on_request=lambda *_: full.set()) as server:
            port = int(server.base_url.split(":")[2].split("/")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            body = b'{"stream": true}'
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await full.wait()
            await reader.read(1)  # the answer has begun; nothing more is read
        writer.close()
        return True

    assert asyncio.run(asyncio.wait_for(go(), 20.0))
