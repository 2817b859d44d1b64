"""The server of a page on this machine, which checks every request; and the files that a page is made from."""

import asyncio
import contextlib
import hashlib
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from html import escape
from pathlib import Path
from typing import Generic, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from cues.cli._records import bank_of
from cues.errors import CueError, reason_of
from cues.library.bank import Bank
from cues.library.pack import find_pack_dir
from stream.replay.local_requests import cannot_listen, names_of, refusal

__all__ = ["HEADERS", "MAX_MESSAGE_BYTES", "POLL_S", "PageServer", "Watched", "reloading_page", "watched_bank"]

POLL_S = 0.5
"""Default interval between checks of files, s."""
MAX_MESSAGE_BYTES = 16 * 1024
"""Longest message of a page."""
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
"""Headers of every page."""

_CLOSE_S = 2
_NOT_FOUND = "not found; the address that `cues live` printed has a token"
_POLICY_VIOLATION = 1008
_WITHOUT_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Sound board</title>'
    '<p>{}</p><p>The page returns when this is corrected: <a href="/">try again</a>.</p>'
    '<meta http-equiv="refresh" content="2">'
)


Made = TypeVar("Made")


class PageServer:
    """Serves an application on one address; checks `Host`, `Origin` and the token, the first part of each path.

    `names` and `origins` are accepted beside the server's own.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        names: Collection[str] = (),
        origins: Collection[str] = (),
        certfile: Path | None = None,
        keyfile: Path | None = None,
    ) -> None:
        config = uvicorn.Config(
            _Guard(app, names_of(host).union(names), token, origins),
            ws="websockets-sansio",
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,  # Sound does not get smaller.
            ssl_certfile=certfile,
            ssl_keyfile=keyfile,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=_CLOSE_S,
        )
        try:
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise CueError(
                f"the certificate {certfile} and the key {keyfile} cannot be used: {reason_of(error)}"
            ) from error
        address, family = (f"[{host}]", socket.AF_INET6) if ":" in host else (host, socket.AF_INET)
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise CueError(cannot_listen(host, port, error)) from error
        # asyncio sets it for sockets that it has made; without it, each word waits for the last one's ACK, up to 40 ms.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server = uvicorn.Server(config)
        port = self._socket.getsockname()[1]
        self.url = f"{'https' if certfile else 'http'}://{address}:{port}/{token}{'/' if token else ''}"

    async def serve(self) -> None:
        """Serve until `close`, or Ctrl-C."""
        await self._server.serve(sockets=[self._socket])

    def close(self) -> None:
        """Stop; may be called from any thread."""
        self._server.should_exit = True


class _Guard:
    """Refuses requests to other names, from other web pages, or without the token (empty for none)."""

    def __init__(self, app: ASGIApp, names: Collection[str], token: str, origins: Collection[str]) -> None:
        self._app, self._names, self._token, self._origins = app, names, token, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        origins = [origin for origin in _values(scope, b"origin") if origin not in self._origins]
        if (reason := refusal(_values(scope, b"host"), origins, self._names)) is not None:
            await _refuse(403, reason, scope, receive, send)
        elif not self._token:
            await self._app(scope, receive, send)
        elif (path := self._path_after_token(scope["path"])) is None:
            await _refuse(404, _NOT_FOUND, scope, receive, send)
        else:
            await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    def _path_after_token(self, path: str) -> str | None:
        given, slash, rest = path.removeprefix("/").partition("/")
        is_right = secrets.compare_digest(given.encode(), self._token.encode())
        return f"/{rest}" if is_right and slash else None


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


async def _refuse(status: int, reason: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":  # Closed before it is accepted: the server answers with HTTP 403.
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason})
    else:
        await PlainTextResponse(f"{reason}\n", status)(scope, receive, send)


class Watched(Generic[Made]):
    """The result of `make`, which gets a digest of the files in `folders`; threads may share it.

    After a `CueError`, which is in `problem`, `value` returns the last good result; the first error is raised.
    """

    def __init__(self, make: Callable[[str], Made], folders: Sequence[Path]) -> None:
        self.problem: str | None = None
        self._make, self._folders, self._making = make, folders, threading.Lock()
        self._state = self.state()
        self._value = make(self._state)

    def state(self) -> str:
        """Digest of the names, times and sizes of all files."""
        state = hashlib.sha256()
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    state.update(repr((str(path), status.st_mtime_ns, status.st_size)).encode())
        return state.hexdigest()[:16]

    def value(self) -> Made:
        """The result; blocks while it is made. Callers at the same time share one."""
        with self._making:
            state = self.state()  # before `make`: a change meanwhile is another state
            if state != self._state:
                self._state = state
                try:
                    self._value, self.problem = self._make(state), None
                except CueError as error:
                    self.problem = str(error)
            return self._value


def watched_bank(pack: Path | None) -> Watched[Bank]:
    """The cues of a pack, or of this machine's for `None`."""
    folder = find_pack_dir(pack)
    return Watched(lambda _: bank_of(pack), [] if folder is None else [folder])


def reloading_page(page: Watched[str], poll_s: float = POLL_S) -> Starlette:
    """The application of one page: itself at `/`, and `/changes?STATE`, a WebSocket that reports another state."""

    async def show(_: Request) -> Response:
        text = await asyncio.to_thread(page.value)
        text = _WITHOUT_PAGE.format(escape(page.problem)) if page.problem else text
        return Response(text, media_type="text/html", headers=HEADERS)

    async def report_change(socket: WebSocket) -> None:
        await socket.accept()
        while await asyncio.to_thread(page.state) == socket.url.query:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(poll_s):
                    await socket.receive()
                    return  # The browser sends nothing but its farewell.
        await socket.send_text("changed")

    return Starlette(routes=[Route("/", show, methods=["GET"]), WebSocketRoute("/changes", report_change)])
