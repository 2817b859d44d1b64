"""A connection to a scripted model server on loopback, and what came of it."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field

import pytest

import stream
from stream.events import ReasoningDelta, StreamFailed, TextDelta, ToolCallEnd, ToolResult
from stream.replay.scenarios import Scenario, scenario
from stream.replay.server import ReplayServer

QUESTION = [{"role": "user", "content": "What is in my folder?"}]
BOTH = pytest.mark.parametrize("endpoint", ["chat", "ollama"])
QUICK = stream.services.Retries(attempts=3, wait_s=0.0, wait_max_s=0.05, timeout_s=5.0)


@dataclass
class Exchange:
    """The events of a chat, and the requests that the server saw."""

    events: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    @property
    def bodies(self):
        return [body for _, body in self.requests]

    @property
    def paths(self):
        return [path for path, _ in self.requests]

    @property
    def text(self):
        return "".join(event.text for event in self.events if isinstance(event, TextDelta)).strip()

    @property
    def thinking(self):
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta)).strip()

    @property
    def calls(self):
        return [(e.tool_name, json.loads(e.arguments_json)) for e in self.of(ToolCallEnd) if e.status == "ok"]

    @property
    def results(self):
        return [(e.tool_name, e.is_error, e.content) for e in self.of(ToolResult)]

    @property
    def failure(self):
        return next(iter(self.of(StreamFailed)), None)

    def of(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def order(self):
        """The kinds of the events in order, neighbors of one kind once."""
        kinds = [type(event).__name__ for event in self.events]
        return [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before]


def tool(name, function=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return stream.Tool(name=name, description=f"Does {name}.", parameters=schema, function=function)


LIST_DIRECTORY = tool("list_directory", lambda **_: ["a.txt", "b.txt"], path={"type": "string"})
READ_FILE = tool("read_file", lambda path: f"hello from {path}", path={"type": "string"})
TOOLS = [LIST_DIRECTORY, READ_FILE]


API = {"openai": "chat"}  # the names of scenarios and tests, and of `connect`


def chat(script, *, endpoint="chat", model="qwen3:8b", messages=QUESTION, wrap=None, options=None, **fields):
    """Ask a scenario (or any script) over HTTP; `wrap` puts services in front of the connection."""

    async def go():
        exchange = Exchange()
        served = scenario(script) if isinstance(script, str) else script
        server = ReplayServer(
            served, tokens_per_s=None, on_request=lambda path, body: exchange.requests.append((path, body))
        )
        async with server:
            settings = {"retries": QUICK, **(options or {})}
            async with stream.connect(
                server.base_url, model, api=API.get(endpoint, endpoint), **settings
            ) as connection:
                source = wrap(connection) if wrap else connection
                async for event in source.chat(messages, **fields):
                    exchange.events.append(event)
        return exchange

    return asyncio.run(asyncio.wait_for(go(), 20.0))


def running(server, tools=TOOLS, endpoint="chat", fields=None, **options):
    """Ask through a `ToolRunner`, which gets the other options."""
    return chat(server, endpoint=endpoint, wrap=lambda c: stream.ToolRunner(c, tools, **options), **fields or {})


def validated(server, endpoint, validator):
    """Ask with a validator over the stream, and no runner."""

    class Watched:
        def __init__(self, connection):
            self.connection = connection

        def chat(self, messages, **fields):
            return validator.watch(self.connection.chat(messages, tools=TOOLS, **fields))

    return chat(server, endpoint=endpoint, wrap=Watched)


def recovering(name, endpoint="chat", attempts=None, **options):
    """Ask through a `Recovery`, which gets the other options."""
    tools = options.pop("tools", TOOLS)
    messages = options.pop("messages", QUESTION)
    wrapped = options.pop("wrapped", lambda connection: connection)
    return chat(
        name,
        endpoint=endpoint,
        tools=tools,
        messages=messages,
        wrap=lambda c: stream.services.Recovery(wrapped(c), attempts=attempts, **options),
    )


class Twice:
    """A source that asks the same question twice."""

    def __init__(self, connection):
        self.connection = connection

    async def chat(self, messages, **fields):
        for _ in range(2):
            async for event in self.connection.chat(messages, **fields):
                yield event


class Files:
    """A classifier that takes every question for one about files."""

    def classify(self, _):
        return "files"


@contextlib.asynccontextmanager
async def raw_server(answer):
    """The address of a server whose connections are given to `answer(head, reader, writer)`, after a request's head."""

    answering = set()

    async def connected(reader, writer):
        answering.add(asyncio.current_task())
        await answer(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        if answering:
            await asyncio.wait(answering)


def says(*turns, **options):
    """A server of a test's own: what it says at each turn."""
    return Scenario(name="own", about="a test's own", turns=turns, **options)


def calling(*calls, then="Done."):
    """A server that makes these calls, and answers then."""
    return says([["call", name, arguments] for name, arguments in calls], [["say", then]])


def chat_raw(answer, endpoint="chat", *, path="", **options):
    """The events of a question to a `raw_server`."""

    async def go():
        async with raw_server(answer) as url, stream.connect(url + path, "m", api=endpoint, **options) as connection:
            return [event async for event in connection.chat(QUESTION)]

    return asyncio.run(asyncio.wait_for(go(), 60.0))
