"""The web application of `cues live`: the page's files, and a WebSocket for each page."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from cues.cli._page_server import HEADERS, POLL_S
from cues.cli.live.browser.conversation import Conversation, ConversationOptions, Line
from stream.speech.speaker import SAMPLE_RATE

__all__ = ["MAX_PAGES", "MAX_TEXT", "LivePages"]

MAX_TEXT = 4000
"""Longest question, characters."""
MAX_PAGES = 64
"""Most pages at once."""

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_HEADERS = HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
_TRY_AGAIN_LATER = 1013
_CLOSE_S = 1.0

logger = logging.getLogger(__name__)


class LivePages:
    """The pages that are open, and their conversations; `hello` is the first event for each page."""

    def __init__(self, options: ConversationOptions, hello: Mapping[str, Any], poll_s: float = POLL_S) -> None:
        self._options, self._hello, self._poll_s = options, hello, poll_s
        self._lines: set[Line] = set()

    def app(self) -> Starlette:
        """The application, for a `PageServer`."""
        files = resources.files(__package__).joinpath("web").iterdir()
        return Starlette(routes=[*map(_route, files), WebSocketRoute("/socket", self._talk)], lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        bank = self._options.bank
        known = await asyncio.to_thread(bank.state)
        while True:
            await asyncio.sleep(self._poll_s)
            state = await asyncio.to_thread(bank.state)
            if state != known:
                known = state
                await asyncio.to_thread(bank.value)
                for line in self._lines:
                    line.tell("live.pack", problem=bank.problem)

    async def _talk(self, socket: WebSocket) -> None:
        await socket.accept()
        reason = "too many pages are open"
        if len(self._lines) < MAX_PAGES:
            async with Conversation(self._options) as conversation:
                await self._converse(socket, conversation)
            reason = "the page does not keep up"
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):  # It may be closed already.
            async with asyncio.timeout(_CLOSE_S):
                await socket.close(_TRY_AGAIN_LATER, reason)

    async def _converse(self, socket: WebSocket, conversation: Conversation) -> None:
        """Until the page leaves, or does not read what it gets."""
        line = conversation.line
        self._lines.add(line)
        line.tell("live.hello", sample_rate=SAMPLE_RATE, problem=self._options.bank.problem, **self._hello)
        tasks = [
            asyncio.create_task(each)
            for each in (_listen(socket, conversation), line.deliver(socket), line.overflowed.wait())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._lines.discard(line)
            for task in tasks:
                task.cancel()
            for error in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(error, Exception) and not isinstance(error, WebSocketDisconnect):
                    logger.error("a page's connection failed", exc_info=error)


async def _listen(socket: WebSocket, conversation: Conversation) -> None:
    """Obey the page until it leaves."""
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        try:
            _obey(json.loads(message.get("text") or ""), conversation)
        except (ValueError, RecursionError) as error:
            conversation.line.tell("error", message=f"the page's message is not understood: {error}", code="message")


def _obey(command: object, conversation: Conversation) -> None:
    match command:
        case {"type": "interrupt"}:
            conversation.interrupt()
        case {"type": "ask", "text": str(text), "script": int(script)} if 0 < len(text.strip()) <= MAX_TEXT:
            # JSON may hold half of a surrogate pair, which no server takes.
            conversation.ask(text.encode("utf-8", "replace").decode("utf-8"), script)
        case _:
            raise ValueError(f'it must be an "interrupt", or an "ask" with text of 1 to {MAX_TEXT} characters')


def _route(file: Traversable) -> Route:
    body, kind = file.read_bytes(), _KINDS[file.name.rpartition(".")[2]]

    async def answer(_: Request) -> Response:
        return Response(body, media_type=kind, headers=_HEADERS)

    return Route("/" if file.name == "live.html" else f"/{file.name}", answer, methods=["GET"])
