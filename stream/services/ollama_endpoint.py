"""Client of Ollama's own `/api/chat`: JSON lines from httpx2, parsed by `OllamaReader`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream.events import StreamFailed
from stream.readers.ollama_reader import OllamaReader
from stream.sendable import sendable
from stream.services.failures import failure_of_answer, failure_of_transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    import httpx2

    from stream.events import ServiceEvent

__all__ = ["OllamaEndpoint"]


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
