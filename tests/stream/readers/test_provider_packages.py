"""The recordings through the providers' own clients, over HTTP and WebSocket on loopback: what their bytes give."""

import asyncio
import json

import anthropic
import openai
import pytest
from google import genai

import stream
from stream.replay.scenarios import scenario
from stream.replay.server import ReplayServer
from tests.stream.providers import EXPECTED, data_of, expected, messages_of, outcome
from tests.support.loopback import http_server, socket_server, tls_contexts

# The google package warns about its own use of aiohttp.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def events_of(reading):
    return asyncio.run(asyncio.wait_for(reading, 60.0))


async def responses(body):
    async with http_server(body) as url, openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        source = client.responses.create(model="m", input="Hello.", stream=True)
        return [event async for event in stream.read(source)]


async def messages(body):
    async with http_server(body) as url, anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        question = [{"role": "user", "content": "Hello."}]
        source = client.messages.create(model="m", max_tokens=9, messages=question, stream=True)
        return [event async for event in stream.read(source)]


async def contents(body, **answer):
    async with http_server(body, **answer) as url:
        client = genai.Client(api_key="none", http_options={"base_url": url})
        source = client.aio.models.generate_content_stream(model="m", contents="Hello.")
        events = [event async for event in stream.read(source)]
        await client.aio.aclose()
        return events


async def session(messages):
    async with socket_server(messages) as url:
        client = openai.AsyncOpenAI(websocket_base_url=url, base_url=url, api_key="none")
        async with client, client.realtime.connect(model="m") as connection:
            return [event async for event in stream.read(connection)]


async def live(messages):
    server_tls, client_tls = tls_contexts()  # the client insists on TLS
    async with socket_server(messages, after_setup=True, tls=server_tls) as url:
        options = {"base_url": url, "async_client_args": {"ssl": client_tls}}
        client = genai.Client(api_key="none", http_options=options)
        async with client.aio.live.connect(model="m") as connection:
            events = [event async for event in stream.read(connection.receive())]
        await client.aio.aclose()
        return events


def server_sent(name):
    """A recording as the server sends it to its own client; Gemini's client asks for events."""
    if name.startswith(("realtime", "live")):
        return data_of(name).decode().splitlines()
    if name.endswith(".json"):
        return "".join(f"data: {json.dumps(message)}\r\n\r\n" for message in messages_of(name)).encode()
    return data_of(name)


ASK = {"responses": responses, "realtime": session, "anthropic": messages, "gemini": contents, "live": live}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.partition("/")[0] in ASK])
def test_a_recording_through_the_package_gives_what_its_bytes_give(name):
    ask = ASK[name.partition("/")[0]]
    assert outcome(events_of(ask(server_sent(name)))) == expected(name)


def test_tokens_are_counted_as_the_last_object_of_the_google_package_says():
    from google.genai.types import GenerateContentResponse

    def answer(text, count, **finish):
        tokens = {"promptTokenCount": 5, "candidatesTokenCount": count, "totalTokenCount": 5 + count}
        return {"candidates": [{"content": {"parts": [{"text": text}]}, **finish}], "usageMetadata": tokens}

    answers = [answer("Good ", 1), answer("night.", 2), answer(".", 3, finishReason="STOP")]
    events = list(stream.read_sync(map(GenerateContentResponse.model_validate, answers)))
    assert events == list(stream.read_sync(answers))
    assert stream.Usage(5, 3, 8) in events


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.startswith("anthropic")])
def test_the_events_that_anthropics_helper_mixes_in_say_nothing_twice(name):
    async def helped():
        async with http_server(data_of(name)) as url, anthropic.AsyncAnthropic(base_url=url, api_key="k") as client:
            question = [{"role": "user", "content": "Hello."}]
            async with client.messages.stream(model="m", max_tokens=9, messages=question) as source:
                return [event async for event in stream.read(source)]

    assert outcome(events_of(helped())) == expected(name)


@pytest.mark.parametrize("name", ["ollama-plain-text", "vllm-fragments", "fork-raw-json"])
def test_the_events_of_openais_helper_for_chats_give_what_its_chunks_give(name):
    async def helped(*, helps):
        question = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
        async with (
            ReplayServer(scenario(name), tokens_per_s=None) as server,
            openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client,
        ):
            if not helps:
                return [event async for event in stream.read(client.chat.completions.create(**question, stream=True))]
            async with client.chat.completions.stream(**question) as source:
                return [event async for event in stream.read(source)]

    events = events_of(helped(helps=True))
    assert events == events_of(helped(helps=False))
    assert isinstance(events[-1], stream.Finish | stream.Usage)


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
QUOTA = {"type": "error", "error": {"type": "quota", "code": None, "message": "Pay", "param": None}}
FLAT = {"type": "error", "code": "server_error", "message": "Broken", "param": None, "sequence_number": 9}
NO_GO = {"error": {"code": 503, "message": "No go", "status": "UNAVAILABLE"}}
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}}


def sse(message):
    event = f"event: {message['type']}\n" if "type" in message else ""
    return f"{event}data: {json.dumps(message)}\n\n".encode()


@pytest.mark.parametrize(
    ("ask", "name", "message", "code"),
    [
        (messages, "anthropic/two-calls.sse", OVERLOADED, "overloaded_error"),
        (responses, "responses/two-rounds-call.sse", QUOTA, "quota"),
        (responses, "responses/two-rounds-call.sse", FLAT, "server_error"),
        (contents, "gemini/call-with-signature.sse", NO_GO, "503"),
        (contents, "gemini/call-with-signature.sse", BLOCKED, "SAFETY"),
    ],
    ids=["anthropic", "responses, nested", "responses, flat", "gemini", "gemini, blocked"],
)
def test_an_error_in_mid_stream_is_the_same_from_bytes_and_from_a_client(ask, name, message, code):
    body = data_of(name).replace(b"\r\n", b"\n")
    body = body[: body.index(b"\n\n") + 2] + sse(message)
    *_, failed = stream.read_sync([body])
    *_, raised = events_of(ask(body))
    assert raised == failed
    assert failed.code == code


def test_a_refused_request_is_a_failure_with_the_servers_words():
    async def refused():
        async with http_server(json.dumps(NO_GO).encode(), 503, "application/json") as url:
            client = genai.Client(api_key="none", http_options={"base_url": url, "retry_options": {"attempts": 1}})
            source = client.aio.models.generate_content_stream(model="m", contents="Hello.")
            events = [event async for event in stream.read(source)]
            await client.aio.aclose()
            return events

    (failed,) = events_of(refused())
    assert (failed.message, failed.code, failed.status) == ("No go", "503", 503)


def test_a_session_that_breaks_in_mid_turn_is_unfinished_and_its_call_incomplete():
    lines = data_of("realtime/openai-tool-round.jsonl").decode().splitlines()
    cut = next(number for number, line in enumerate(lines) if "function_call_arguments.delta" in line) + 1
    found = outcome(events_of(session(lines[:cut])))
    assert found["unfinished"]
    assert found["incomplete"] == ["get_weather"]
