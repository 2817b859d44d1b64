"""The events of one answer from a provider's package: opened, parsed by `stream.read`, and closed."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream.events import AnswerParts, Finish, StreamFailed, ToolCallEnd, Usage
from stream.readers.formats import reader_for
from stream.reading import read
from stream.request_bodies import bodies_unlogged
from stream.services.failures import failure_of_client
from stream.urls import shown_url
from stream.whole_answers import whole_answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from stream.events import ServiceEvent
    from stream.whole_answers import Api

__all__ = ["answered"]


async def answered(
    opening: Callable[[], Awaitable[Any]],
    api: Api,
    url: str,
    *,
    tools: Sequence[str] | None,
    tap: Callable[[Any], None] | None,
) -> AsyncGenerator[ServiceEvent, None]:
    """The events of one answer; every failure is a `StreamFailed`, and the usage comes before the `Finish`.

    `opening` sends the request; its result is the stream of chunks, each of which `tap` gets, or one whole answer.
    """
    try:
        with bodies_unlogged():
            answer = await opening()
    except Exception as error:
        failed = failure_of_client(error, url)
        if failed is None:
            raise
        yield failed
        return
    pieces: list[Any] = []
    ends: list[ToolCallEnd] = []
    held: list[Finish] = []  # the usage comes after it, but is yielded first, as on `/api/chat`
    async with aclosing(_chunks(answer, pieces, tap, keeps=api != "chat")) as chunks:
        async for event in read(chunks, reader=reader_for(api, tools)):
            if held and not isinstance(event, Usage):
                yield held.pop()
            if isinstance(event, ToolCallEnd):
                ends.append(event)
            if isinstance(event, Finish):
                held.append(event)
            elif isinstance(event, StreamFailed) and event.code == "connection" and not pieces:
                yield replace(event, message=f"cannot reach {shown_url(url)}: {event.message}")
            else:
                yield event
    if api != "chat" and held and (ends or held[0].reason == "pause_turn"):
        for parts in _parts(api, pieces, ends):
            yield AnswerParts(api, parts)
    if held:
        yield held.pop()


async def _chunks(
    answer: Any, kept: list[Any], tap: Callable[[Any], None] | None, *, keeps: bool
) -> AsyncGenerator[Any, None]:
    """The chunks of an answer, all or the first kept; a whole answer is one chunk, and a web page none."""
    try:
        async for chunk in answer if hasattr(answer, "__aiter__") else _whole(answer):
            if tap is not None:
                tap(chunk)
            if keeps or not kept:
                kept.append(chunk)
            yield chunk
    finally:
        close = getattr(answer, "aclose", None) or getattr(answer, "close", None)
        if close is not None:
            await close()


async def _whole(answer: Any) -> AsyncIterator[Any]:
    if hasattr(answer, "choices"):
        yield answer


def _parts(api: Api, pieces: Sequence[Any], ends: Sequence[ToolCallEnd]) -> list[tuple[dict[str, Any], ...]]:
    """The answer's content in the API's own form, alone in a list; `[]` if the stream does not make up an answer."""
    try:
        decoded = [json.loads(piece.model_dump_json(by_alias=True, exclude_none=True)) for piece in pieces]
        answer = whole_answer(api, decoded, ends)
        if api == "gemini":
            return [tuple(answer["candidates"][0]["content"]["parts"])]
        return [tuple(answer["output" if api == "responses" else "content"])]
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        return []
