"""The `openai` package with a repairing client, over HTTP on loopback, and the same hooks in `httpx` itself."""

import asyncio
import gzip
import json
import logging
import zlib

import httpx
import httpx2
import openai
import pydantic
import pytest

from stream.errors import StreamValueError
from stream.services import repairing_client, repairing_client_sync
from stream.services.repairing_client import repairing_hooks
from tests.support.model_server import raw_server
from tests.support.repairing import (
    DIM,
    DONE,
    QUESTION,
    REPAIRED,
    STREAM,
    WHOLE,
    answered,
    answers,
    event,
    http_answer,
    summed,
)

STREAMED = http_answer(STREAM + DONE)
ANSWERED = http_answer(WHOLE, kind="application/json")


def asked(answer, ask, *, is_sync=False, options=None):
    """What a client with these options gets of a server's answer, and the head of its request."""

    async def go():
        async with answers(answer) as (url, requests):
            settings = {"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
            if is_sync:

                def in_thread():
                    with openai.OpenAI(http_client=repairing_client_sync(**options or {}), **settings) as client:
                        return ask(client.chat.completions)

                return await asyncio.to_thread(in_thread), requests
            async with openai.AsyncOpenAI(http_client=repairing_client(**options or {}), **settings) as client:
                return await ask(client.chat.completions), requests

    found, [(head, _)] = asyncio.run(asyncio.wait_for(go(), 30.0))
    return found, head.lower()


async def streamed(completions):
    return await answered(await completions.create(**QUESTION, stream=True))


def streamed_sync(completions):
    return summed(list(completions.create(**QUESTION, stream=True)))


@pytest.mark.parametrize(("ask", "is_sync"), [(streamed, False), (streamed_sync, True)], ids=["async", "sync"])
@pytest.mark.parametrize(
    ("encode", "encoding"),
    [(bytes, "identity"), (gzip.compress, "gzip"), (zlib.compress, "deflate")],
    ids=["plain", "gzip", "deflate"],
)
def test_a_stream_comes_repaired_also_if_the_server_encodes_it(ask, is_sync, encode, encoding):
    found, head = asked(http_answer(encode(STREAM + DONE), content_encoding=encoding), ask, is_sync=is_sync)
    assert found == REPAIRED
    assert "accept-encoding: identity" in head


def test_an_encoding_that_not_every_client_decodes_passes_untouched_with_a_warning(caplog):
    async def ask(completions):
        raw = await completions.with_raw_response.create(**QUESTION)
        return raw.headers["content-encoding"], raw.headers["content-length"]

    with caplog.at_level(logging.WARNING):
        found, _ = asked(http_answer(b"{}", kind="application/json", content_encoding="own"), ask)
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
    choice, _ = asked(ANSWERED, ask, is_sync=is_sync)
    calls = [[call.function.name, call.function.arguments] for call in choice.message.tool_calls]
    assert (choice.message.content, "", calls, choice.finish_reason, False) == REPAIRED


OPEN = "Dim it, then.</think>Dark. " + DIM
OPEN_STREAM = event(OPEN[:9]) + event(OPEN[9:]) + event(None, "stop") + DONE
OPEN_WHOLE = WHOLE.replace(json.dumps("Dark. " + DIM).encode(), json.dumps(OPEN).encode())


@pytest.mark.parametrize(("ask", "is_sync"), [(streamed, False), (streamed_sync, True)], ids=["async", "sync"])
def test_thoughts_whose_opening_tag_is_in_the_prompt_leave_the_text(ask, is_sync):
    found, _ = asked(http_answer(OPEN_STREAM), ask, is_sync=is_sync, options={"start": "reasoning"})
    assert found == (REPAIRED[0], "Dim it, then.", *REPAIRED[2:])


def test_such_thoughts_leave_a_whole_answer_too():
    assert OPEN_WHOLE != WHOLE
    answer = http_answer(OPEN_WHOLE, kind="application/json")
    choice, _ = asked(answer, whole, options={"start": "reasoning"})
    assert (choice.message.content, choice.message.reasoning_content) == ("Dark.", "Dim it, then.")


async def parsed(completions):
    class Dimmed(pydantic.BaseModel):
        percent: int

    message = (await completions.parse(**QUESTION | {"tools": []}, response_format=Dimmed)).choices[0].message
    return message.parsed.percent, getattr(message, "reasoning_content", None)


@pytest.mark.parametrize(("start", "opener"), [("text", "<think>"), ("reasoning", "")])
def test_thoughts_before_data_that_the_request_asks_for_leave_it(start, opener):
    text = opener + 'Dim it {"percent": 1}.</think>{"percent": 5}'
    body = WHOLE.replace(json.dumps("Dark. " + DIM).encode(), json.dumps(text).encode())
    found, _ = asked(http_answer(body, kind="application/json"), parsed, options={"start": start})
    assert found == (5, 'Dim it {"percent": 1}.')


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
def test_calls_of_custom_tools_come_as_they_are(is_streamed):
    own = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "run", "input": "2 + 2"}}
    said = {"role": "assistant", "content": None, "tool_calls": [own]}
    choice = {"index": 0, "delta" if is_streamed else "message": said, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()
    answer = http_answer(b"data: %b\n\n" % body + DONE) if is_streamed else http_answer(body, kind="application/json")

    async def ask(completions):
        found = await completions.create(**QUESTION, stream=is_streamed)
        if not is_streamed:
            return found.choices[0].message.tool_calls
        return [call async for one in found for choice in one.choices for call in choice.delta.tool_calls or ()]

    ((call,), _) = asked(answer, ask)
    found = call.model_dump()
    assert {name: found[name] for name in ("id", "type", "custom")} == {n: own[n] for n in ("id", "type", "custom")}


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [(404, "application/json", b'{"error": {"message": "no <tool_call> here"}}'), (500, "text/html", b"<h1>No</h1>")],
)
def test_errors_pass_as_they_are(status, kind, body):
    async def ask(completions):
        with pytest.raises(openai.APIStatusError) as caught:
            await completions.create(**QUESTION, stream=True)
        return caught.value

    error, _ = asked(http_answer(body, status, kind), ask)
    assert (error.status_code, error.response.content) == (status, body)


