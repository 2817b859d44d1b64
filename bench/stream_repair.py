"""Cost of `stream.repair` beside `stream.read`, and of an answer that `cues proxy` repairs beside one passed on.

    python -m bench.stream_repair [--json]

Goal R1. Ratios inside this run: the contenders take turns, and the least CPU time of many counts. Upstream and client
of the proxy are other processes.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import sys
import time
import urllib.request
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from openai.types.chat import ChatCompletionChunk

import stream
from bench.goals import at_most, run
from bench.stream_readers import LINES, chunk, least, opening, piece, serve
from cues.cli._page_server import PageServer
from cues.cli.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from multiprocessing.connection import Connection

    from bench.goals import Figure

ROUNDS = 40
PROXY_ROUNDS = 8
QUESTION = json.dumps({"messages": [], "tools": [{"type": "function", "function": {"name": "note"}}]}).encode()
CHUNKS = {
    "text": [chunk({"content": "hello "})] * LINES,
    "thoughts": [chunk({"reasoning_content": "hello "})] * LINES,
    "six-character argument pieces": [opening(), *[piece("abcdef")] * LINES],
}


def drained(shell: Callable[..., AsyncIterator[Any]], chunks: list[Any]) -> Callable[[], None]:
    """Go once through a stream."""

    async def source() -> AsyncIterator[Any]:
        for one in chunks:
            yield one

    async def go() -> None:
        async for _ in shell(source(), tools=["note"]):
            pass

    return lambda: asyncio.run(go())


def ask(questions: Connection) -> None:
    """Ask at each address that comes, and say when the answer has ended."""
    while True:
        request = urllib.request.Request(questions.recv(), data=QUESTION, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            questions.send(len(answer.read()))


def proxied(what: str) -> Figure:
    """CPU time of the proxy for Chat Completions, against another path of it with the same bytes; an event a write."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    events = [b"data: %b\n\n" % json.dumps(one).encode() for one in CHUNKS[what]]
    chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in events]
    ours, its = multiprocessing.Pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = (listener, [head, *chunks, b"0\r\n\r\n"])
        others = [multiprocessing.Process(target=serve, args=served), multiprocessing.Process(target=ask, args=(its,))]
        for other in others:
            other.start()
        try:
            least_s = asyncio.run(taking_turns(f"http://127.0.0.1:{listener.getsockname()[1]}", ours))
        finally:
            for other in others:
                other.terminate()
                other.join()
    passed, repaired = least_s
    note = f"{(repaired - passed) / LINES * 1e6:.1f} of {repaired / LINES * 1e6:.0f} µs a chunk"
    return at_most("R1", f"cues proxy, {what}: repaired / passed on", repaired / passed, 1.3, note=note)


async def taking_turns(upstream: str, questions: Connection) -> list[float]:
    """Least CPU time of the proxy for an answer on each path."""
    least_s = dict.fromkeys(("v1/other", "v1/chat/completions"), float("inf"))
    async with aclosing(Proxy(upstream)) as proxy:
        server = PageServer(proxy)
        serving = asyncio.create_task(server.serve())
        for _ in range(PROXY_ROUNDS):
            for path in least_s:
                start = time.thread_time()
                questions.send(server.url + path)
                await asyncio.to_thread(questions.recv)
                least_s[path] = min(least_s[path], time.thread_time() - start)
        server.close()
        await serving
    return [*least_s.values()]


def figures() -> Iterator[Figure]:
    """All rows."""
    for what, dicts in CHUNKS.items():
        for kind, chunks in (("dicts", dicts), ("objects", [ChatCompletionChunk.model_validate(one) for one in dicts])):
            read, repair = least(drained(stream.read, chunks), drained(stream.repair, chunks), rounds=ROUNDS)
            note = f"{(repair - read) / LINES * 1e6:.2f} µs more a chunk"
            yield at_most("R1", f"stream.repair / stream.read, {what}, {kind}", repair / read, 1.5, note=note)
    yield from map(proxied, CHUNKS)


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
