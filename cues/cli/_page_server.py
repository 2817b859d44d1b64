"""`cues page --serve`: the page on this machine, rebuilt when a file of a pack changes."""

from __future__ import annotations

import contextlib
import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from cues.cli._watching import POLL_S, state_of
from cues.errors import CueError
from stream.replay.local_requests import cannot_listen, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["PageServer"]

_WITHOUT_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Sound board</title>'
    '<p>{}</p><p>The page returns when this is corrected: <a href="/">try again</a>.</p>'
    '<meta http-equiv="refresh" content="2">'
)


class PageServer(ThreadingHTTPServer):
    """Server of a page at `/`, and of events at `/changes?STATE` when the files in `folders` leave that state.

    `make` builds the page, once for each state of the files, which are checked every `poll_s` seconds; it gets the URL
    of the change events. A `CueError` becomes an error page. Port 0 takes a free one.
    """

    daemon_threads = True

    def __init__(self, make: Callable[[str], str], folders: Sequence[Path], port: int, poll_s: float = POLL_S) -> None:
        self.folders, self.poll_s, self.closing = folders, poll_s, threading.Event()
        self._make, self._making = make, threading.Lock()
        self._made: tuple[str, bytes] | None = None
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise CueError(cannot_listen("127.0.0.1", port, error)) from error

    @property
    def url(self) -> str:
        """URL of the page."""
        return f"http://127.0.0.1:{self.server_port}/"

    def run(self) -> None:
        """Serve until `close`, or Ctrl-C."""
        self.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop serving."""
        self.closing.set()
        self.shutdown()
        self.server_close()

    def page(self) -> bytes:
        """The page for the present state of the files; requests at the same time share one build."""
        with self._making:
            # Take the state first: a change during the build then triggers a reload.
            state = state_of(self.folders)
            if self._made is None or self._made[0] != state:
                try:
                    self._made = (state, self._make(f"changes?{state}").encode())
                except CueError as error:
                    return _WITHOUT_PAGE.format(escape(str(error))).encode()
            return self._made[1]


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def handle(self) -> None:
        # A browser may hang up at any time.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        path, _, known = self.path.partition("?")
        reason = refusal(self.headers.get_all("Host", []), self.headers.get_all("Origin", []))
        if reason is not None:
            self.send_error(403, reason)
        elif path == "/":
            page = self.server.page()
            self._begin("text/html; charset=utf-8", len(page))
            self._write(page)
        elif path == "/changes":
            self._begin("text/event-stream")
            self._send_changes(known)
        else:
            self.send_error(404)

    do_HEAD = do_GET  # noqa: N815  (the name is the base class's)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is the base class's)
        """Do not log requests to the terminal."""

    def _begin(self, kind: str, length: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def _write(self, body: bytes) -> None:
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()

    def _send_changes(self, known: str) -> None:
        while self.command != "HEAD" and not self.server.closing.wait(self.server.poll_s):
            now = state_of(self.server.folders)
            # A comment keeps the connection open, and fails when the browser has closed it.
            self._write(b": waiting\n\n" if now == known else b"event: changed\ndata: files\n\n")
            known = now
