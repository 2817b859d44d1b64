"""The `openai` package with a repairing client, over HTTP on loopback, and the same hooks in `httpx` itself."""

import asyncio
import gzip
import json
import logging
import zlib
from contextlib import asynccontextmanager

import httpx
import httpx2
import openai
import pytest

from stream.errors import StreamValueError
from stream.services import repairing_client, repairing_client_sync
from stream.services.repairing_client import repairing_hooks
from tests.support.model_server import raw_server

DIM = '<tool_call>{"name": "dim", "arguments": {"percent": 40}}</tool_call>'
QUESTION = {
    "model": "m",
    "messages": [{"role": "user", "content": "?"}],
    "tools": [{"type": "function", "function": {"name": "dim"}}],
}


def chunk(content=None, reason=None):
    choice = {"index": 0, "delta": {"content": content} if content else {}, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def events(*chunks):
    return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in chunks) + b"data: [DONE]\n\n"


STREAM = events(chunk("Dark. " + DIM[:20]), chunk(DIM[20:]), chunk(reason="stop"))
MESSAGE = {"role": "assistant", "content": "Dark. " + DIM}
WHOLE = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
WHOLE |= {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]}


@asynccontextmanager
async def server(body, *, status=200, kind="text/event-stream", missing=0, **headers):
    """An address, and the heads of the requests that it got."""
    heads = []

    async def answer(head, reader, writer):
        heads.append(head.decode().lower())
        await reader.readexactly(int(heads[-1].split("content-length:")[1].split()[0]))
        lines = {"content-type": kind, "content-length": len(body) + missing, "connection": "close", **headers}
        text = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{text}\r\n".encode() + body)
        await writer.drain()

    async with raw_server(answer) as url:
        yield url, heads


def asked(body, ask, *, is_sync=False, options=None, **served):
    """What a client with these options gets."""

    async def go():
        async with server(body, **served) as (url, heads):
            settings = {"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
            if is_sync:

                def in_thread():
                    with openai.OpenAI(http_client=repairing_client_sync(**options or {}), **settings) as client:
                        return ask(client.chat.completions)

                return await asyncio.to_thread(in_thread), heads
            async with openai.AsyncOpenAI(http_client=repairing_client(**options or {}), **settings) as client:
                return await ask(client.chat.completions), heads

    return asyncio.run(asyncio.wait_for(go(), 30.0))


async def streamed(completions):
    return summed([one async for one in await completions.create(**QUESTION, stream=True)])


def streamed_sync(completions):
    return summed(list(completions.create(**QUESTION, stream=True)))


def summed(chunks):
    choices = [choice for one in chunks for choice in one.choices]
    calls = [call.function for choice in choices for call in choice.delta.tool_calls or ()]
    text = "".join(choice.delta.content or "" for choice in choices).strip()
    return text, [(call.name, call.arguments) for call in calls], choices[-1].finish_reason


REPAIRED = ("Dark.", [("dim", '{"percent": 40}')], "tool_calls")


@pytest.mark.parametrize(("ask", "is_sync"), [(streamed, False), (streamed_sync, True)], ids=["async", "sync"])
@pytest.mark.parametrize(
    ("encode", "encoding"),
    [(bytes, "identity"), (gzip.compress, "gzip"), (zlib.compress, "deflate")],
    ids=["plain", "gzip", "deflate"],
)
def test_a_stream_comes_repaired_also_if_the_server_encodes_it(ask, is_sync, encode, encoding):
    found, heads = asked(encode(STREAM), ask, is_sync=is_sync, content_encoding=encoding)
    assert found == REPAIRED
    assert "accept-encoding: identity" in heads[0]


def test_an_encoding_that_not_every_client_decodes_passes_untouched_with_a_warning(caplog):
    async def ask(completions):
        raw = await completions.with_raw_response.create(**QUESTION)
        return raw.headers["content-encoding"], raw.headers["content-length"]

    with caplog.at_level(logging.WARNING):
        found, _ = asked(b"{}", ask, content_encoding="own", kind="application/json")
    assert found == ("own", "2")
    assert "encoded as own passes without repair" in caplog.text


async def whole(completions):
    raw = await completions.with_raw_response.create(**QUESTION)
    assert "content-length" not in raw.headers or int(raw.headers["content-length"]) == len(raw.content)
    assert raw.elapsed.total_seconds() > 0
    return raw.parse().choices[0]


def whole_sync(completions):
    return completions.with_raw_response.create(**QUESTION).parse().choices[0]


@pytest.mark.parametrize(("ask", "is_sync"), [(whole, False), (whole_sync, True)], ids=["async", "sync"])
def test_a_whole_answer_comes_repaired_also_as_a_raw_response(ask, is_sync):
    choice, _ = asked(json.dumps(WHOLE).encode(), ask, is_sync=is_sync, kind="application/json")
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert (choice.message.content, calls, choice.finish_reason) == REPAIRED


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [(404, "application/json", b'{"error": {"message": "no <tool_call> here"}}'), (500, "text/html", b"<h1>No</h1>")],
)
def test_errors_pass_as_they_are(status, kind, body):
    async def ask(completions):
        with pytest.raises(openai.APIStatusError) as caught:
            await completions.create(**QUESTION, stream=True)
        return caught.value

    error, _ = asked(body, ask, status=status, kind=kind)
    assert (error.status_code, error.response.content) == (status, body)