def test_other_endpoints_pass_as_they_are():
    async def ask(completions):
        return (await completions._client.completions.with_raw_response.create(model="m", prompt="?")).content

    found, head = asked(ANSWERED, ask)
    assert found == WHOLE
    assert "accept-encoding: identity" not in head


def test_the_package_s_options_and_the_user_s_hooks_stay():
    seen = []

    async def before(request):
        seen.append(request.url.path)

    async def after(response):
        seen.append(await response.aread())

    async def ask(completions):
        answer = await completions.create(**QUESTION)
        return answer.choices[0].message.content

    found, _ = asked(ANSWERED, ask, options={"event_hooks": {"request": [before], "response": [after]}})
    assert found == "Dark."
    assert seen[0] == "/v1/chat/completions"
    assert b"<tool_call>" not in seen[1]
    with repairing_client_sync(timeout=7.0) as client, openai.DefaultHttpxClient() as default:
        assert client.timeout.read == 7.0
        assert client.follow_redirects == default.follow_redirects
        assert isinstance(client, type(default))


def test_requests_go_through_the_user_s_proxy():
    async def go():
        async with answers(STREAMED) as (url, requests):
            own = {"base_url": "http://nowhere.invalid/v1", "http_client": repairing_client(proxy=url)}
            async with openai.AsyncOpenAI(api_key="none", **own) as client:
                return await streamed(client.chat.completions), requests[0][0]

    found, head = asyncio.run(asyncio.wait_for(go(), 30.0))
    assert found == REPAIRED
    assert head.startswith("POST http://nowhere.invalid/v1/chat/completions")


def test_a_client_that_leaves_early_ends_the_request():
    async def go():
        gone = asyncio.Event()

        async def answer(head, reader, writer):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event("Dark."))
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
    body = event("Let me see <b") + event(DIM[:-20])
    found, _ = asked(http_answer(body, length=len(body) + 100), streamed)
    assert found == ("Let me see <b", "", [], None, True)


@pytest.mark.parametrize("package", [httpx, httpx2])
def test_the_hooks_fit_both_packages(package):
    async def go():
        async with answers(STREAMED) as (url, _):
            async with package.AsyncClient(event_hooks=repairing_hooks(is_async=True)) as client:
                answer = await client.post(f"{url}/v1/chat/completions", json=QUESTION)
            return answer.text

    text = asyncio.run(asyncio.wait_for(go(), 30.0))
    assert "<tool_call>" not in text
    assert '"finish_reason":"tool_calls"' in text


def test_a_mistake_raises_when_it_is_made():
    with pytest.raises(StreamValueError, match="'hide' or 'run'"):
        repairing_client(told="speak")
