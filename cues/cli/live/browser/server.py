"""The server of `cues live`: uvicorn on one socket, and the guard of every request."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

import uvicorn
from starlette.responses import PlainTextResponse

from cues.cli.live.browser.app import MAX_MESSAGE_BYTES
from cues.errors import CueError, reason_of
from stream.replay.local_requests import cannot_listen, names_of, refusal

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LiveServer"]

_CLOSE_S = 2
_NOT_FOUND = "not found; the address that `cues live` printed has a token"
_POLICY_VIOLATION = 1008


class LiveServer:
    """Serves an application on one address, with checks of `Host`, `Origin` and the token, the first part of each path.

    Port 0 takes a free one. With a certificate and its key, it speaks HTTPS. An address that cannot be listened on, or
    a certificate that cannot be read, raises `CueError`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        certfile: Path | None = None,
        keyfile: Path | None = None,
    ) -> None:
        config = uvicorn.Config(
            _Guard(app, names_of(host), token),
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
        self._server = uvicorn.Server(config)
        self._address = f"{'https' if certfile else 'http'}://{address}"
        self._path = f"/{token}/" if token else "/"

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"{self._address}:{self._socket.getsockname()[1]}{self._path}"

    async def serve(self) -> None:
        """Serve until `close`, or Ctrl-C."""
        await self._server.serve(sockets=[self._socket])

    def close(self) -> None:
        """Stop; may be called from any thread."""
        self._server.should_exit = True


class _Guard:
    """Refuses requests to other names, from other web pages, or without the token (empty for none)."""

    def __init__(self, app: ASGIApp, names: Collection[str], token: str) -> None:
        self._app, self._names, self._token = app, names, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif (reason := refusal(_values(scope, b"host"), _values(scope, b"origin"), self._names)) is not None:
            await _refuse(403, reason, scope, receive, send)
        elif (path := self._path_after_token(scope["path"])) is None:
            await _refuse(404, _NOT_FOUND, scope, receive, send)
        else:
            await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    def _path_after_token(self, path: str) -> str | None:
        if not self._token:
            return path
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
