"""The guard of the server: names, origins and the token of every request."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from stream.local_requests import refusal

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Guard"]

_NOT_FOUND = "not found; the address that `cues live` printed has a token"
_POLICY_VIOLATION = 1008


class Guard:
    """Refuses requests to other names, from other web pages, or without the token.

    Parameters
    ----------
    app : ASGI application
    names : Collection of str
        As in `refusal`.
    token : str
        The first part of every path; empty for none.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = (), token: str = "") -> None:
        self._app, self._names, self._token = app, names, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
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
