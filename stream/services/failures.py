"""Errors of a server or a connection as `StreamFailed`, and which of them are transient."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stream.events import StreamFailed
from stream.readers.failures import retry_after_ms, unwrap

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["failure_of_answer", "failure_of_transport", "is_transient"]

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
TRANSIENT_CODES = frozenset({"connection", "unfinished"})
LONGEST_MESSAGE = 500
"""Characters of a message that are kept: a proxy may send a whole error page."""


def failure_of_answer(status: int, body: bytes | str | Any, headers: Mapping[str, str]) -> StreamFailed:
    """The failure in an HTTP error response.

    `body` may be decoded JSON. Names in `headers` are in lower case, or the mapping ignores case.
    """
    parsed = unwrap(body)
    return replace(
        parsed,
        message=parsed.message[:LONGEST_MESSAGE],
        status=status,
        retry_after_ms=retry_after_ms(headers) if parsed.retry_after_ms is None else parsed.retry_after_ms,
        request_id=parsed.request_id or headers.get("x-request-id"),
    )


def failure_of_transport(error: BaseException, *, url: str, timed_out: bool) -> StreamFailed:
    """The failure of a connection that was refused, broke or timed out; user, password and query are left out."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    what = "no answer in time from" if timed_out else "cannot reach"
    why = str(error)[:LONGEST_MESSAGE] or type(error).__name__
    return StreamFailed(message=f"{what} {address}: {why}", code="timeout" if timed_out else "connection")


def is_transient(failure: StreamFailed) -> bool:
    """Whether the same request may succeed if repeated. A timeout is not transient: the user has waited already."""
    if failure.status is not None:
        return failure.status in TRANSIENT_STATUS
    return failure.code in TRANSIENT_CODES
