"""`cues proxy`: an OpenAI-compatible server whose answers are another one's, repaired."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from cues.cli import _options
from cues.cli._terminal import harmless
from stream.errors import StreamError
from stream.redaction import logged_error
from stream.repairing.streams import repaired
from stream.replay.recorder import recording
from stream.services.addresses import api_and_address
from stream.services.repairing_client import PATH, repair_of
from stream.urls import shown_url

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2
    from starlette.types import Receive, Scope, Send

__all__ = ["Proxy", "command"]

MAX_QUESTION_BYTES = 64 * 2**20
"""Longest request to `/chat/completions`; requests to other paths have no limit."""
CONNECT_S = 10.0
"""Longest wait for a connection to the upstream; an answer may take any time."""

_POLICY_VIOLATION = 1008
_OF_ONE_CONNECTION = {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
_NOT_ASKED = _OF_ONE_CONNECTION | {b"host", b"origin", b"referer", b"expect", b"proxy-connection"}
_NOT_ANSWERED = _OF_ONE_CONNECTION | {b"date"}  # which this server sends
_FOR_BROWSERS = b"access-control-"  # `--allow-origin` decides

logger = logging.getLogger("stream.proxy")


class Proxy:
    """The ASGI application: asks the upstream what it is asked, and repairs the answers of Chat Completions.

    `record` is a folder for recordings, or None; `repairs` are the options of `stream.repairing.chat.ChatRepair`.
    """

    def __init__(self, upstream: str, *, record: Path | None = None, **repairs: Any) -> None:
        import httpx2

        _, self._root, self._base = api_and_address(upstream, "chat")
        self._shown = shown_url(self._base)
        self._record, self._repairs = record, repairs
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # one client's are not for another
        )

    async def aclose(self) -> None:
        """Close the connections to the upstream."""
        await self._http.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102  (ASGI's)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        if scope["type"] != "http":
            return
        parts: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(self._answer(scope, parts, receive, send))
            listening = tasks.create_task(_listen(receive, parts, answering))
            answering.add_done_callback(lambda _: listening.cancel())

    async def _answer(self, scope: Scope, parts: asyncio.Queue[bytes | None], receive: Receive, send: Send) -> None:
        from httpx2 import HTTPError, InvalidURL, Request
        from starlette.responses import JSONResponse

        if not scope["path"].startswith("/"):  # "@host/" behind the upstream's address would name another server
            refusal = {"error": {"message": "the target of a request must be a path", "type": "proxy_error"}}
            await JSONResponse(refusal, 400)(scope, receive, send)
            return
        is_question = scope["method"] == "POST" and scope["path"].endswith(PATH)
        try:
            body: Any = _parts_of(parts, MAX_QUESTION_BYTES if is_question else math.inf)
            content = b"".join([part async for part in body]) if is_question else body if _has_body(scope) else None
            request = Request(scope["method"], self._url(scope), headers=_asked(scope, is_question), content=content)
            response = await self._http.send(request, stream=True)
        except (HTTPError, InvalidURL, StreamError) as error:
            too_long = isinstance(error, StreamError)
            text = str(error) if too_long else f"cannot reach {self._shown}: {logged_error(error)}"
            logger.warning("%s", text)
            refusal = {"error": {"message": text, "type": "proxy_error"}}
            await JSONResponse(refusal, 413 if too_long else 502)(scope, receive, send)
            return
        reads, is_changed = self._reads(response) if is_question else (response.aiter_raw(), False)
        async with aclosing(response), aclosing(reads):
            headers = self._answered(response, is_changed)
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            try:
                async for data in reads:
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            except (HTTPError, StreamError) as error:  # an answer without its end shows the client that it broke off
                logger.warning("%s broke off: %s", self._shown, logged_error(error))
                return
            await send({"type": "http.response.body"})

    def _url(self, scope: Scope) -> str:
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        address = f"{self._base}{path[3:]}" if path.startswith("/v1/") else f"{self._root}{path}"
        return f"{address}?{query}" if query else address

    def _reads(self, response: httpx2.Response) -> tuple[AsyncGenerator[bytes], bool]:
        """The bytes of the answer to a question, and whether they may differ from the upstream's."""
        question = response.request.content
        repair = repair_of(question, response.headers.get("content-encoding", ""), **self._repairs)
        if repair is None:
            return response.aiter_raw(), False
        reads: AsyncGenerator[bytes] = response.aiter_bytes()
        if self._record is not None:
            reads = recording(reads, response, json.loads(question), self._record)
        return (repaired(reads, repair) if response.is_success else reads), True

    def _answered(self, response: httpx2.Response, is_changed: bool) -> list[tuple[bytes, bytes]]:
        """The headers of an answer; a redirect within the upstream stays within this server."""
        gone = _NOT_ANSWERED | ({b"content-length", b"content-encoding"} if is_changed else set())
        found = ((name.lower(), value) for name, value in response.headers.raw)
        kept = [(name, value) for name, value in found if name not in gone and not name.startswith(_FOR_BROWSERS)]
        root = self._root.encode()
        return [(name, value.removeprefix(root) if name == b"location" else value) for name, value in kept]


