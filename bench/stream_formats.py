"""Cost of our layer beside each provider's own client on text, and on bytes without a client (goal S1).

    python -m bench.stream_formats [--json]

The package turns the bytes of a stream in memory into its objects, as its client does; our reader reads those objects
as they come, a hundred at a time: in a live loop an object is read when it was just made, and so it is still in the
cache. The bytes of Chat Completions are read without the package, too. Each figure is a ratio inside this run: the
contenders take turns, and the least CPU time of many counts.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import httpx2
import openai
from anthropic.types import RawMessageStreamEvent
from google import genai
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from bench.goals import Figure, at_least, at_most, run
from bench.stream_readers import chunk, least
from stream.readers.formats.any_format import AnyReader
from tests.support.loopback import socket_server, tls_contexts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINES = 500
ROUNDS = 25
AT_ONCE = 100
REQUEST = httpx2.Request("POST", "http://127.0.0.1")
ITEM = {"item_id": "msg_0a63f40a2632b74300699f8819a5e08196ac", "output_index": 0, "content_index": 0}
TEXTS = {
    "chat": chunk({"content": "hello "}),
    "responses": {"type": "response.output_text.delta", **ITEM, "delta": "hello ", "logprobs": [], "obfuscation": "X"},
    "realtime": {"type": "response.output_text.delta", "event_id": "event_E6U0x", "response_id": "resp_E6U0x", **ITEM,
                 "delta": "hello "},
    "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello "}},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "hello "}], "role": "model"}, "index": 0}],
               "usageMetadata": {"promptTokenCount": 29}, "modelVersion": "gemini-3-flash"},
    "live": {"serverContent": {"modelTurn": {"parts": [{"text": "hello "}]}}},
}  # fmt: skip
FIRST = {
    "anthropic": {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    "realtime": {"type": "response.created", "event_id": "e", "response": {"id": "resp_E6U0x"}},
}


def messages_of(name: str) -> list[dict[str, Any]]:
    texts = [TEXTS[name]] * LINES
    if name == "responses":
        texts = [{**text, "sequence_number": number} for number, text in enumerate(texts)]
    return [FIRST[name], *texts] if name in FIRST else texts


def body_of(name: str) -> bytes:
    events = (f"event: {m['type']}\n" if "type" in m else "" for m in messages_of(name))
    lines = (f"data: {json.dumps(message)}\n\n" for message in messages_of(name))
    return "".join(event + line for event, line in zip(events, lines, strict=True)).encode()


def sdk_stream(package: Any, client: Any, kind: Any, name: str) -> Callable[[], Iterator[Any]]:
    """The objects that a package makes of a body, which it gets in one read."""
    body = body_of(name)

    def objects() -> Iterator[Any]:
        response = httpx2.Response(200, content=body, request=REQUEST)
        return iter(package.Stream(cast_to=kind, response=response, client=client))

    return objects


def google_stream() -> Callable[[], Iterator[Any]]:
    """The same, for the package that has a client of its own."""
    answer = httpx.MockTransport(lambda _: httpx.Response(200, content=body_of("gemini")))
    client = genai.Client(api_key="none", http_options={"httpx_client": httpx.Client(transport=answer)})

    def objects() -> Iterator[Any]:
        return iter(client.models.generate_content_stream(model="m", contents="Hello."))

    return objects


def beside(objects: Callable[[], Iterator[Any]]) -> tuple[float, float]:
    """CPU time of a package for a stream, and of our reader, of one round."""
    client = layer = 0.0
    start = time.thread_time()
    source, reader = objects(), None
    while True:
        kept = list(itertools.islice(source, AT_ONCE))
        made = time.thread_time()
        reader = reader or AnyReader()
        for item in kept:
            reader.feed(item)
        client, layer, start = client + made - start, layer + time.thread_time() - made, time.thread_time()
        if not kept:
            return client, layer


async def sockets(name: str) -> list[tuple[float, float]]:
    """Time of a package's client over a WebSocket on loopback, and of ours, a round each."""
    lines = [json.dumps(message) for message in messages_of(name)]
    return [await over_a_socket(name, lines) for _ in range(ROUNDS)]


async def over_a_socket(name: str, lines: list[str]) -> tuple[float, float]:
    tls = tls_contexts() if name == "live" else (None, None)
    setup = ['{"setupComplete": {}}'] if name == "live" else []
    async with socket_server([*setup, *lines], after_setup=bool(setup), tls=tls[0]) as url:
        if name == "live":
            options = {"base_url": url, "async_client_args": {"ssl": tls[1]}}
            connecting = genai.Client(api_key="none", http_options=options).aio.live.connect(model="m")
        else:
            connecting = openai.AsyncOpenAI(websocket_base_url=url, api_key="none").realtime.connect(model="m")
        async with connecting as connection:
            await asyncio.sleep(0.2)  # everything has arrived
            kept: list[Any] = []
            start = time.thread_time()
            source = connection.receive() if name == "live" else connection
            async for item in source:
                kept.append(item)
                if len(kept) == len(lines):
                    break
            package = time.thread_time() - start
    (layer,) = least(lambda: read(kept), rounds=3)
    return package, layer


def read(items: list[Any]) -> None:
    reader = AnyReader()
    for item in items:
        reader.feed(item)


def chat_bytes(name: str, package: Callable[[], Iterator[Any]]) -> Iterator[Figure]:
    """Our reader on the bytes alone, in reads of one event and in one."""
    body = body_of(name)
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    contenders = (lambda: list(package()), lambda: read(events), lambda: read([body]))
    client, each, whole = least(*contenders, rounds=ROUNDS)
    note = f"{each / LINES * 1e6:.2f} µs an event"
    yield at_least("S1", f"openai package / bytes of {name}, an event a read", client / each, 15, note=note)
    yield at_least("S1", f"openai package / bytes of {name}, one read", client / whole, 15)


def figures() -> Iterator[Figure]:
    """All rows."""
    openai_client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1")
    anthropic_client = anthropic.Anthropic(api_key="none", base_url="http://127.0.0.1")
    packages = {
        "chat": sdk_stream(openai, openai_client, ChatCompletionChunk, "chat"),
        "responses": sdk_stream(openai, openai_client, ResponseStreamEvent, "responses"),
        "anthropic": sdk_stream(anthropic, anthropic_client, RawMessageStreamEvent, "anthropic"),
        "gemini": google_stream(),
    }
    for name, package in packages.items():
        client, layer = (min(times) for times in zip(*(beside(package) for _ in range(ROUNDS)), strict=True))
        note = f"{layer / LINES * 1e6:.2f} of {client / LINES * 1e6:.0f} µs"
        yield at_most("S1", f"layer over the client, text of {name}", 100 * layer / client, 2 if name == "chat" else 30,
                      unit="%", note=note)  # fmt: skip
    for name in ("realtime", "live"):
        rounds = asyncio.run(sockets(name))
        client, layer = (min(times) for times in zip(*rounds, strict=True))
        note = f"{layer / LINES * 1e6:.2f} of {client / LINES * 1e6:.0f} µs"
        yield at_most("S1", f"layer over the client, text of {name}", 100 * layer / client, 30, unit="%", note=note)
    yield from chat_bytes("chat", packages["chat"])


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
