"""Errors of a server: their messages, and which requests are sent again."""

import asyncio
import contextlib
import logging
import re
import socket

import anthropic
import openai
import pytest

import stream
from stream.events import Finish, StreamFailed, TextDelta, ToolCallEnd
from stream.replay.recording import Recording
from stream.services.connection import LONGEST_LEARNING_S
from tests.support.model_server import BOTH, QUESTION, chat, chat_raw, raw_server, says, tool
from tests.support.repairing import answers
from tests.support.virtual_loop import run_virtually


@pytest.mark.parametrize(
    ("error", "told", "text"),
    [
        (
            {"status": 502, "code": "BadGateway", "detail": "Request failed", "requestId": "r-1", "retryAfterMs": 5000},
            StreamFailed("Request failed", "BadGateway", 502, 5000.0, "r-1"),
            "[BadGateway] Request failed (status=502)",
        ),
        (
            {"status": 500},
            StreamFailed("Request failed", "UpstreamFailure", 500),
            "[UpstreamFailure] Request failed (status=500)",
        ),
        (
            {"detail": "out of memory"},
            StreamFailed("out of memory", "UpstreamFailure"),
            "[UpstreamFailure] out of memory",
        ),
        (
            {"code": "BadGateway", "detail": None, "status": "soon"},
            StreamFailed("Request failed", "BadGateway"),
            "[BadGateway] Request failed",
        ),
        ({}, StreamFailed("Request failed", "UpstreamFailure"), "[UpstreamFailure] Request failed"),
    ],
    ids=["all of it", "a status alone", "a detail alone", "a code alone", "an empty one"],
)
def test_what_an_error_in_the_done_line_does_not_say_has_the_documents_words(error, told, text):
    exchange = chat(says([["say", "Working on it."], ["fail", error]]), endpoint="ollama", options=ONCE)
    assert exchange.text == "Working on it."
    assert exchange.events[-1] == told
    assert str(told) == text


ONCE = {"retries": stream.services.Retries(attempts=1)}


@BOTH
@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"error": {}}', b'{"error": null}', b'{"error": {"status": 502}}', b"null"]
)
def test_an_error_answer_that_says_nothing_has_the_documents_words_too(endpoint, body):
    exchange = chat(Flaky([refusal(502, body)], None), endpoint=endpoint, options=ONCE)
    assert exchange.events == [StreamFailed("Request failed", "UpstreamFailure", 502)]


@BOTH
def test_an_error_answer_keeps_status_code_detail_and_retry_time(endpoint):
    exchange = chat("openai-rate-limit", endpoint=endpoint)
    assert exchange.events == [
        StreamFailed(
            "Rate limit reached", code="rate_limit_exceeded", status=429, retry_after_ms=30000.0, request_id="req_1"
        )
    ]
    assert len(exchange.requests) == 1, "a server that asks for 30 s is not asked again before that"


class Flaky:
    """Fails a number of times, then serves a scenario."""

    as_recorded, pages = False, {}

    def __init__(self, failures, then):
        self.failures, self.then = list(failures), then

    def answer(self, path, request):
        return self.failures.pop(0) if self.failures else self.then.answer(path, request)


def refusal(status, body=b'{"error": "busy"}', headers=None):
    return Recording(name="refusal", kind="ndjson", body=body, status=status, headers=headers or {})


@BOTH
@pytest.mark.parametrize("status", [408, 429, 500, 503, 520, 529])
def test_a_request_that_failed_before_its_first_event_is_sent_again(endpoint, status):
    exchange = chat(Flaky([refusal(status)] * 2, says([["say", "Here I am."]])), endpoint=endpoint)
    assert exchange.text == "Here I am."
    assert len(exchange.requests) == 3
    assert exchange.bodies[0] == exchange.bodies[2]


