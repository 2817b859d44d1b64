"""A replay as clients meet it: the providers' packages, whole answers, errors, pages, and clients that misbehave."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai

import stream
from stream.replay.recording import load_recording, samples_folder
from stream.replay.scenarios import names, scenario
from stream.replay.server import ReplayServer

PROVIDERS = Path(__file__).parent.parent / "data" / "providers"
EXPECTED = json.loads((PROVIDERS / "expected.json").read_text(encoding="utf-8"))
FAST = 1_000_000.0


def serving(script, ask, **options):
    """The result of `ask(root)` against a replay of recordings or a scenario."""

    async def go():
        async with ReplayServer(script, tokens_per_s=FAST, **options) as server:
            return await ask(server.base_url.removesuffix("/v1"))

    return asyncio.run(asyncio.wait_for(go(), 20.0))


def recorded(name):
    return [load_recording(PROVIDERS / name)]


def recordings(api):
    return [name for name in EXPECTED if name.startswith(api) and not EXPECTED[name].get("error")]


async def responses(root):
    async with openai.AsyncOpenAI(base_url=f"{root}/v1", api_key="none", max_retries=0) as client:
        answer = await client.responses.create(model="m", input="hello")
    calls = [item for item in answer.output if item.type in ("function_call", "custom_tool_call")]
    found = [
        [call.name, json.loads(call.arguments) if call.type == "function_call" else {"input": call.input}]
        for call in calls
    ]
    return found, answer.output_text


async def messages(root):
    async with anthropic.AsyncAnthropic(base_url=root, api_key="none", max_retries=0) as client:
        answer = await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}])
    calls = [[block.name, block.input] for block in answer.content if block.type == "tool_use"]
    return calls, "".join(block.text for block in answer.content if block.type == "text")


async def gemini(root):
    async with httpx.AsyncClient() as http:  # with aiohttp's, the package makes a deprecated class
        options = genai.types.HttpOptions(base_url=root, httpx_async_client=http)
        client = genai.Client(vertexai=False, api_key="none", http_options=options)
        answer = await client.aio.models.generate_content(model="m", contents="hello")
    parts = answer.candidates[0].content.parts
    calls = [[part.function_call.name, part.function_call.args or {}] for part in parts if part.function_call]
    return calls, "".join(part.text for part in parts if part.text and not part.thought)


WHOLE = [
    *((name, responses) for name in recordings("responses")),
    *((name, messages) for name in recordings("anthropic")),
    *((name, gemini) for name in recordings("gemini/") if "partial" not in name),
]


@pytest.mark.parametrize(("name", "ask"), WHOLE, ids=[name for name, _ in WHOLE])
def test_a_client_that_does_not_stream_gets_the_whole_answer(name, ask):
    calls, text = serving(recorded(name), ask)
    assert calls == EXPECTED[name]["calls"]
    assert " ".join(text.split()) == " ".join(EXPECTED[name]["text"].split())


@pytest.mark.parametrize("name", recordings("gemini/"))
def test_googles_package_streams_every_recording_arrays_too(name):
    async def ask(root):
        async with stream.connect(root, "m", api="gemini") as model:
            return [event async for event in model.chat([{"role": "user", "content": "hello"}])]

    events = serving(recorded(name), ask)
    calls = [[event.tool_name, event.arguments] for event in events if isinstance(event, stream.ToolCallEnd)]
    assert calls == EXPECTED[name]["calls"]
    assert [event.reason for event in events if isinstance(event, stream.Finish)] == EXPECTED[name]["finish"]


def test_gemini_without_server_sent_events_is_one_array():
    async def ask(root):
        async with httpx2.AsyncClient() as client:
            return await client.post(f"{root}/v1beta/models/m:streamGenerateContent", json={})

    assert (
        serving(recorded("gemini/partial-arguments.sse"), ask).json()
        == recorded("gemini/partial-arguments.sse")[0].messages()
    )


async def completion(root):
    async with openai.AsyncOpenAI(base_url=f"{root}/v1", api_key="none", max_retries=0) as client:
        answer = await client.chat.completions.create(model="m", messages=[])
    choice = answer.choices[0]
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]
    return calls, choice.message.content or "", choice.finish_reason


async def native(root):
    async with httpx2.AsyncClient() as client:
        answer = (await client.post(f"{root}/api/chat", json={"messages": [], "stream": False})).json()
    calls = [
        (call["function"]["name"], call["function"]["arguments"]) for call in answer["message"].get("tool_calls", ())
    ]
    return calls, answer["message"]["content"], answer["done_reason"]


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
    streamed = list(stream.read_sync(recording.messages(), reader=_reader(recording)))
    found, text, finish = serving([recording], ask)
    ends = [(event.tool_name, event.arguments) for event in streamed if isinstance(event, stream.ToolCallEnd)]
    assert (found, len(found), finish) == (ends, calls, reason)
    assert text.strip() == "".join(event.text for event in streamed if isinstance(event, stream.TextDelta)).strip()


def _reader(recording):
    return stream.OllamaReader() if recording.api == "ollama" else stream.OpenAIReader()


@pytest.mark.parametrize(
    "name", ["litellm-index-zero", "litellm-empty-ids", "llama-server-repeated-ids", "fork-duplicate"]
)
def test_a_servers_quirks_with_calls_are_gone_in_its_whole_answer(name):
    calls, _, _ = serving(scenario(name), completion)
    assert calls == [(step[1], step[2]) for step in scenario(name).turns[0] if step[0] == "call"]


PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "ollama": "/api/chat",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
SCRIPTS = {api: next(scenario(name) for name in names() if api in scenario(name).endpoints) for api in PATHS}


def _message(api, body):
    """The words of an error in the form of an API; any other form raises."""
    if api == "ollama":
        return body["error"]
    if api == "anthropic":
        assert body["type"] == "error"
        assert set(body["error"]) == {"type", "message"}
    if api == "gemini":
        assert set(body["error"]) == {"code", "message", "status"}
    return body["error"]["message"]


@pytest.mark.parametrize("api", PATHS)
def test_another_apis_path_is_refused_in_the_form_of_the_api_that_was_asked(api):
    other = SCRIPTS["ollama" if api == "gemini" else "gemini"]

    async def ask(root):
        async with httpx2.AsyncClient() as client:
            return await client.post(root + PATHS[api], json={"stream": True})

    answer = serving(other, ask)
    assert answer.status_code == 404
    assert "this replay answers" in _message(api, answer.json())


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"[]", b"5", b"\xff", b"[" * 100_000],
    ids=["cut", "none", "list", "number", "bytes", "deep"],
)
def test_a_body_that_is_no_object_is_refused_in_the_form_of_the_api(api, body):
    async def ask(root):
        async with httpx2.AsyncClient() as client:
            return await client.post(root + PATHS[api], content=body)

    answer = serving(SCRIPTS[api], ask)
    assert answer.status_code == 400
    assert "cannot be parsed" in _message(api, answer.json())


def test_pages_answer_and_head_has_their_headers_without_a_body():
    async def ask(root):
        async with httpx2.AsyncClient() as client:
            pages = [await client.get(root + path) for path in ("/v1/models", "/api/tags", "/api/version")]
            heads = [await client.head(root + path) for path in ("/v1/models", "/api/version", "/nothing")]
            again = await client.get(root + "/api/version")  # on the same connection
        return pages, heads, again

    pages, heads, again = serving(scenario("ollama-plain-text"), ask)
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert pages[1].json()["models"][0]["name"] == pages[0].json()["data"][0]["id"] == "replay"
    assert [(head.status_code, head.content) for head in heads] == [(200, b""), (200, b""), (404, b"")]
    assert heads[1].headers["content-length"] == again.headers["content-length"]


def test_the_packages_list_the_models_of_a_replay():
    async def ask(root):
        async with openai.AsyncOpenAI(base_url=f"{root}/v1", api_key="none") as client:
            listed = [model.id async for model in client.models.list()]
        async with anthropic.AsyncAnthropic(base_url=root, api_key="none") as client:
            return listed + [model.id async for model in client.models.list()]

    assert serving(scenario("ollama-plain-text"), ask) == ["replay", "replay"]


def test_every_answer_is_reported_with_its_status():
    seen = []

    async def ask(root):
        async with httpx2.AsyncClient() as client:
            await client.post(root + "/api/chat", json={})
            await client.get(root + "/nothing")
            await client.post(root + "/api/chat", content=b"{")

    serving(scenario("ollama-plain-text"), ask, on_answer=lambda *answer: seen.append(answer))
    assert seen == [("POST", "/api/chat", 200), ("GET", "/nothing", 404), ("POST", "/api/chat", 400)]


def test_recordings_of_two_apis_are_refused():
    both = [*recorded("anthropic/two-calls.sse"), *recorded("gemini/array-call.json")]
    with pytest.raises(stream.errors.StreamValueError, match=r"'anthropic', 'gemini'.*must be of one API"):
        ReplayServer(both)


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
