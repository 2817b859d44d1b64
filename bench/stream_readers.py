"""What the readers cost beside the packages that deliver to them, and whether they are linear (goals S1 and S2).

    python -m bench.stream_readers

Everything is a ratio inside this run: the contenders take turns, and the least time of many counts. Where a socket is
read, the thread's CPU time counts: waiting for the other side is nobody's cost.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import re
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import openai
from openai.types.chat import ChatCompletionChunk

from stream import OllamaReader, OpenAIReader, TextReader
from stream.readers.fast_path import known_texts

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = 500
ROUNDS = 40
PIECES = 116_667
PAUSE_S = 0.0002


def least(
    *runs: Callable[[], object], rounds: int = ROUNDS, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Least time of each run in seconds, taking turns."""
    times = [float("inf")] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            start = clock()
            run()
            times[number] = min(times[number], clock() - start)
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


def openai_package(delta_chunk: dict[str, object]) -> None:
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
    print(f"  {layer / LINES * 1e6:6.2f} µs a chunk, {100 * layer / package:5.2f} % of the openai package's")


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
            return least(alone, ours, rounds=ROUNDS // 2, clock=time.thread_time)
        finally:
            server.terminate()
            server.join()


def ollama_package() -> None:
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

    def model_only() -> None:
        for item in lines:
            ollama.ChatResponse(**item)

    def ours() -> None:
        feed = OllamaReader().feed
        for item in lines:
            feed(item)

    def first_time() -> None:
        known_texts.cache_clear()
        ours()

    def bytes_too() -> None:
        feed = OllamaReader().feed
        for body in bodies:
            feed(body)

    package, model, layer, first, whole = least(alone, model_only, ours, first_time, bytes_too)
    print(f"  decoded: {layer / LINES * 1e6:5.2f} µs a line, {100 * layer / package:5.1f} % of the package's client in "
          f"memory, {100 * layer / model:5.1f} % of its objects alone")  # fmt: skip
    connected, beside = over_a_socket(bodies, ours)
    print(f"           {beside / LINES * 1e6:5.2f} µs a line, {100 * beside / connected:5.1f} % of the package's client"
          f" over a socket ({connected / LINES * 1e6:.1f} µs a line, CPU time)")  # fmt: skip
    print(f"  first:   {first / LINES * 1e6:5.2f} µs a line where the process has not seen a token of this answer yet")
    print(f"  bytes:   {whole / LINES * 1e6:5.2f} µs a line, {100 * whole / package:5.1f} % of the package's client")


def linearity() -> None:
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
        print(f"  {name:18} {one * 1e9:6.0f} → {other * 1e9:6.0f} ns a character, ratio {other / one:4.2f}")


def pieces() -> None:
    items = [opening(), *[piece("x") for _ in range(PIECES)], piece('"}')]

    def read() -> None:
        feed = OpenAIReader().feed
        for item in items:
            feed(item)

    (spent,) = least(read, rounds=5)
    print(f"  {spent:.3f} s for {PIECES} one-character pieces of arguments (goal 0.3)")


def plain_text() -> None:
    text = ("The quick brown fox jumps over the lazy dog, and so on it goes; nobody knows why. " * 60)[:4096]

    def read(tools: list[str] | None) -> None:
        feed = TextReader(tools).feed
        for _ in range(256):
            feed(text)

    both = (None, ["set_timer", "get_weather"])
    for tools, spent in zip(both, least(lambda: read(both[0]), lambda: read(both[1])), strict=True):
        print(f"  {spent / 256 / 4096 * 1e6:.4f} µs a character, tools={tools} (goal 0.05)")


if __name__ == "__main__":
    print("S1: text through the openai package (goal 3 %, stretch 2 %)")
    openai_package(chunk({"content": "hello "}))
    print("S1: six-character argument pieces (goal 9 %, stretch 5 %)")
    openai_package(piece("abcdef"))
    print("S1: Ollama lines (goal 6 %)")
    ollama_package()
    print("S2: linear (goal 1.2)")
    linearity()
    pieces()
    print("text without triggers, 4 kB chunks")
    plain_text()