@BOTH
def test_each_retry_is_one_line_with_its_number_status_and_wait(caplog, endpoint):
    broken = Recording(name="broken", kind="sse", body=b"", complete=False)
    rude = refusal(503, b'{"error": {"message": "hunter2", "code": "hunter2"}}', headers={"retry-after-ms": "10"})
    with caplog.at_level(logging.INFO, logger="stream"):
        exchange = chat(Flaky([rude, broken], says([["say", "Here I am."]])), endpoint=endpoint)
    assert exchange.text == "Here I am."
    told = [record for record in caplog.records if record.name == "stream.services.retrying"]
    assert [record.levelno for record in told] == [logging.INFO, logging.INFO]
    first, second = (record.getMessage() for record in told)
    assert re.fullmatch(r"Attempt 2 of 3, after status 503 and a wait of \d+\.\d\d s", first)
    assert re.fullmatch(r"Attempt 3 of 3, after (connection|unfinished) and a wait of \d+\.\d\d s", second)


@BOTH
@pytest.mark.parametrize(("asked_ms", "n_requests"), [("10", 2), ("60000", 1)], ids=["short", "too long"])
def test_the_wait_that_a_server_asks_for_is_kept_where_it_is_short(asked_ms, n_requests, endpoint):
    busy = refusal(503, b'{"error": {"message": "busy"}}', headers={"retry-after-ms": asked_ms})
    exchange = chat(Flaky([busy], says([["say", "Here I am."]])), endpoint=endpoint)
    assert len(exchange.requests) == n_requests
    assert exchange.text == ("Here I am." if n_requests == 2 else "")


@BOTH
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_request_that_is_wrong_is_not_sent_again(endpoint, status):
    exchange = chat(Flaky([refusal(status)] * 2, says([["say", "Never."]])), endpoint=endpoint)
    assert exchange.failure.status == status
    assert len(exchange.requests) == 1


@BOTH
def test_the_last_failure_is_reported_when_all_attempts_fail(endpoint):
    exchange = chat(Flaky([refusal(503, b'{"error": {"message": "still busy"}}')] * 9, None), endpoint=endpoint)
    assert [event.message for event in exchange.events] == ["still busy"]
    assert len(exchange.requests) == 3


@BOTH
def test_after_the_first_event_nothing_is_sent_again(endpoint):
    exchange = chat("openai-cut", endpoint=endpoint)
    assert exchange.text == "Let me look for"
    assert isinstance(exchange.events[-1], StreamFailed)
    assert len(exchange.requests) == 1


@BOTH
def test_a_server_that_is_not_there_is_named_without_secrets(endpoint):
    async def go():
        url = "http://user:hidden@127.0.0.1:9/v1"
        async with stream.connect(url, "m", api=endpoint, retries=stream.services.Retries(attempts=1)) as connection:
            return [event async for event in connection.chat(QUESTION)]

    (event,) = asyncio.run(go())
    assert event.code == "connection"
    assert event.message.startswith("cannot reach http://127.0.0.1:9")
    assert "hidden" not in event.message


