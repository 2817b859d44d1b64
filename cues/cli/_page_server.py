"""`cues page --serve`: the page on this machine, rebuilt when a file of a pack changes."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import click

from cues.cli._terminal import harmless
from cues.errors import CueError, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["PageServer", "serve_page"]

_POLL_S = 0.5


class PageServer:
    """Server of a page at `/`, and of events at `/changes?STATE` when the files in `folders` leave that state.

    Parameters
    ----------
    make : callable
        Builds the page for each request; gets the URL of the change events. A `CueError` becomes an error page.
    folders : Sequence of Path
        Folders to watch, recursively.
    port : int
        0 takes a free port.
    poll_s : float
        Interval between checks of the files, s.
    """

    def __init__(self, make: Callable[[str], str], folders: Sequence[Path], port: int, poll_s: float = _POLL_S) -> None:
        self._make, self._folders, self._poll_s = make, folders, poll_s
        self._closing = threading.Event()
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise CueError(f"port {port}: cannot be served on: {reason_of(error)}") from error
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """URL of the page."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def run(self) -> None:
        """Serve until `close`, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, known = self.path.partition("?")
                # The browser may close the connection.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    if path == "/":
                        self._send("text/html; charset=utf-8", outer._page().encode())
                    elif path == "/changes":
                        self._send_changes(known)
                    else:
                        self.send_error(404)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is the base class's)
                """Do not log requests to the terminal."""

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def _send_changes(self, known: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                while not outer._closing.wait(outer._poll_s):
                    now = outer._state()
                    # A comment keeps the connection open, and fails when the browser has closed it.
                    self.wfile.write(b": waiting\n\n" if now == known else b"event: changed\ndata: files\n\n")
                    self.wfile.flush()
                    known = now

        return Handler

    def _page(self) -> str:
        try:
            # Take the state first: a change during the build then triggers a reload.
            return self._make(f"changes?{self._state()}")
        except CueError as error:
            from html import escape

            return (
                '<!doctype html><html lang="en"><meta charset="utf-8"><title>Sound board</title>'
                f"<p>{escape(str(error))}</p><p>The page returns when this is corrected: "
                '<a href="/">try again</a>.</p><meta http-equiv="refresh" content="2">'
            )

    def _state(self) -> str:
        """Digest of the names, times and sizes of all files."""
        state = hashlib.sha256()
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    state.update(repr((str(path), status.st_mtime_ns, status.st_size)).encode())
        return state.hexdigest()[:16]


def serve_page(make: Callable[[str], str], folders: Sequence[Path], port: int) -> None:
    """Serve until Ctrl-C."""
    server = PageServer(make, folders, port)
    watched = harmless(f", watching {', '.join(map(str, folders))}") if folders else ""
    click.echo(f"serving on {server.url}{watched} (Ctrl-C ends)")
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
