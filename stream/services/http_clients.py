"""Shared by the HTTP clients of all endpoints: certificates, and a bound on error pages."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from cues.extras import needed

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import httpx2

__all__ = ["http_client", "shorten_error", "trusted"]

LONGEST_PAGE = 1 << 16
"""Bytes of an error page that are read, before it is decompressed."""


def http_client(*, api_key: str | None, waits: Mapping[str, float]) -> httpx2.AsyncClient:
    """The HTTP client for all requests outside the providers' packages; `waits` are arguments of a `Timeout`."""
    package = needed("httpx2", "a client needs the `services` extra", "services")
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    hooks = {"response": [shorten_error]}
    client: httpx2.AsyncClient = package.AsyncClient(
        headers=headers, timeout=package.Timeout(**waits), verify=trusted(), event_hooks=hooks
    )
    return client


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
