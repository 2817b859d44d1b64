"""An OpenAI-compatible `/v1/chat/completions`: server-sent events by the `openai` package, read by `stream.read`."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError
from stream.reading import read
from stream.services.failures import failure_of_answer, failure_of_transport
from stream.services.ollama_endpoint import trusted
from stream.services.sendable import sendable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from openai import AsyncOpenAI

    from stream.events import Event

__all__ = ["OpenAIEndpoint", "openai_client"]


def openai_client(base_url: str, *, api_key: str | None, timeout_s: float, connect_timeout_s: float) -> AsyncOpenAI:
    """The `openai` package's client, without retries of its own."""
    try:
        import openai
    except ImportError as error:
        raise MissingFeatureError("a client needs the `services` extra: pip install 'cue-engine[services]'") from error
    logging.getLogger("openai._base_client").addFilter(_NO_BODIES)  # the same filter is added once at most
    # A key from the environment is for OpenAI itself: a server that was named here must not be given it.
    timeout = openai.Timeout(timeout_s, connect=connect_timeout_s)
    http = openai.DefaultAsyncHttpxClient(verify=trusted(), timeout=timeout)
    return openai.AsyncOpenAI(
        base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=timeout, http_client=http
    )


class OpenAIEndpoint:
    """Sends bodies to `{base_url}/chat/completions`."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._base_url = str(client.base_url)
        # Looked up here, because the package imports its resources (a quarter of a second) at the first use: not then,
        # when somebody waits for an answer. The typed overloads know no server but OpenAI's own.
        self._completions: Any = client.chat.completions

    async def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[Event, None]:
        """The events of one answer; every trouble is a `StreamFailed`. `tap` is given each chunk as it came."""
        import openai

        try:
            chunks = await self._create(sendable(body))
        except openai.APIStatusError as error:
            yield failure_of_answer(error.status_code, error.body or error.message, error.response.headers)
            return
        except openai.APIError as error:
            yield failure_of_transport(error.__cause__ or error, url=self._base_url, timed_out=_waited(error))
            return
        try:
            async for event in read(chunks if tap is None else _tapped(chunks, tap), tools=tools):
                yield event
        finally:
            await chunks.close()

    async def _create(self, body: Mapping[str, Any]) -> Any:
        known = {name: body[name] for name in ("model", "messages", "stream")}
        rest = {name: value for name, value in body.items() if name not in known}
        mark = _asking.set(True)
        try:
            return await self._completions.create(**known, extra_body=rest)
        finally:
            _asking.reset(mark)


class _NoBodies(logging.Filter):
    """Takes the bodies of our requests out of the debug log that `openai` before version 3 writes of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: the line stays, without the bodies."""
        if _asking.get() and isinstance(record.args, dict) and "json_data" in record.args:
            record.args = {**record.args, "json_data": "<redacted>", "extra_json": "<redacted>"}
        return True


_asking: ContextVar[bool] = ContextVar("asking", default=False)
_NO_BODIES = _NoBodies()


def _waited(error: Exception) -> bool:
    """Whether an answer was waited for in vain; a connection that could not be made in time is another matter."""
    import openai

    return isinstance(error, openai.APITimeoutError) and type(error.__cause__).__name__ != "ConnectTimeout"


async def _tapped(chunks: AsyncIterator[Any], tap: Callable[[Any], None]) -> AsyncGenerator[Any, None]:
    async for chunk in chunks:
        tap(chunk)
        yield chunk