def test_other_endpoints_pass_as_they_are():
    async def ask(completions):
        return (await completions._client.completions.with_raw_response.create(model="m", prompt="?")).content

    body = json.dumps(WHOLE).encode()
    found, heads = asked(body, ask, kind="application/json")
    assert found == body
    assert "accept-encoding: identity" not in heads[0]


def test_the_package_s_options_and_the_user_s_hooks_stay():
    seen = []

    async def before(request):
        seen.append(request.url.path)

    async def after(response):
        seen.append(await response.aread())

    async def ask(completions):
        answer = await completions.create(**QUESTION)
        return answer.choices[0].message.content

    hooks = {"request": [before], "response": [after]}
    body = json.dumps(WHOLE).encode()
    found, _ = asked(body, ask, options={"event_hooks": hooks}, kind="application/json")
    assert found == "Dark."
    assert seen[0] == "/v1/chat/completions"
    assert b"<tool_call>" not in seen[1]
    with repairing_client_sync(timeout=7.0) as client, openai.DefaultHttpxClient() as default:
        assert client.timeout.read == 7.0
        assert client.follow_redirects == default.follow_redirects
        assert isinstance(client, type(default))


def test_requests_go_through_the_user_s_proxy():
    async def go():
        async with server(STREAM) as (url, heads):
            client = openai.AsyncOpenAI(
                base_url="http://nowhere.invalid/v1", api_key="none", http_client=repairing_client(proxy=url)
            )
            async with client:
                return await streamed(client.chat.completions), heads

    found, heads = asyncio.run(asyncio.wait_for(go(), 30.0))
    assert found == REPAIRED
    assert heads[0].startswith("post http://nowhere.invalid/v1/chat/completions")


def test_a_client_that_leaves_early_ends_the_request():
    async def go():
        gone = asyncio.Event()

        async def answer(head, reader, writer):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + events(chunk("Dark."))[:-14])
            await reader.read()  # until the client closes
            gone.set()

        async with raw_server(answer) as url:
            client = openai.AsyncOpenAI(base_url=url, api_key="none", http_client=repairing_client())
            async with client, await client.chat.completions.create(**QUESTION, stream=True) as chunks:
                async for one in chunks:
                    assert one.choices[0].delta.content == "Dark."
                    break
                await chunks.close()
                await gone.wait()

    asyncio.run(asyncio.wait_for(go(), 30.0))


def test_a_stream_that_breaks_off_gives_its_text_and_raises():
    async def ask(completions):
        found = []

        async def read():
            async for one in await completions.create(**QUESTION, stream=True):
                found.append(one)  # noqa: PERF401  (what came before the failure counts)

        with pytest.raises((openai.APIError, httpx2.HTTPError)):
            await read()
        return "".join(one.choices[0].delta.content or "" for one in found)

    body = events(chunk("Let me see <b"), chunk(DIM[:-20]))[:-14]
    found, _ = asked(body, ask, missing=100)
    assert found == "Let me see <b"


@pytest.mark.parametrize("package", [httpx, httpx2])
def test_the_hooks_fit_both_packages(package):
    async def go():
        async with server(STREAM) as (url, _):
            async with package.AsyncClient(event_hooks=repairing_hooks(is_async=True)) as client:
                answer = await client.post(f"{url}/v1/chat/completions", json=QUESTION)
            return answer.text

    text = asyncio.run(asyncio.wait_for(go(), 30.0))
    assert "<tool_call>" not in text
    assert '"finish_reason":"tool_calls"' in text


def test_a_mistake_raises_when_it_is_made():
    with pytest.raises(StreamValueError, match="'hide' or 'run'"):
        repairing_client(told="speak")