async def _listen(receive: Receive, parts: asyncio.Queue[bytes | None], answering: asyncio.Task[None]) -> None:
    """Take in the request's body; a client that goes away ends its request to the upstream."""
    while (message := await receive())["type"] != "http.disconnect":
        if body := message.get("body", b""):  # of a request without one nobody takes a part
            await parts.put(body)
        if not message.get("more_body", False):
            await parts.put(None)
    answering.cancel()


async def _parts_of(parts: asyncio.Queue[bytes | None], most: float) -> AsyncIterator[bytes]:
    while (part := await parts.get()) is not None:
        most -= len(part)
        if most < 0:
            raise StreamError(f"the request is longer than {MAX_QUESTION_BYTES} bytes")
        yield part


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _asked(scope: Scope, is_question: bool) -> list[tuple[bytes, bytes]]:
    """The headers for the upstream. An answer to a question shall not be encoded: an encoder may hold what came."""
    gone = _NOT_ASKED | ({b"content-length", b"accept-encoding"} if is_question else set())
    kept = [(name, value) for name, value in scope["headers"] if name not in gone]
    return kept if any(name == b"accept-encoding" for name, _ in kept) else [*kept, (b"accept-encoding", b"identity")]


def _checked_origins(_: click.Context, __: click.Parameter, origins: Sequence[str]) -> Sequence[str]:
    for origin in origins:
        if not re.fullmatch(r"https?://[^/*@?#\s]+", origin):
            raise click.BadParameter(f"{origin!r} must be the scheme, name and port of a page, such as https://my.page")
    return origins


def _checked_upstream(context: click.Context, parameter: click.Parameter, url: str) -> str | None:
    checked = _options.checked_url(context, parameter, url)
    if "@" in urlsplit(url).netloc:  # not quoted: it is a secret
        raise click.BadParameter("the address must not hold a password; the clients send their keys")
    return checked


_CALLS = click.Choice(["drop", "pass"]), click.Choice(["hide", "run"])
_START = click.Choice(["text", "reasoning"])


@click.command()
@click.option("--upstream", metavar="URL", required=True, callback=_checked_upstream, help="Address of a model server.")
@click.option("--port", type=_options.PORT, default=0, help="0, the default, takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name of this server, as in a container.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", callback=_checked_origins, help="A page that may ask.")
@click.option("--without-tools", type=_CALLS[0], default="drop", help="Calls in text, if a request offers no tools.")
@click.option("--told", type=_CALLS[1], default="hide", help="Calls that the model only tells of.")
@click.option("--start", type=_START, default="text", help="reasoning: answers begin with thoughts, up to </think>.")
@click.option("--record", type=_options.EXISTING_FOLDER, help="Keep what the upstream answers here, without secrets.")
@_options.json_output
def command(
    *,
    upstream: str,
    record: Path | None,
    allow_host: Sequence[str],
    allow_origin: Sequence[str],
    as_json: bool,
    host: str,
    port: int,
    **repairs: Any,
) -> None:
    """Serve the model server at URL for clients of Chat Completions, with its answers repaired.

    In streams and whole answers, calls that the model wrote as text become structured calls, and thoughts leave the
    text. Every other path passes as it is. Keys are those of the clients.
    """
    from starlette.middleware.cors import CORSMiddleware

    from cues.cli._page_server import PageServer

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("cues: %(message)s"))
    logging.getLogger("stream").addHandler(handler)

    async def serve() -> None:
        async with aclosing(Proxy(upstream, record=record, **repairs)) as proxy:
            app = CORSMiddleware(proxy, allow_origins=allow_origin, allow_methods=["*"], allow_headers=["*"])
            names = [name.lower() for name in allow_host]
            server = PageServer(app, host=host, port=port, names=names, origins=allow_origin)
            url = f"{server.url}v1"
            click.echo(json.dumps({"url": url}) if as_json else f"serving on {harmless(url)} (Ctrl-C ends)")
            await server.serve()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
