"""Client of Ollama's own `/api/chat`: JSON lines from httpx2, parsed by `OllamaReader`."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError
from stream.events import StreamFailed
from stream.extras import pip_install
from stream.readers.ollama_reader import OllamaReader
from stream.sendable import sendable
from stream.services.failures import failure_of_answer, failure_of_transport

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    import httpx2

    from stream.events import ServiceEvent

__all__ = ["OllamaEndpoint", "http_client", "shorten_error", "trusted"]

LONGEST_PAGE = 1 << 16
"""Bytes of an error page that are read, before it is decompressed."""


def http_client(*, api_key: str | None, timeout_s: float, connect_timeout_s: float) -> httpx2.AsyncClient:
    """The HTTP client for all requests outside the `openai` package."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingFeatureError(f"a client needs the `services` extra: {pip_install('services')}") from error
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    timeout = httpx2.Timeout(timeout_s, connect=connect_timeout_s)
    hooks = {"response": [shorten_error]}
    return httpx2.AsyncClient(headers=headers, timeout=timeout, verify=trusted(), event_hooks=hooks)


@cache
def trusted() -> ssl.SSLContext:
    """The trusted certificates, shared by all connections: loading them takes 40 ms."""
    import httpx2

    return httpx2.create_ssl_context()


async def shorten_error(response: Any) -> None:
    """A hook of the HTTP clients: an error page ends after `LONGEST_PAGE` bytes, since it is read as a whole."""
    if response.status_code < 400:
        return
    page = bytearray()
    async for data in response.stream:
        page += data
        if len(page) > LONGEST_PAGE:
            break
    await response.stream.aclose()
    package = sys.modules[type(response).__module__.partition(".")[0]]  # httpx or httpx2
    response.stream = package.ByteStream(bytes(page[:LONGEST_PAGE]))


class OllamaEndpoint:
    """Client of `{root}/api/chat`."""

    def __init__(self, client: httpx2.AsyncClient, root: str) -> None:
        self._client, self._url = client, f"{root}/api/chat"

    async def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`. `tap` gets the bytes of each read."""
        import httpx2

        reader = OllamaReader(tools=tools)
        try:
            async with self._client.stream("POST", self._url, json=sendable(body)) as response:
                if response.status_code >= 400:
                    yield failure_of_answer(response.status_code, await response.aread(), response.headers)
                    return
                async for data in response.aiter_bytes():
                    if tap is not None:
                        tap(data)
                    for event in reader.feed(data):
                        yield event
                        if isinstance(event, StreamFailed):
                            return
            last = reader.close()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            timed_out = isinstance(error, httpx2.ReadTimeout)
            last = reader.fail(failure_of_transport(error, url=self._url, timed_out=timed_out))
        for event in last:
            yield event

    async def close(self) -> None:
        """Nothing: the connection closes its HTTP client."""
