"""The server of `cues live`: uvicorn on one socket."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from cues.cli.live.browser.app import MAX_MESSAGE_BYTES
from cues.cli.live.browser.guard import Guard
from cues.errors import CueError, reason_of
from stream.local_requests import names_of
from stream.urls import cannot_listen

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

__all__ = ["LiveServer"]

_CLOSE_S = 2


class LiveServer:
    """Serves an application on one address, with checks of `Host`, `Origin` and the token.

    Parameters
    ----------
    app : ASGI application
    host : str
        Address to listen on.
    port : int
        0 takes a free port.
    token : str
        The first part of every path; empty for none.
    certfile, keyfile : Path or None
        Certificate and key for HTTPS.

    Raises
    ------
    CueError
        If the address cannot be listened on, or the certificate cannot be read.
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
        names = names_of(host)
        config = uvicorn.Config(
            Guard(app, names, token),
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
        try:
            self._socket = socket.create_server((host, port), family=_family(host))
        except OSError as error:
            raise CueError(cannot_listen(host, port, error)) from error
        self._server = uvicorn.Server(config)
        self._scheme = "http" if certfile is None else "https"
        self._shown = f"[{host}]" if ":" in host else host
        self._token = token

    @property
    def url(self) -> str:
        """Address of the page."""
        path = f"{self._token}/" if self._token else ""
        return f"{self._scheme}://{self._shown}:{self._socket.getsockname()[1]}/{path}"

    async def serve(self) -> None:
        """Serve until `close`, or Ctrl-C."""
        await self._server.serve(sockets=[self._socket])

    def close(self) -> None:
        """Stop; may be called from any thread."""
        self._server.should_exit = True


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
