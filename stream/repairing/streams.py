"""Streams of Chat Completions, repaired: `repair` and its twin for programs, `repaired` and its twin for shells."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
from typing import Any, Literal

from stream.errors import StreamTypeError
from stream.readers.options import Start, Tools
from stream.repairing.chat import ChatRepair
from stream.repairing.sse import SseRepair

__all__ = ["repair", "repair_sync", "repaired", "repaired_sync"]


def repair(
    source: AsyncIterable[Any] | Awaitable[AsyncIterable[Any]],
    *,
    tools: Tools = None,
    told: Literal["hide", "run"] = "hide",
    without_tools: Literal["drop", "pass"] = "drop",
    start: Start = "text",
) -> AsyncIterator[Any]:
    """A stream of Chat Completions whose text may be spoken: no call, no thought and no marker is left in it.

    Calls that the model wrote as text become structured ones; thoughts go to `reasoning_content`. Calls that cannot be
    read, and those of tools that were not offered, are dropped and logged by name. A stream that was clean comes as it
    was. The source is closed at the end.

    Parameters
    ----------
    source : async iterable or awaitable of one
        The client's stream: chunks as dicts or as objects of the `openai` package, or server-sent events as `bytes`.
    tools : Tools
        The tools that the request offers: names, OpenAI tool dicts, or objects with a `name`. Calls of other names are
        run by nobody, so they are dropped if they were written as text; structured calls always pass.
    told : {"hide", "run"}
        What becomes of a call that the model only tells of (`ToolCallStart.told`).
    without_tools : {"drop", "pass"}
        With `tools=None`, calls written as text are dropped, or nothing is repaired.
    start : {"text", "reasoning"}
        `"reasoning"` if the prompt opens a block of thoughts and the server does not parse them; see `MessageReader`.

    Returns
    -------
    AsyncIterator
        Chunks of the source's kind. An exception of the source is raised after the text before it.

    Raises
    ------
    StreamTypeError, StreamValueError
        If a parameter is of another type or value.

    Examples
    --------
    >>> text = '<tool_call>{"name": "dim", "arguments": {"percent": 40}}</tool_call>'
    >>> chunks = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}]
    >>> for chunk in repair_sync(chunks, tools=["dim"]):
    ...     (choice,) = chunk["choices"]
    ...     print([call["function"] for call in choice["delta"].get("tool_calls", ())], choice["finish_reason"])
    [{'name': 'dim', 'arguments': '{"percent": 40}'}] None
    [] tool_calls
    """
    if not (inspect.isawaitable(source) or hasattr(source, "__aiter__")):
        raise StreamTypeError(
            f"source is of type {type(source).__name__}; it must be an asynchronous iterable of chunks"
        )
    return repaired(source, ChatRepair(tools, told=told, without_tools=without_tools, start=start))


async def repaired(source: Any, chunks_of: ChatRepair) -> AsyncGenerator[Any]:
    """The source's chunks or bytes, repaired; `chunks_of` is used up."""
    chunks = await source if inspect.isawaitable(source) else source
    repair: ChatRepair | SseRepair | None = None
    try:
        try:
            async for chunk in chunks:
                if repair is None:
                    repair = _fitting(chunk, chunks_of)
                for clean in repair.feed(chunk):
                    yield clean
        except Exception as error:  # (each client has its own)
            for clean in (repair or chunks_of).fail(error):
                yield clean
            raise
        for clean in (repair or chunks_of).close():
            yield clean
    finally:
        close = getattr(chunks, "aclose", None) or getattr(chunks, "close", None)
        closing = close() if close is not None else None
        if inspect.isawaitable(closing):
            await closing


def repair_sync(
    source: Iterable[Any],
    *,
    tools: Tools = None,
    told: Literal["hide", "run"] = "hide",
    without_tools: Literal["drop", "pass"] = "drop",
    start: Start = "text",
) -> Iterator[Any]:
    """The chunks of a stream of Chat Completions, clean; see `repair`, also for what it raises."""
    if not hasattr(source, "__iter__"):
        raise StreamTypeError(f"source is a {type(source).__name__}; it must be an iterable of chunks")
    return repaired_sync(source, ChatRepair(tools, told=told, without_tools=without_tools, start=start))


def repaired_sync(source: Iterable[Any], chunks_of: ChatRepair) -> Iterator[Any]:
    """The twin of `repaired`."""
    repair: ChatRepair | SseRepair | None = None
    try:
        try:
            for chunk in source:
                if repair is None:
                    repair = _fitting(chunk, chunks_of)
                yield from repair.feed(chunk)
        except Exception as error:
            yield from (repair or chunks_of).fail(error)
            raise
        yield from (repair or chunks_of).close()
    finally:
        if hasattr(source, "close"):
            source.close()


def _fitting(chunk: object, repair: ChatRepair) -> ChatRepair | SseRepair:
    return SseRepair(repair) if isinstance(chunk, bytes | bytearray | memoryview) else repair
