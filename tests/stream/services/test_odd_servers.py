"""Nothing that a server sends raises: JSON of any shape, depth and size, over HTTP, on both endpoints."""

import asyncio
import contextlib
import json
import tomllib
from pathlib import Path

import openai
import pytest

import stream
from stream.events import Finish, StreamFailed, TextDelta, ToolResult
from stream.readers.formats.failures import failed_by
from stream.replay.recording import Recording
from stream.replay.server import ReplayServer
from tests.support.model_server import QUESTION, chat_raw, raw_server, tool

TOOLS = [tool("f", lambda **_: "ran")]
DEEP = {size: "[" * size + "]" * size for size in (500, 900, 5000)}
VALUES = {
    "null": "null", "true": "true", "number": "5", "text": '"x"', "empty": '""', "list": "[1]", "no list": "[]",
    "object": '{"a": null}', "huge": "1" + "0" * 4000, "longer": "1" + "0" * 5000, "nan": "NaN", "minus": "-Infinity",
    "1e999": "1e999", "half a character": '"\\ud83d"', "mixed": '[{"a": [[]]}, 5, null, "x"]',
    **{f"{size} lists": deep for size, deep in DEEP.items()},
    **{f"{size} objects": '{"a":' * size + "1" + "}" * size for size in DEEP},
}  # fmt: skip
"""Each written as JSON, some of it past what Python reads."""

TEMPLATES = tomllib.loads((Path(__file__).parents[1] / "data" / "odd_servers.toml").read_text(encoding="utf-8"))


def streamed(endpoint, *pieces):
    """Answer with these pieces, between a text before and after them and the end of an answer."""
    if endpoint == "ollama":
        texts = [json.dumps({"message": {"content": text}}) for text in ("Before. ", "After. ")]
        lines = [texts[0], *pieces, texts[1], '{"done": true, "done_reason": "stop"}', ""]
        return Recording(name="own", kind="ndjson", body="\n".join(lines).encode())
    texts = [json.dumps({"choices": [{"delta": {"content": text}}]}) for text in ("Before. ", "After. ")]
    end = '{"choices": [{"delta": {}, "finish_reason": "stop"}]}'
    body = "".join(f"data: {data}\n\n" for data in (texts[0], *pieces, texts[1], end, "[DONE]"))
    return Recording(name="own", kind="sse", body=body.encode())


class InTurn:
    """A server that plays one recording after the other, and ends a turn that comes back with results."""

    as_recorded = False

    def __init__(self, recordings):
        self.pages, self._recordings = {}, iter(recordings)

    def answer(self, path, request):
        if request["messages"][-1]["role"] == "tool":
            return streamed("ollama" if path == "/api/chat" else "chat")
        return next(self._recordings)


@contextlib.asynccontextmanager
async def asking(way, url):
    """Give what asks the server once: `read` over the `openai` package's client, `chat`, or `chat` with a runner."""
    if way == "read":
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            create = client.chat.completions.create
            yield lambda: stream.read(create(model="m", messages=QUESTION, stream=True), tools=["f"])
        return
    endpoint = "ollama" if "ollama" in way else "chat"
    async with stream.connect(url, "m", api=endpoint, retries=stream.services.Retries(attempts=1)) as connection:
        source = stream.ToolRunner(connection, TOOLS) if "runner" in way else connection
        yield lambda: source.chat(QUESTION, tools=TOOLS)


def answers(way, *recordings):
    """The events of each recording, asked for over HTTP."""

    async def go():
        async with ReplayServer(InTurn(recordings), tokens_per_s=None) as server, asking(way, server.base_url) as ask:
            return [[event async for event in ask()] for _ in recordings]

    return asyncio.run(asyncio.wait_for(go(), 60.0))