TEXT = b'data: {"choices": [{"delta": {"content": "Hello."}}]}\n\n'
RAW = {
    "a web page": (b"200 OK\r\ncontent-type: text/html; charset=utf-8", b"<html>", "answered with a web page"),
    "a redirect": (
        b"307 Temporary Redirect\r\nlocation: https://me:hidden@elsewhere/v1?key=hidden", b"",
        "redirects to https://elsewhere/v1; redirects are not followed",
    ),
    "a wrong path": (b"404 Not Found", b"404 page not found", "404 page not found (HTTP 404 from http://127.0.0.1:"),
    "no key": (
        b"401 Unauthorized", b'{"error": "who?"}',
        "(no key was sent to 127.0.0.1; `api_key` or --api-key-env gives one)",
    ),
    "a broken connection": (b"200 OK\r\ncontent-length: 999", TEXT, "lost the connection to http://127.0.0.1:"),
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("case", RAW)
def test_a_failure_says_what_happened_where_and_what_to_do(endpoint, case):
    head, body, says_so = RAW[case]

    async def answer(_head, _reader, writer):
        length = b"" if b"content-length" in head else b"\r\ncontent-length: %d" % len(body)
        writer.write(b"HTTP/1.1 " + head + length + b"\r\nconnection: close\r\n\r\n" + body)
        await writer.drain()

    *_, failed = chat_raw(answer, endpoint, path="/v1", **ONCE)
    assert says_so in failed.message
    assert "hidden" not in failed.message


@pytest.mark.parametrize(
    "url", ["http://h:99999/v1", "http://[::1", "http://h:x", "localhost:11434", "ftp://host", "", "http://"]
)
def test_an_address_that_cannot_be_is_refused_at_once(url):
    with pytest.raises(stream.errors.StreamValueError, match="base_url is"):
        stream.connect(url, "m")


@pytest.mark.parametrize("api", ["chat", "ollama"])
def test_an_error_page_without_an_end_is_read_in_part(api):
    async def go():
        closed = asyncio.Event()

        async def refuse(_head, _reader, writer):
            writer.write(b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                while True:
                    writer.write(b"400\r\n" + b"a" * 1024 + b"\r\n")
                    await writer.drain()
            except ConnectionError:
                closed.set()

        async with raw_server(refuse) as url, stream.connect(url, "m", api=api, api_key="k") as connection:
            (failed,) = [event async for event in connection.chat(QUESTION)]
            await closed.wait()
        return failed

    failed = asyncio.run(asyncio.wait_for(go(), 60.0))
    assert (failed.status, failed.message) == (400, "a" * 500)


@pytest.mark.parametrize("begin", [b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"', b'["', b""])
def test_a_message_that_is_cut_off_shows_no_argument(begin):
    events = stream.read_sync([begin + rb"{\"path\": \"hunter2"])
    (failed,) = [event for event in events if isinstance(event, StreamFailed)]
    assert failed.code == "unfinished"
    assert "not JSON" in failed.message
    assert "hunter2" not in str(failed)


MISCOUNTED = [b"hunter2\n\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ndata\r\nhunter2\r\n"]


@pytest.mark.parametrize("answer", MISCOUNTED, ids=["no head", "a chunk's length"])
def test_an_answer_that_is_not_http_is_not_quoted(answer):
    async def go():
        async with answers(answer, answer) as (url, _):
            async with stream.connect(url, "m", retries=stream.services.Retries(attempts=1)) as connection:
                (asked,) = [event async for event in connection.chat(QUESTION)]
            async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
                request = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
                (read,) = [event async for event in stream.read(request)]
        return asked, read

    for failed in asyncio.run(go()):
        assert isinstance(failed, StreamFailed)
        assert "hunter" not in str(failed)


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_a_key_that_a_client_cannot_send_is_not_quoted(package):
    async def go():
        async with answers() as (url, asked):
            if package == "openai":
                client = openai.AsyncOpenAI(base_url=url, api_key="hunter2\n", max_retries=0)
                request = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            else:
                client = anthropic.AsyncAnthropic(base_url=url, auth_token="hunter2\n", max_retries=0)
                request = client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True)
            async with client:
                return asked, [event async for event in stream.read(request)]

    asked, (failed,) = asyncio.run(go())
    assert not asked
    assert failed.message == "Connection error: Illegal header value"


QUOTING = {
    "h11": "Illegal header value b'Bearer hunter2\\n'",
    "h2": "Received header value surrounded by whitespace b'Bearer hunter2 '",
    "http.client": "Invalid header value b'Bearer hunter2\\n'",
    "requests": "Invalid leading whitespace, reserved character(s), or return character(s) "
    "in header value: 'Bearer hunter2\\n'",
    "a name": "Illegal header name b'Bearer hunter2'",
}


@pytest.mark.parametrize("client", QUOTING)
def test_no_client_quotes_a_header(client):
    async def failing():
        raise RuntimeError(QUOTING[client])
        yield

    async def go():
        return [event async for event in stream.read(failing())]

    (failed,) = asyncio.run(go())
    assert failed.message.split(" header ")[1][:5] in ("value", "name")
    assert "hunter2" not in failed.message


def test_a_servers_own_words_in_place_of_json_are_shown():
    *_, failed = stream.read_sync([b"upstream timed out\n"])
    assert failed.message.endswith("a line is not JSON: 'upstream timed out'")


ENDED = {
    "chat": b'data: {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\n',
    "ollama": b'{"message": {"content": "Hello."}, "done": true, "done_reason": "stop"}\n',
}


@BOTH
def test_an_answer_that_has_its_finish_reason_is_whole_though_the_connection_breaks(endpoint):
    async def answer(_head, _reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n" + ENDED[endpoint])
        await writer.drain()

    assert chat_raw(answer, endpoint, **ONCE) == [stream.TextDelta("Hello."), stream.Finish("stop")]


REFUSED = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
BEGUN = {
    "chat": ("text/event-stream", b'data: {"choices": [{"delta": {"content": "One "}}]}\n\n'),
    "ollama": ("application/x-ndjson", b'{"message": {"content": "One "}, "done": false}\n'),
}


class Calling:
    """A source that makes a call, and asks a connection for the answer to its result."""

    model = "m"

    def __init__(self, call, connection):
        self._call, self._connection = call, connection

    async def chat(self, messages, **fields):
        if messages[-1]["role"] != "tool":
            yield self._call
            yield Finish("tool_calls")
            return
        async for event in self._connection.chat(messages, **fields):
            yield event


@BOTH
@pytest.mark.parametrize(
    "when", ["before it", "in a retry's wait", "before the first byte", "in the answer", "in a tool"]
)
def test_a_connection_that_is_closed_ends_its_chat_with_a_failure(endpoint, when, monkeypatch):
    async def go():
        kind, text = BEGUN[endpoint]
        begun = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode() + text
        n_requests = 0

        async def answer(_head, reader, writer):
            nonlocal n_requests
            n_requests += 1
            if when == "before the first byte":
                await connection.close()
            writer.write(REFUSED if when == "in a retry's wait" else begun)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
                await reader.read()  # until the client closes

        async def closing(*_):
            await connection.close()

        async with raw_server(answer) as url, stream.connect(url, "m", api=endpoint) as connection:
            source = connection
            if when == "before it":
                await connection.close()
            elif when == "in a retry's wait":
                monkeypatch.setattr("stream.services.retrying.asyncio.sleep", closing)
            elif when == "in a tool":
                call = ToolCallEnd("f", "c0", 0, "{}", "ok")
                source = stream.ToolRunner(Calling(call, connection), [tool("f", closing)])
            events = []
            async for event in source.chat(QUESTION):
                events.append(event)
                if isinstance(event, TextDelta):
                    await connection.close()
        return events, n_requests, url

    events, n_requests, url = asyncio.run(asyncio.wait_for(go(), 20.0))
    failed = events[-1]
    assert isinstance(failed, StreamFailed)
    assert (failed.code, failed.status) == ("closed", None)
    assert failed.message.startswith(f"the connection to {url}")
    assert n_requests == (0 if when in ("before it", "in a tool") else 1)


def test_a_server_that_answers_no_question_about_its_model_delays_a_turn_by_seconds_only():
    async def go():
        with socket.create_server(("127.0.0.1", 0)) as listening:  # it accepts the connection and never answers
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            async with stream.connect(url, "m", api="chat") as connection:
                return await connection.learn() == connection.capabilities, asyncio.get_running_loop().time()

    is_of_the_table, learned_s = run_virtually(go)
    assert is_of_the_table
    assert learned_s <= LONGEST_LEARNING_S


def test_a_connection_that_is_closed_learns_nothing():
    async def go():
        connection = stream.connect("http://127.0.0.1:9", "qwen3:8b")
        await connection.close()
        return await connection.learn() == connection.capabilities

    assert asyncio.run(go())
