"""A server that replays recordings or scenarios over HTTP, at the pace of a model.

The requests say which turn a conversation has reached, so it keeps no state and serves any number of clients.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

import h11

from stream.checks import check_number
from stream.clock import Clock, WallClock
from stream.errors import StreamError, StreamValueError
from stream.replay.endpoints import PATHS, api_of_path, error_of, json_answer, pages, served, turn_index
from stream.replay.local_requests import cannot_listen, names_of, refusal
from stream.replay.recording import DEFAULT_TOKENS_PER_S, SERVED_HEADERS, Recording

__all__ = ["ReplayServer", "Script"]

MAX_REQUEST_BYTES = 16 * 1024 * 1024
NO_QUESTIONS = ("/api/show",)
"""Paths that are asked for something else than a model's answer, with a body, too."""


class Script(Protocol):
    """A server's answers, request by request; `Recordings` and `Scenario` are scripts."""

    @property
    def as_recorded(self) -> bool:
        """Whether the script prescribes the reads, whatever the server's pace."""

    @property
    def pages(self) -> Mapping[str, Any]:
        """Other paths, and their JSON answers."""

    @property
    def paths(self) -> Sequence[str]:
        """The ends of the paths that are answered, for the message about any other path."""

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording | None:
        """The answer to a chat request; `None` for a path of another API."""


class Recordings:
    """Recorded turns as a script; the last one repeats."""

    as_recorded = False
    pages: Mapping[str, Any] = {}

    def __init__(self, turns: Sequence[Recording]) -> None:
        if not turns:
            raise StreamValueError("turns is empty; a replay needs at least one recording")
        self._turns = tuple((turn, turn.api) for turn in turns)
        known = {api for _, api in self._turns}
        if len(known - {None}) > 1 or not known <= {None, *PATHS.values()}:
            formats = ", ".join(sorted(filter(None, known)))
            raise StreamValueError(f"turns are of {formats}; they must be of Chat Completions or Ollama's /api/chat")
        self.paths = [path for path, api in PATHS.items() if api in known or None in known]

    def answer(self, path: str, request: Mapping[str, Any]) -> Recording | None:
        """The turn that the conversation has reached; on any path if nothing in it tells its API."""
        turn, api = self._turns[min(turn_index(request), len(self._turns) - 1)]
        return turn if api in (None, api_of_path(path)) else None


class ReplayServer:
    """Serves recorded turns or a scenario on loopback; requests to other names and from web pages are refused.

    Parameters
    ----------
    turns : sequence of Recording, or Script
        The answers: to the question, after the first tool results, and so on; the last one repeats.
    tokens_per_s : float or None
        Pace of the events, above 0; `None` replays each read at its recorded time.
    on_request, on_answer : callable or None
        They get the path and the JSON of every chat request; method, path and status of every answer.
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
        on_answer: Callable[[str, str, int], None] | None = None,
        clock: Clock | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        if tokens_per_s is not None and not check_number("tokens_per_s", tokens_per_s) > 0.0:
            raise StreamValueError(
                f"tokens_per_s is {tokens_per_s!r}; it must be above 0, or None for the recorded times"
            )
        self._script: Script = Recordings(turns) if isinstance(turns, Sequence) else turns
        self._tokens_per_s = None if self._script.as_recorded else tokens_per_s
        self._on_request, self._on_answer = on_request, on_answer
        self._clock = clock or WallClock()
        self._host, self._port = host, port
        self._names = names_of(host)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen; raises `StreamError` if the port is not available."""
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port)
        except OSError as error:
            raise StreamError(cannot_listen(self._host, self._port, error)) from error
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
        with contextlib.suppress(OSError, h11.ProtocolError, asyncio.CancelledError):
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
            while await self._answer_one(connection, reader, writer):
                connection.start_next_cycle()
            writer.close()
            await writer.wait_closed()
        writer.transport.abort()  # no waiting for a client that does not read

    async def _answer_one(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; True if the connection may carry another."""
        request, body = await _receive(connection, reader, writer)
        if request is None:
            return False
        path = request.target.decode("latin-1").partition("?")[0]
        hosts, origins = (
            [value.decode("latin-1") for name, value in request.headers if name == header]
            for header in (b"host", b"origin")
        )
        method = request.method.decode()
        refused = refusal(hosts, origins, self._names)
        answer = json_answer(403, error_of(path, refused)) if refused else self._answer(method, path, body)
        if self._on_answer is not None:
            self._on_answer(method, path, answer.status)
        headers = [(name, value) for name, value in answer.headers.items() if name in SERVED_HEADERS]
        headers += [("content-type", answer.content_type), ("cache-control", "no-cache")]
        if answer.kind == "json":
            headers.append(("content-length", str(len(answer.body))))
        writer.write(connection.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
        start_s = self._clock.now()
        for piece, at_s in self._schedule(answer) if method != "HEAD" else ():
            await self._clock.sleep(start_s + at_s - self._clock.now())
            writer.write(connection.send(h11.Data(data=piece)) or b"")
            await writer.drain()
        if not answer.complete:
            return False
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    def _answer(self, method: str, path: str, body: bytes) -> Recording:
        page = self._script.pages.get(path, pages(path))
        if page is not None and (method in ("GET", "HEAD") or path in self._script.pages):
            return json_answer(200, page)
        if method == "POST" and path not in NO_QUESTIONS:
            try:
                request = json.loads(body)
                broken = "" if isinstance(request, dict) else "it must be a JSON object"
            except (ValueError, RecursionError) as error:
                request, broken = {}, str(error)
            if broken:
                return json_answer(400, error_of(path, f"the body of the request cannot be parsed: {broken}"))
            if self._on_request is not None:
                self._on_request(path, request)
            if recording := self._script.answer(path, request):
                return served(recording, api_of_path(path), request)
        known = ", ".join(f"…{one}" for one in self._script.paths)
        return json_answer(404, error_of(path, f"no answer to {method} {path}; this replay answers {known}"))

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


async def _receive(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[h11.Request | None, bytes]:
    """The next request and its body; `None` if the client has closed the connection."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:  # a client waits a second for it
                go_on = h11.InformationalResponse(status_code=100, reason=b"Continue", headers=[])
                writer.write(connection.send(go_on) or b"")
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