def spoken(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def check(events):
    """Whether a consumer can use what has come."""
    for event in events:
        for field in getattr(event, "__dataclass_fields__", ()):
            json.dumps(getattr(event, field), allow_nan=False)
    for failed in (event for event in events if isinstance(event, StreamFailed)):
        assert failed is events[-1]
        assert failed.message
        assert failed.code != ""
        assert failed.retry_after_ms is None or failed.retry_after_ms >= 0.0


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("way", ["read", "openai runner", "ollama runner"])
def test_a_value_of_any_kind_in_any_place_raises_nothing_and_loses_nothing_that_was_said(way, value):
    endpoint = "ollama" if "ollama" in way else "chat"
    templates = TEMPLATES["lines" if endpoint == "ollama" else "chunks"]
    recordings = [streamed(endpoint, template.replace("@", VALUES[value])) for template in templates]
    for template, events in zip(templates, answers(way, *recordings), strict=True):
        check(events)
        assert spoken(events).startswith("Before. "), template
        assert "After. " in spoken(events) or isinstance(events[-1], StreamFailed), template


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("way", ["read", "chat", "ollama"])
def test_an_error_answer_of_any_kind_raises_nothing_and_is_a_failure(way, value):
    bodies = [template.replace("@", VALUES[value]).encode() for template in TEMPLATES["bodies"]]
    headers = {"retry-after": VALUES[value][:40].encode("ascii", "replace").decode(), "retry-after-ms": "nan"}
    recordings = [Recording(name="own", kind="ndjson", body=body, status=400, headers=headers) for body in bodies]
    for events in answers(way, *recordings):
        check(events)
        (failed,) = events
        assert (type(failed), failed.status) == (StreamFailed, 400)


@pytest.mark.parametrize("value", ["null", "[1]", '"x"', "5", "true"])
@pytest.mark.parametrize("way", ["read", "chat", "ollama"])
def test_a_value_in_place_of_a_message_is_passed_over(way, value):
    (events,) = answers(way, streamed("ollama" if way == "ollama" else "chat", value, value))
    assert spoken(events) == "Before. After. "
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [Finish]


def test_a_refusal_of_5000_brackets_says_what_came():
    body = DEEP[5000].encode()
    recording = Recording(name="own", kind="ndjson", body=body, status=400)
    for way in ("chat", "ollama"):
        ((failed,),) = answers(way, recording)
        assert failed.message == "[" * 500


class OddError(Exception):
    """Exceptions of a client: with attributes that are not of the types that others give them."""

    def __init__(self, **fields):
        super().__init__()
        self.__dict__.update(fields)

    def __str__(self):
        raise RuntimeError("no words")


def nested(size):
    value = []
    for _ in range(size):
        value = [value]
    return value


@pytest.mark.parametrize("odd", [nested(5000), {"a": nested(5000)}, float("nan"), True, b"x", 10**400, object(), "x"],
                         ids=["lists", "object", "nan", "bool", "bytes", "huge", "an object", "text"])  # fmt: skip
def test_an_exception_with_odd_attributes_is_a_failure(odd):
    class Response:
        headers = odd

    for field in ("body", "code", "status_code", "request_id", "response"):
        failed = failed_by(OddError(**{field: Response() if field == "response" else odd}))
        assert failed.message in (("x",) if (field, odd) == ("body", "x") else ("OddError", "Request failed"))
        assert isinstance(failed.code, str)
        assert isinstance(failed.status, int | None)
        assert isinstance(failed.request_id, str | None)


@pytest.mark.parametrize("value", [5, None, True, ["x"], 1.5], ids=repr)
def test_a_number_that_a_caller_feeds_is_told_by_the_reader_and_an_event_in_a_stream(value):
    with pytest.raises(stream.errors.StreamTypeError):
        stream.OpenAIReader().feed(value)
    text = {"choices": [{"delta": {"content": "Hello."}}]}
    *said, failed = stream.read_sync([text, value])
    assert spoken(said) == "Hello."
    assert failed.code == "unfinished"
    shown = "it begins with [" if value == ["x"] else repr(json.dumps(value))
    assert failed.message.endswith(f"a message is not an object: {shown}")


NESTED = {"$ref": "#/$defs/nested"}
FOLLOWS = {"anyOf": [{"type": "array", "items": NESTED}, {"type": "integer"}]}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "object", "properties": {"x": NESTED}, "$defs": {"nested": FOLLOWS}}, f'{{"x": {DEEP[500]}}}'),
        ({"type": "object", "properties": {"x": {"type": "number", "multipleOf": 0.01}}}, '{"x": 1e999}'),
    ],
    ids=["too deep", "infinite"],
)
@pytest.mark.parametrize("way", ["chat", "ollama"])
def test_arguments_that_a_schema_cannot_check_are_a_call_that_is_not_run(way, schema, written):
    ran = []
    calls = [stream.Tool(name="f", parameters=schema, function=lambda **given: ran.append(given))]
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": written}}
    line = f'{{"message": {{"tool_calls": [{{"id": "c", "function": {{"name": "f", "arguments": {written}}}}}]}}}}'
    piece = line if way == "ollama" else json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]})

    async def go():
        async with (
            ReplayServer(InTurn([streamed(way, piece)]), tokens_per_s=None) as server,
            stream.connect(server.base_url, "m", api=way) as connection,
        ):
            runner = stream.ToolRunner(connection, calls, executes="client")
            return [event async for event in runner.chat(QUESTION)]

    (result,) = (event for event in asyncio.run(go()) if isinstance(event, ToolResult))
    assert (result.is_error, ran) == (True, [])
    assert result.content.startswith("The tool was not run: the arguments of f ")


@pytest.mark.parametrize("value", VALUES)
def test_pages_about_a_model_of_any_kind_raise_nothing(value):
    async def answer(head, reader, writer):
        size = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await reader.readexactly(int(size[0].split(b":")[1]) if size else 0)
        kind = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
        writer.write(kind + b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    async def go():
        async with raw_server(answer) as url, stream.connect(url, "m") as connection:
            return await connection.learn()

    for page in TEMPLATES["pages"]:
        body = page.replace("@", VALUES[value]).encode()
        assert isinstance(asyncio.run(asyncio.wait_for(go(), 20.0)).tools, bool)


@pytest.mark.parametrize(
    ("endpoint", "data"),
    [
        ("ollama", b'{"message": {"content": "Hello."}}\n{"error": "gone"}\n'),
        ("ollama", b'{"message": {"content": "Hello."}}\n{"message": {"content": "' + b"a" * (5 << 20)),
        ("chat", b'data: {"choices": [{"delta": {"content": "Hello."}}]}\n\ndata: {"error": {"message": "gone"}}\n\n'),
    ],
    ids=["ollama", "a line without an end", "chat"],
)
def test_a_server_that_has_failed_is_not_waited_for(endpoint, data):
    async def answer(_head, reader, writer):
        kind = b"text/event-stream" if endpoint == "chat" else b"application/x-ndjson"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await reader.read()  # and says nothing more

    said, failed = chat_raw(answer, endpoint)
    assert (said.text, type(failed)) == ("Hello.", StreamFailed)
