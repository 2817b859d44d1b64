"""Ollama's own `/api/chat`: JSON lines by httpx2, read by `OllamaReader`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError
from stream.events import Event, StreamFailed
from stream.ollama_reader import OllamaReader
from stream.services.failures import failure_of_answer, failure_of_transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    import httpx2

__all__ = ["OllamaEndpoint", "http_client"]


def http_client(*, api_key: str | None, timeout_s: float, connect_timeout_s: float) -> httpx2.AsyncClient:
    """The HTTP client for what is not the `openai` package's."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingFeatureError("a client needs the `services` extra: pip install 'cue-engine[services]'") from error
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(timeout_s, connect=connect_timeout_s))


class OllamaEndpoint:
    """Sends bodies to `{root}/api/chat`."""

    def __init__(self, client: httpx2.AsyncClient, root: str) -> None:
        self._client, self._url = client, f"{root}/api/chat"

    async def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[Event, None]:
        """The events of one answer; every trouble is a `StreamFailed`. `tap` is given each read as it came."""
        import httpx2

        reader = OllamaReader(tools=tools)
        try:
            async with self._client.stream("POST", self._url, json=dict(body)) as response:
                if response.status_code >= 400:
                    yield failure_of_answer(response.status_code, await response.aread(), response.headers)
                    return
                async for data in response.aiter_bytes():
                    if tap is not None:
                        tap(data)
                    for event in reader.feed(data):
                        yield event
            broken = None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            broken = failure_of_transport(error, timed_out=isinstance(error, httpx2.ReadTimeout))
        for event in _ended(reader, broken):
            yield event


def _ended(reader: OllamaReader, broken: StreamFailed | None) -> list[Event]:
    """What is left in the reader; a broken connection is named as what it is."""
    events = reader.close()
    if broken is None:
        return events
    if events and isinstance(events[-1], StreamFailed):
        return [*events[:-1], replace(events[-1], message=broken.message, code=broken.code)]
    return events
