"""Any bytes sent to any of the three servers: it answers or hangs up, and the next client is served."""

import asyncio
import socket
import threading
import urllib.parse
import urllib.request
from concurrent.futures import Future
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.replay.recording import Recording
from stream.replay.server import ReplayServer
from tests.support.live_server import board_server, live_server

ANSWER = Recording(name="answer", kind="sse", body=b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
BYTES = st.binary(max_size=60)
METHODS = st.sampled_from([b"GET", b"HEAD", b"POST", b"PUT", b"OPTIONS", b"CONNECT", b"PRI", b"\xff", b""])
PATHS = st.sampled_from(
    [b"/", b"/v1/chat/completions", b"/api/chat", b"/socket", b"/changes?1", b"*", b"/../etc", b"//x:y@", b"/%00"]
)
NAMES = st.sampled_from(
    [b"Host", b"Origin", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"Expect", b"Cookie",
     b"Sec-WebSocket-Key", b"Sec-WebSocket-Version", b"Sec-WebSocket-Extensions", b"Content-Type", b"x y", b""]
)  # fmt: skip
VALUES = st.sampled_from(
    [b"localhost", b"evil.example", b"null", b"chunked", b"websocket", b"Upgrade", b"close", b"100-continue", b"-1",
     b"0", b"5", b"9" * 30, b"13", b"dGhlIHNhbXBsZSBub25jZQ==", b"permessage-deflate; x", b"gzip", b"x" * 3000]
)  # fmt: skip
HEADERS = st.lists(st.tuples(NAMES, VALUES | BYTES), max_size=6)
BODIES = st.sampled_from(
    [b"{}", b"[" * 500, b'{"messages": [{"role": 5}]}', b"5\r\nabcde\r\n0\r\n\r\n", b"\x81\x85abcdxxxxx"]
)


def request(method, path, headers, body):
    lines = [method + b" " + path + b" HTTP/1.1", *(name + b": " + value for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


REQUESTS = BYTES | st.builds(request, METHODS, PATHS | BYTES, HEADERS, BODIES | BYTES)


@contextmanager
def replay():
    started, faults = Future(), []

    async def serve():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        async with ReplayServer([ANSWER], tokens_per_s=100_000.0) as server:
            over = asyncio.Event()
            started.set_result((server.base_url, asyncio.get_running_loop(), over))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    url, loop, over = started.result()
    try:
        yield f"{url}/models"
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
    assert faults == []


@pytest.mark.parametrize("name", ["replay", "page", "live"])
def test_a_server_survives_any_request(name, tmp_path, capfd):
    servers = {"replay": replay, "page": lambda: board_server(lambda _: "page", [tmp_path]), "live": live_server}
    with servers[name]() as server:
        url = server if name == "replay" else server.url
        address = urllib.parse.urlsplit(url)

        @settings(max_examples=80, suppress_health_check=list(HealthCheck))
        @given(data=REQUESTS, reads=st.booleans())
        def attack(data, reads):
            with socket.create_connection((address.hostname, address.port), timeout=10) as client:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                if reads and b"changes" not in data:  # a page waits for changes
                    answer = client.recv(1 << 16)
                    # The page, or nothing, answers a request of HTTP/0.9.
                    assert answer.startswith((b"HTTP/1.", b"<!DOCTYPE HTML>")) or not answer
                    assert b"Traceback" not in answer

        attack()
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.status == 200
    assert "Traceback" not in capfd.readouterr().err
