"""The shell around a client's stream: its exceptions, its end, and leaving early."""

import asyncio
import json

import httpx2
import openai
import pytest

import stream
from stream import (
    Finish,
    OllamaReader,
    OpenAIReader,
    StreamFailed,
    TextDelta,
    TextReader,
    ToolCallEnd,
    ToolCallStart,
    read,
    read_sync,
)
from stream.errors import StreamTypeError
from tests.support.model_server import raw_server

TEXT = {"choices": [{"delta": {"content": "Hello <to"}, "finish_reason": None}]}
END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


class Source:
    """An asynchronous stream that may fail, and knows whether it was closed."""

    def __init__(self, *items):
        self.items, self.closed = iter(items), 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        item = next(self.items, None)
        if item is None:
            raise StopAsyncIteration
        if isinstance(item, BaseException):
            raise item
        return item

    async def close(self):
        self.closed += 1


def collect(source, **options):
    async def run():
        return [event async for event in read(source, **options)]

    return asyncio.run(run())


def api_error(status, headers):
    response = httpx2.Response(status, headers=headers, request=httpx2.Request("POST", "http://127.0.0.1"))
    return openai.RateLimitError("too many", response=response, body={"code": "rate_limit", "message": "too many"})


def test_stream_is_closed_at_its_end_and_held_text_comes_out():
    source = Source(TEXT, END)
    assert collect(source) == [TextDelta("Hello "), TextDelta("<to"), Finish("stop")]
    assert source.closed == 1


