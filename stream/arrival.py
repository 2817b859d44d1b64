"""When bytes came from the network: a transport for the `openai` client that notes the time of each read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stream.clock import Clock

__all__ = ["TimedTransport"]


class TimedTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that remembers when it last read a piece of a response.

    Attributes
    ----------
    last_read_s : that time on the clock, seconds; `None` before the first read.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.last_read_s: float | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the response's reads are timed."""
        response = await super().handle_async_request(request)
        response.stream = _TimedStream(response.stream, self)
        return response

    def mark(self) -> None:
        """Note that bytes have just come."""
        self.last_read_s = self._clock.now()


class _TimedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, transport: TimedTransport) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._transport.mark()
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
