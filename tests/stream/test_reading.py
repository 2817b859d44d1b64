"""The shell around a client's stream: its exceptions, its end, and leaving early."""

import asyncio

import httpx
import openai
import pytest

from stream import Finish, OllamaReader, StreamFailed, TextDelta, read, read_sync

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
    response = httpx.Response(status, headers=headers, request=httpx.Request("POST", "http://127.0.0.1"))
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


def test_any_other_exception_is_named_by_its_class():
    *_, failed = collect(Source(TEXT, ConnectionResetError("peer went away")))
    assert (failed.message, failed.code) == ("peer went away", "ConnectionResetError")


def test_request_that_fails_before_its_stream_is_a_failure_too():
    async def create():
        raise TimeoutError

    assert collect(create()) == [StreamFailed("TimeoutError", "TimeoutError")]


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

    assert list(read_sync(chunks()))[-1] == StreamFailed("broken pipe", "OSError")
