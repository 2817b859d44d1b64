"""A server that plays recordings or scenarios over real HTTP, at the pace of a model.

It answers `POST …/chat/completions` and `POST /api/chat` with the turn that the conversation has reached: a request
whose last messages are tool results gets the next turn. So it keeps no state, and any number of clients may talk to it.
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
    """What a server says, request by request; a list of turns is one of them, a `Scenario` another."""

    @property
    def as_recorded(self) -> bool:
        """Whether the reads of its recordings are part of it, whatever the pace of the server."""
        ...

    @property
    def pages(self) -> Mapping[str, Any]:
        """Further paths, and the JSON that they answer with."""
        ...

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording | None:
        """The answer to a chat request; `None` for a path that there is not."""
        ...


class Turns:
    """Recorded turns as a script: the first is the answer at first, the last one is repeated."""

    as_recorded = False
    pages: Mapping[str, Any] = {}

    def __init__(self, turns: Sequence[Recording]) -> None:
        if not turns:
            raise StreamValueError("turns is empty; a replay needs at least one recording")
        self._turns = tuple(turns)

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording:  # noqa: ARG002  (a Script's)
        """The turn that the conversation has reached, on either path."""
        return self._turns[min(turn_index(request), len(self._turns) - 1)]


class ReplayServer:
    """Serves recorded turns or a scenario on loopback.

    Parameters
    ----------
    turns : what to answer at first, after the first tool results, and so on (the last one is repeated); or a script.
    tokens_per_s : pace of the events; `None` plays each read at its recorded time.
    on_request : told the path and the JSON of every chat request.
    clock : stream time; its speed is the server's.
    host, port : where to listen; port 0 takes a free one.

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
        """Listen; raises `StreamError` if the port cannot be had."""
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port)
        except OSError as error:
            raise StreamError(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}") from error
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and end the connections that are still open."""
        assert self._server is not None
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as `base_url`."""
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
        # A client that goes away, or talks something else than HTTP, ends its connection and nothing more.
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
        """Answer one request; True if another may follow on the connection."""
        request, body = await _receive(connection, reader)
        if request is None:
            return False
        path = request.target.decode("latin-1").split("?")[0]
        asked = _decoded(body)
        is_chat = request.method == b"POST" and path.endswith(CHAT_PATHS)
        if is_chat and self._on_request is not None:
            self._on_request(path, asked)
        recording = self._script.answer(path, asked) if is_chat else None
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
        """Send a recording; False if the connection is to be closed, as after one that did not come to its end."""
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
        """The pieces of a recording, each with its time in seconds since the request."""
        if self._tokens_per_s is not None:
            for ordinal, piece in enumerate(recording.pieces()):
                yield piece, ordinal / self._tokens_per_s
            return
        start = 0
        for size, at_ms in recording.reads or ((len(recording.body), 0.0),):
            yield recording.body[start : start + size], at_ms / 1000.0
            start += size


def turn_index(request: Mapping[str, Any]) -> int:
    """How many rounds of tool results follow the last user message of a request.

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
    """The JSON object of a request; empty if it is none."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def _receive(connection: h11.Connection, reader: asyncio.StreamReader) -> tuple[h11.Request | None, bytes]:
    """The next request and its body; `None` when the client has closed."""
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