def test_exception_of_the_client_comes_as_a_failure_with_what_it_knows():
    headers = {"retry-after": "2", "x-request-id": "r-1"}
    source = Source(TEXT, api_error(429, headers))
    *events, failed = collect(source)
    assert events == [TextDelta("Hello "), TextDelta("<to")]
    assert failed == StreamFailed("too many", "rate_limit", 429, 2000.0, "r-1")
    assert source.closed == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionResetError("gone"), "connection"),
        (httpx2.RemoteProtocolError("gone"), "connection"),
        (httpx2.ReadError("gone"), "connection"),
        (httpx2.ReadTimeout("gone"), "timeout"),
        (TimeoutError("gone"), "timeout"),
        (openai.APITimeoutError(httpx2.Request("POST", "http://127.0.0.1")), "timeout"),
        (openai.APIConnectionError(request=httpx2.Request("POST", "http://127.0.0.1")), "connection"),
        (RuntimeError("gone"), "RuntimeError"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_broken_connection_is_told_from_a_silent_one_and_from_any_other_exception(error, code):
    *_, failed = collect(Source(TEXT, error))
    assert failed.code == code
    assert failed.message


def test_cause_of_an_exception_is_part_of_its_message():
    error = openai.APIConnectionError(request=httpx2.Request("POST", "http://127.0.0.1"))
    error.__cause__ = httpx2.ConnectError("name not known")
    *_, failed = collect(Source(error))
    assert failed.message == "Connection error: name not known"


def test_request_that_fails_before_its_stream_is_a_failure_too():
    async def create():
        raise TimeoutError

    assert collect(create()) == [StreamFailed("TimeoutError", "timeout")]


def test_error_in_the_stream_ends_it():
    source = Source(TEXT, {"error": {"message": "gone"}}, TEXT)
    assert collect(source)[-1] == StreamFailed("gone")
    assert source.closed == 1


def test_leaving_early_closes_the_stream():
    source = Source(TEXT, END)

    async def run():
        events = read(source)
        await anext(events)
        await events.aclose()

    asyncio.run(run())
    assert source.closed == 1


def test_cancelling_passes_and_closes_the_stream():
    source = Source(TEXT, asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        collect(source)
    assert source.closed == 1


def test_other_readers_read_their_own_streams():
    lines = [b'{"message": {"content": "Hi."}, "done": tr', b'ue, "done_reason": "stop"}\n']
    assert collect(Source(*lines), reader=OllamaReader()) == [TextDelta("Hi."), Finish("stop")]


def test_synchronous_twin_reads_the_same_and_closes():
    class Sync(list):
        closed = False

        def close(self):
            self.closed = True

    source = Sync([TEXT, END])
    assert list(read_sync(source)) == collect(Source(TEXT, END))
    assert source.closed


def test_synchronous_twin_reports_the_clients_exception():
    def chunks():
        yield TEXT
        raise OSError("broken pipe")

    assert list(read_sync(chunks()))[-1] == StreamFailed("broken pipe", "connection")


# --- the real client over loopback ----------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(value):
    line = b"data: " + json.dumps(value).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


def over_loopback(body, *, hang=False, **options):
    """The events of a stream whose server sends `body` and then closes the connection, or says nothing more."""

    async def answer(_head, reader, writer):
        writer.write(body)
        await writer.drain()
        if hang:
            await reader.read()  # until the client has had enough

    async def run():
        own = {"api_key": "none", "max_retries": 0, **options}
        async with raw_server(answer) as url, openai.AsyncOpenAI(base_url=f"{url}/v1", **own) as client:
            request = client.chat.completions.create(model="m", messages=[], stream=True)
            return [event async for event in read(request)]

    return asyncio.run(run())


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


HALF = event(chunk({"content": "Wait. "})) + event(
    chunk({"tool_calls": [{"index": 0, "id": "i", "function": {"name": "lock", "arguments": '{"door'}}]})
)
CUT_SHORT = [TextDelta("Wait. "), ToolCallStart("lock", "i", 0), ToolCallEnd("lock", "i", 0, '{"door', "incomplete")]


BROKEN = {"error": {"message": "out of memory", "code": "overloaded", "status": 503}}


@pytest.mark.parametrize(
    ("rest", "options", "failed"),
    [
        (b"", {}, ("connection", None)),
        (b"", {"hang": True, "timeout": httpx2.Timeout(2.0, read=0.05)}, ("timeout", None)),
        (event(BROKEN) + b"0\r\n\r\n", {}, ("overloaded", 503)),
        (b"0\r\n\r\n", {}, ("unfinished", None)),
    ],
    ids=["goes away", "falls silent", "reports an error", "ends without a finish reason"],
)
def test_client_whose_server_breaks_off_says_how_and_the_call_is_incomplete(rest, options, failed):
    *events, last = over_loopback(HEAD + HALF + rest, **options)
    assert events == CUT_SHORT
    assert (last.code, last.status) == failed


def test_client_whose_server_refuses_tells_the_status():
    body = b'{"error": {"message": "no such model", "code": "model_not_found"}}'
    head = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    (failed,) = over_loopback(head + body)
    assert (failed.status, failed.code) == (404, "model_not_found")
    assert "no such model" in failed.message


async def _whole_answer():
    return object()  # what a client gives without stream=True


def test_an_answer_that_is_not_streamed_is_the_callers_mistake():
    with pytest.raises(StreamTypeError, match="source is of type object; it must be an asynchronous iterable"):
        collect(_whole_answer())


@pytest.mark.parametrize("read", [stream.read, stream.read_sync])
@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (5, {}, "source is of type int; it must be an "),
        (None, {}, "source is None"),
        ("other", {}, "; stream.read"),  # of the other kind: the message names the function for it
        ("own", {"toolz": []}, "has no option 'toolz'; its options are tools, reader, max_arg"),
        ("own", {"tools": "lock"}, "one text, not a collection of tools"),
        ("own", {"reader": OpenAIReader}, "reader is .*; it must be an OpenAIReader"),
        ("own", {"reader": TextReader()}, "reader is .*; it must be an OpenAIReader"),
        ("own", {"reader": "ollama"}, "reader is .*; it must be an OpenAIReader"),
        ("own", {"reader": OllamaReader(), "tools": ["f"]}, r"pass it there: OllamaReader\(tools=…\)"),
        ("own", {"reader": OllamaReader(), "reasoning": False}, r"pass it there: OllamaReader\(reasoning=…\)"),
    ],
)
def test_wrong_arguments_are_refused_when_read_is_called_not_at_the_first_event(read, source, options, message):
    if source in ("own", "other"):
        source = Source(TEXT) if (source == "own") == (read is stream.read) else [TEXT]
    with pytest.raises(StreamTypeError, match=message):
        read(source, **options)
