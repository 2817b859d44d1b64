"""A server that replays recordings or scenarios over HTTP, at the pace of a model.

It answers `POST …/chat/completions` and `POST /api/chat` with the turn that the conversation has reached: each round of
tool results in the request moves on by one turn. So it keeps no state and serves any number of clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import h11

from stream.clock import Clock, WallClock
from stream.errors import StreamError, StreamValueError
from stream.replay.recording import DEFAULT_TOKENS_PER_S, SERVED_HEADERS, Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["ReplayServer", "Script", "turn_index"]

MAX_REQUEST_BYTES = 16 * 1024 * 1024
CHAT_PATHS = ("/chat/completions", "/api/chat")


class Script(Protocol):
    """A server's answers, request by request; `Turns` and `Scenario` are scripts."""

    @property
    def as_recorded(self) -> bool:
        """Whether the script prescribes the reads, whatever the server's pace."""
        ...

    @property
    def pages(self) -> Mapping[str, Any]:
        """Other paths, and their JSON answers."""
        ...

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording | None:
        """The answer to a chat request; `None` for an unknown path."""
        ...


class Turns:
    """Recorded turns as a script; the last one repeats."""

    as_recorded = False
    pages: Mapping[str, Any] = {}

    def __init__(self, turns: Sequence[Recording]) -> None:
        if not turns:
            raise StreamValueError("turns is empty; a replay needs at least one recording")
        self._turns = tuple(turns)

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording:  # noqa: ARG002  (of the protocol)
        """The turn that the conversation has reached, on either path."""
        return self._turns[min(turn_index(request), len(self._turns) - 1)]


class ReplayServer:
    """Serves recorded turns or a scenario on loopback.

    Parameters
    ----------
    turns : sequence of Recording, or Script
        The answers: to the question, after the first tool results, and so on; the last one repeats.
    tokens_per_s : float or None
        Pace of the events, above 0; `None` replays each read at its recorded time.
    on_request : callable or None
        Gets the path and the JSON of every chat request.
    clock : Clock or None
    host, port : str, int
        The address to listen on; port 0 takes a free one.

    Examples
    --------
    ``async with ReplayServer([recording]) as server: AsyncOpenAI(base_url=server.base_url, api_key="none")``
    """

    def __init__(
        self,
        turns: Sequence[Recording] | Script,
        *,
        tokens_per_s: float | None = DEFAULT_TOKENS_PER_S,
        on_request: Callable[[str, Mapping[str, Any]], None] | None = None,
        clock: Clock | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        if tokens_per_s is not None and not tokens_per_s > 0.0:
            raise StreamValueError(
                f"tokens_per_s is {tokens_per_s!r}; it must be above 0, or None for the recorded times"
            )
        self._script: Script = Turns(turns) if isinstance(turns, Sequence) else turns
        self._tokens_per_s = None if self._script.as_recorded else tokens_per_s
        self._on_request = on_request
        self._clock = clock or WallClock()
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen; raises `StreamError` if the port is not available."""
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port)
        except OSError as error:
            raise StreamError(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}") from error
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and close open connections."""
        assert self._server is not None
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        """The `base_url` for an OpenAI client."""
        return f"http://{self._host}:{self._port}/v1"

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        assert self._server is not None
        await self._server.serve_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        # A client that disconnects, or does not speak HTTP, ends only its own connection.
        with contextlib.suppress(ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
            while await self._answer_one(connection, reader, writer):
                connection.start_next_cycle()
        writer.close()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()

    async def _answer_one(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; True if the connection may carry another."""
        request, body = await _receive(connection, reader)
        if request is None:
            return False
        path = request.target.decode("latin-1").split("?")[0]
        payload = _decoded(body)
        is_chat = request.method == b"POST" and path.endswith(CHAT_PATHS)
        if is_chat and self._on_request is not None:
            self._on_request(path, payload)
        recording = self._script.answer(path, payload) if is_chat else None
        if recording is not None:
            return await self._play(connection, writer, recording)
        if path in self._script.pages:
            await _send_json(connection, writer, 200, self._script.pages[path])
        elif request.method == b"GET" and path.endswith("/models"):
            await _send_json(connection, writer, 200, {"object": "list", "data": [{"id": "replay", "object": "model"}]})
        else:
            message = f"a replay answers POST …{CHAT_PATHS[0]} and POST {CHAT_PATHS[1]}, not {path}"
            await _send_json(connection, writer, 404, {"error": {"message": message, "code": "not_found"}})
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    async def _play(self, connection: h11.Connection, writer: asyncio.StreamWriter, recording: Recording) -> bool:
        """Send a recording; False if the connection must close, as after an incomplete answer."""
        start_s = self._clock.now()
        kept = [(name, value) for name, value in recording.headers.items() if name in SERVED_HEADERS]
        headers = [("content-type", recording.content_type), ("cache-control", "no-cache"), *kept]
        writer.write(connection.send(h11.Response(status_code=recording.status, headers=headers)) or b"")
        for piece, at_s in self._schedule(recording):
            await self._clock.sleep(start_s + at_s - self._clock.now())
            writer.write(connection.send(h11.Data(data=piece)) or b"")
            await writer.drain()
        if not recording.complete:
            return False
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    def _schedule(self, recording: Recording) -> Iterator[tuple[bytes, float]]:
        """The pieces of a recording, with their times in seconds since the request."""
        if self._tokens_per_s is not None:
            for ordinal, piece in enumerate(recording.pieces()):
                yield piece, ordinal / self._tokens_per_s
            return
        start = 0
        for size, at_ms in recording.reads or ((len(recording.body), 0.0),):
            yield recording.body[start : start + size], at_ms / 1000.0
            start += size


def turn_index(request: Mapping[str, Any]) -> int:
    """Number of rounds of tool results after the last user message of a request.

    Examples
    --------
    >>> turn_index({"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}]})
    1
    """
    try:
        roles = [message.get("role") for message in request["messages"]]
    except (KeyError, TypeError, AttributeError):
        return 0
    last_user = max((place for place, role in enumerate(roles) if role == "user"), default=-1)
    since = roles[last_user + 1 :]
    return sum(role == "tool" and previous != "tool" for previous, role in zip([None, *since], since, strict=False))


def _decoded(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a request; empty if it is not one."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def _receive(connection: h11.Connection, reader: asyncio.StreamReader) -> tuple[h11.Request | None, bytes]:
    """The next request and its body; `None` if the client has closed the connection."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_REQUEST_BYTES:
                return None, b""
        elif isinstance(event, h11.EndOfMessage):
            return request, bytes(body)
        else:
            return None, b""


async def _send_json(connection: h11.Connection, writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    data = json.dumps(value).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(data)))]
    writer.write(connection.send(h11.Response(status_code=status, headers=headers)) or b"")
    writer.write(connection.send(h11.Data(data=data)) or b"")
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    await writer.drain()
