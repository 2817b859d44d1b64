"""Cost of the readers beside the packages that deliver to them, and whether they are linear (goals S1 and S2).

    python -m bench.stream_readers [--json]

Every figure is a ratio inside this run: the contenders take turns, and the least CPU time of many counts. Other
processes and the wait for the other side of a socket do not change it.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import re
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import openai
from openai.types.chat import ChatCompletionChunk

from bench.goals import at_most, run
from stream import OllamaReader, OpenAIReader, TextReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.goals import Figure

LINES = 500
ROUNDS = 40
PIECES = 116_667
PAUSE_S = 0.0002


def least(*runs: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Least CPU time of each one in seconds, taking turns."""
    times = [float("inf")] * len(runs)
    for _ in range(rounds):
        for number, one in enumerate(runs):
            start = time.thread_time()
            one()
            times[number] = min(times[number], time.thread_time() - start)
    return times


def chunk(delta: dict[str, object]) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "system_fingerprint": "fp_ollama", "choices": [choice],
    }  # fmt: skip


def opening() -> dict[str, object]:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "note", "arguments": '{"text": "'}}
    return chunk({"tool_calls": [call]})


def piece(text: str) -> dict[str, object]:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


def openai_package(what: str, delta_chunk: dict[str, object], limit: float) -> Figure:
    """Our layer inside the loop over the client's stream, against that loop alone."""
    events = [opening(), *[delta_chunk] * LINES]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1")

    def chunks() -> openai.Stream[ChatCompletionChunk]:
        response = httpx.Response(200, content=body, request=httpx.Request("POST", "http://127.0.0.1"))
        return openai.Stream(cast_to=ChatCompletionChunk, response=response, client=client)

    kept = list(chunks())
    is_text = "content" in str(delta_chunk)
    kept_ours = kept[1:] if is_text else kept

    def alone() -> None:
        for _ in chunks():
            pass

    def ours() -> None:
        feed = OpenAIReader().feed
        for item in kept_ours:
            feed(item)

    package, layer = least(alone, ours)
    note = f"{layer / LINES * 1e6:.2f} µs a chunk"
    return at_most("S1", f"layer over the openai package, {what}", 100 * layer / package, limit, unit="%", note=note)


def serve(listener: socket.socket, writes: list[bytes]) -> None:
    """Answer every request on every connection with a line a write, a little apart, as a fast model gives them."""
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as requests:
            while line := requests.readline():
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
                elif line == b"\r\n":
                    requests.read(size)
                    for write in writes:
                        connection.sendall(write)
                        time.sleep(PAUSE_S)


def over_a_socket(bodies: list[bytes], ours: Callable[[], object]) -> list[float]:
    """CPU time of the package over a loopback connection, and of our layer, of the thread that reads."""
    import ollama

    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = [f"{len(body):x}\r\n".encode() + body + b"\r\n" for body in bodies]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = multiprocessing.Process(target=serve, args=(listener, [head, *chunks, b"0\r\n\r\n"]), daemon=True)
        server.start()
        client = ollama.Client(host=f"http://127.0.0.1:{listener.getsockname()[1]}", trust_env=False)

        def alone() -> None:
            assert sum(1 for _ in client.chat(model="m", messages=[], stream=True)) == len(bodies)

        try:
            return least(alone, ours, rounds=ROUNDS // 2)
        finally:
            server.terminate()
            server.join()


def ollama_package() -> Iterator[Figure]:
    """Decoded lines, against the `ollama` package in memory and over a socket; bytes, against it in memory."""
    import ollama

    license_text = Path(__file__).parent.with_name("LICENSE").read_text(encoding="utf-8")
    paragraphs = re.sub(r"(?<!\n)\n(?!\n)", " ", license_text)
    tokens = re.findall(r"\s*\w+|\s*\W", paragraphs)[:LINES]
    lines = [
        {"model": "m", "created_at": "2025-11-13T09:14:05.000185Z",
         "message": {"role": "assistant", "content": token}, "done": False}
        for token in itertools.islice(itertools.cycle(tokens), LINES)
    ]  # fmt: skip
    bodies = [json.dumps(line).encode() + b"\n" for line in lines]
    client = ollama.Client(host="http://127.0.0.1", transport=httpx.MockTransport(
        lambda _: httpx.Response(200, content=b"".join(bodies))))  # fmt: skip

    def alone() -> None:
        for _ in client.chat(model="m", messages=[], stream=True):
            pass

    def ours() -> None:
        feed = OllamaReader().feed
        for item in lines:
            feed(item)

    def bytes_too() -> None:
        feed = OllamaReader().feed
        for body in bodies:
            feed(body)

    package, layer, whole = least(alone, ours, bytes_too)
    connected, beside = over_a_socket(bodies, ours)
    for what, share in (
        ("decoded lines of Ollama, in memory", layer / package),
        ("decoded lines of Ollama, over a socket (CPU time)", beside / connected),
        ("bytes of Ollama, in memory", whole / package),
    ):
        limit = 100 if what.startswith("bytes") else 6
        yield at_most("S1", f"layer over the ollama package, {what}", 100 * share, limit, unit="%")


def linearity() -> Iterator[Figure]:
    """Time a character at 1 MB against 1 kB, one character a chunk."""
    words = "lorem ipsum "
    shapes = {
        "text": ("", ""),
        "reasoning": ("<think>", "</think>"),
        "JSON arguments": ('<tool_call>{"name": "f", "arguments": {"a": "', '"}}</tool_call>'),
        "tag value": ("<tool_call><function=f><parameter=a>", "</parameter></function></tool_call>"),
        "Python string": ('[f(a="', '")]'),
        "JSON that is text": ('{"a": ["', '"]}'),
        "arguments first": ('{"arguments": {"a": "', '"}, "name": "f"}'),
    }
    for name, (head, tail) in shapes.items():
        short, long = (head + words * (size // len(words)) + tail for size in (1000, 1_000_000))

        def read(text: str, times: int) -> None:
            for _ in range(times):
                feed = TextReader().feed
                for char in text:
                    feed(char)

        one, other = least(lambda s=short: read(s, 100), lambda s=long: read(s, 1), rounds=5)
        one, other = one / (100 * len(short)), other / len(long)
        note = f"{one * 1e9:.0f} ns a character at 1 kB"
        yield at_most("S2", f"a character at 1 MB / at 1 kB: {name}", other / one, 1.2, note=note)


def pieces() -> Figure:
    """One-character pieces of arguments, against `json.loads` of a list of as many strings."""
    items = [opening(), *[piece("x") for _ in range(PIECES)], piece('"}')]

    def read() -> None:
        feed = OpenAIReader().feed
        for item in items:
            feed(item)

    characters = json.dumps(["x"] * PIECES)
    spent, loads = least(read, lambda: json.loads(characters), rounds=5)
    return at_most("S2", f"{PIECES} one-character pieces / json.loads of a list", spent / loads, 80)


def figures() -> Iterator[Figure]:
    """All rows."""
    yield openai_package("text", chunk({"content": "hello "}), 2)
    yield openai_package("six-character argument pieces", piece("abcdef"), 5)
    yield from ollama_package()
    yield from linearity()
    yield pieces()


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
