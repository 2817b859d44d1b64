"""Reads a client's stream; the only file that connects a reader with input and output.

`stream.readers` says how a piece of the stream becomes events.
"""

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
from typing import Any

from stream.errors import StreamTypeError
from stream.events import Event, StreamFailed
from stream.readers.formats.any_format import AnyReader
from stream.readers.formats.failures import failed_by
from stream.readers.formats.message_reader import MessageReader
from stream.readers.options import Tools

__all__ = ["read", "read_sync"]

_OPTIONS = ("max_argument_chars", "max_line_chars", "reasoning", "start")


def read(
    source: AsyncIterable[Any] | Awaitable[AsyncIterable[Any]],
    tools: Tools = None,
    *,
    reader: MessageReader | None = None,
    **options: Any,
) -> AsyncIterator[Event]:
    """An iterator over the events of a stream in any known format; it closes the stream at the end, even on an error.

    Parameters
    ----------
    source : async iterable or awaitable of one
        Response of a provider's client, awaited or not; or network reads (`bytes` or `str`, cut anywhere), WebSocket
        messages, or decoded messages.
    tools : Tools
        The declared tools: names, OpenAI tool dicts, or objects with a `name`; `None` if not known.
    reader : MessageReader or None
        A reader with its own tools and options, such as `AnthropicReader(tools)`. `None`: the first message that says
        something decides.
    **options
        `max_argument_chars`, `max_line_chars`, `reasoning` and `start`, as in `OpenAIReader`.

    Returns
    -------
    AsyncIterator[Event]
        A client's exception in mid-stream comes as `StreamFailed`, the last event; a cancellation is raised. A second
        iteration yields nothing.

    Raises
    ------
    StreamTypeError
        If `source` is neither an asynchronous iterable nor awaitable, or an option is unknown. If `source` is awaited
        and its result is not iterable, the first event raises.
    """
    chosen = _reader("read", tools, reader, options)
    if not inspect.isawaitable(source):
        _asynchronous(source)
    return _events(source, chosen)


async def _events(
    source: AsyncIterable[Any] | Awaitable[AsyncIterable[Any]], reader: MessageReader | AnyReader
) -> AsyncIterator[Event]:
    try:
        chunks = await source if inspect.isawaitable(source) else source
        iterator = aiter(_asynchronous(chunks))
    except StreamTypeError:
        raise
    except Exception as error:  # noqa: BLE001  (each client has its own)
        for event in reader.fail(failed_by(error)):
            yield event
        return
    try:
        last: list[Event] | None = None
        while last is None:
            try:
                chunk = await anext(iterator)
            except StopAsyncIteration:
                last = reader.close()
            except Exception as error:  # noqa: BLE001  (as above)
                last = reader.fail(failed_by(error))
            for event in _fed(reader, chunk) if last is None else last:
                yield event
                if isinstance(event, StreamFailed):
                    return
    finally:
        close = getattr(chunks, "aclose", None) or getattr(chunks, "close", None)
        closing = close() if close is not None else None
        if inspect.isawaitable(closing):
            await closing


def read_sync(
    source: Iterable[Any], tools: Tools = None, *, reader: MessageReader | None = None, **options: Any
) -> Iterator[Event]:
    """The events of a stream in any known format; see `read`, also for what it raises.

    Examples
    --------
    >>> chunks = [{"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}]
    >>> list(read_sync(chunks))
    [TextDelta(text='Hi.', channel=None), Finish(reason='stop')]
    """
    chosen = _reader("read_sync", tools, reader, options)
    if not hasattr(source, "__iter__"):
        is_asynchronous = hasattr(source, "__aiter__") or inspect.isawaitable(source)
        hint = "; stream.read reads an asynchronous one" if is_asynchronous else ""
        raise StreamTypeError(f"source is {_short(source)}; it must be an iterable of chunks{hint}")
    return _events_sync(source, chosen)


def _events_sync(source: Iterable[Any], reader: MessageReader | AnyReader) -> Iterator[Event]:
    iterator = iter(source)
    try:
        last: list[Event] | None = None
        while last is None:
            try:
                chunk = next(iterator)
            except StopIteration:
                last = reader.close()
            except Exception as error:  # noqa: BLE001  (each client has its own)
                last = reader.fail(failed_by(error))
            for event in _fed(reader, chunk) if last is None else last:
                yield event
                if isinstance(event, StreamFailed):
                    return
    finally:
        if hasattr(source, "close"):
            source.close()


def _reader(
    function: str, tools: Tools, reader: MessageReader | None, options: dict[str, Any]
) -> MessageReader | AnyReader:
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        allowed = ", ".join(("tools", "reader", *_OPTIONS))
        raise StreamTypeError(f"stream.{function} has no option {unknown[0]!r}; its options are {allowed}")
    if reader is None:
        return AnyReader(tools, **options)
    if isinstance(reader, type) or not all(hasattr(reader, method) for method in ("feed", "close", "fail")):
        raise StreamTypeError(f"reader is {reader!r}; it must be an OpenAIReader(…) or its like")
    if tools is not None or options:
        name = "tools" if tools is not None else next(iter(options))
        raise StreamTypeError(f"{name}: a reader is given, so pass it there: {type(reader).__name__}({name}=…)")
    return reader


def _fed(reader: MessageReader | AnyReader, chunk: object) -> list[Event]:
    """The events of a chunk. A value that is not a message is skipped if JSON has such values, such as `null`."""
    try:
        return reader.feed(chunk)
    except StreamTypeError:
        if not isinstance(chunk, str | int | float | list | None) or not hasattr(reader, "pass_over"):
            raise
        reader.pass_over(chunk)
        return []


def _asynchronous(source: Any) -> Any:
    if not hasattr(source, "__aiter__"):
        hint = "; stream.read_sync reads a plain one" if isinstance(source, Iterable) else ""
        raise StreamTypeError(f"source is {_short(source)}; it must be an asynchronous iterable of chunks{hint}")
    return source


def _short(source: object) -> str:
    return "None" if source is None else f"of type {type(source).__name__}"  # not the text that it may hold
