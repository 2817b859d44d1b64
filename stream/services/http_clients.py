"""Shared by the HTTP clients of all endpoints: certificates, and a bound on error pages."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError
from stream.extras import pip_install

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = ["http_client", "shorten_error", "trusted"]

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
