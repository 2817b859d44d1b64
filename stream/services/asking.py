"""One answer from a provider's package: asked for, parsed by `stream.read`, closed; and its failures."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream.events import AnswerParts, Finish, StreamFailed, ToolCallEnd, Usage
from stream.readers.failures import failed_by, retry_after_ms, unwrap
from stream.readers.formats import reader_for
from stream.reading import read
from stream.request_bodies import bodies_unlogged, sendable
from stream.urls import shown_url
from stream.whole_answers import whole_answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from stream.events import ServiceEvent
    from stream.whole_answers import Api

__all__ = ["PackageEndpoint", "failure_of_answer", "failure_of_transport"]

LONGEST_MESSAGE = 500
"""Characters of a message that are kept: a proxy may send a whole error page."""


class PackageEndpoint(ABC):
    """Client of an API through its provider's package; `tap` gets each chunk before it is parsed."""

    client: Any

    def __init__(self, api: Api, url: str, tap: Callable[[Any], None] | None) -> None:
        self._api, self._url, self._tap = api, url, tap

    @abstractmethod
    async def _send(self, body: dict[str, Any]) -> Any:
        """The stream of chunks, or a whole answer; raises the errors of the package."""

    async def close(self) -> None:
        """Close the sockets."""
        await self.client.close()

    async def ask(self, body: Mapping[str, Any], tools: Sequence[str] | None) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`, and the usage comes before the `Finish`."""
        try:
            with bodies_unlogged():
                answer = await self._send(sendable(body))
        except Exception as error:
            failed = _failure_of_client(error, self._url)
            if failed is None:
                raise
            yield failed
            return
        pieces: list[Any] = []
        ends: list[ToolCallEnd] = []
        finish: Finish | None = None  # the usage comes after it, but is yielded first, as on `/api/chat`
        async with aclosing(self._chunks(answer, pieces)) as chunks:
            async for event in read(chunks, reader=reader_for(self._api, tools)):
                if finish is not None and not isinstance(event, Usage):
                    yield finish
                    finish = None
                if isinstance(event, ToolCallEnd):
                    ends.append(event)
                if isinstance(event, Finish):
                    finish = event
                elif isinstance(event, StreamFailed) and event.code == "connection" and not pieces:
                    yield replace(event, message=f"cannot reach {shown_url(self._url)}: {event.message}")
                else:
                    yield event
        if finish is not None:
            if self._api != "chat" and (ends or finish.reason == "pause_turn"):
                for parts in _parts(self._api, pieces, ends):
                    yield parts
            yield finish

    async def _chunks(self, answer: Any, kept: list[Any]) -> AsyncGenerator[Any, None]:
        """The chunks of an answer, all or the first kept; a whole answer is one chunk, and a web page none."""
        try:
            async for chunk in answer if hasattr(answer, "__aiter__") else _whole(answer):
                if self._tap is not None:
                    self._tap(chunk)
                if self._api != "chat" or not kept:
                    kept.append(chunk)
                yield chunk
        finally:
            close = getattr(answer, "aclose", None) or getattr(answer, "close", None)
            if close is not None:
                await close()


async def _whole(answer: Any) -> AsyncIterator[Any]:
    if hasattr(answer, "choices"):
        yield answer


def _parts(api: Api, pieces: Sequence[Any], ends: Sequence[ToolCallEnd]) -> list[AnswerParts]:
    """The answer's content in the API's own form, alone in a list; `[]` if the stream does not make up an answer."""
    try:
        decoded = [json.loads(piece.model_dump_json(by_alias=True, exclude_none=True)) for piece in pieces]
        answer = whole_answer(api, decoded, ends)
        if api == "gemini":
            return [AnswerParts(api, tuple(answer["candidates"][0]["content"]["parts"]))]
        return [AnswerParts(api, tuple(answer["output" if api == "responses" else "content"]))]
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        return []


def failure_of_answer(status: int, body: bytes | str | Any, headers: Mapping[str, str]) -> StreamFailed:
    """The failure in an HTTP error response.

    `body` may be decoded JSON. Names in `headers` are in lower case, or the mapping ignores case.
    """
    parsed = unwrap(body)
    return replace(
        parsed,
        message=parsed.message[:LONGEST_MESSAGE],
        status=status,
        retry_after_ms=retry_after_ms(headers) if parsed.retry_after_ms is None else parsed.retry_after_ms,
        request_id=parsed.request_id or headers.get("x-request-id") or headers.get("request-id"),
    )


def _failure_of_client(error: Exception, url: str) -> StreamFailed | None:
    """The failure in an exception of a provider's package; `None` if the exception reports none, such as a mistake."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(status, int) and hasattr(error, "response"):
        body = error.body if hasattr(error, "body") else getattr(error, "details", None)
        return failure_of_answer(status, body, getattr(error.response, "headers", None) or {})
    failed = failed_by(error)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if failed.code not in ("connection", "timeout") and not kinds & {"APIError", "HTTPError", "InvalidURL"}:
        return None
    # The time to connect does not count as a silence of the server.
    never_connected = any(type(one).__name__ == "ConnectTimeout" for one in (error, error.__cause__))
    return failure_of_transport(
        error.__cause__ or error, url=url, timed_out=failed.code == "timeout" and not never_connected
    )


def failure_of_transport(error: BaseException, *, url: str, timed_out: bool) -> StreamFailed:
    """The failure of a connection that was refused, broke or timed out; user, password and query are left out."""
    fault = "no answer in time from" if timed_out else "cannot reach"
    why = str(error)[:LONGEST_MESSAGE] or type(error).__name__
    return StreamFailed(message=f"{fault} {shown_url(url)}: {why}", code="timeout" if timed_out else "connection")
