"""Errors of a server or a connection as `StreamFailed`, and which of them are transient."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream.events import StreamFailed
from stream.readers.failures import failed_by, retry_after_ms, unwrap
from stream.urls import shown_url

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["failure_of_answer", "failure_of_client", "failure_of_transport", "is_transient"]

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
# In a stream that began with HTTP 200, a provider's code stands for the status: Anthropic's error types, then OpenAI's.
TRANSIENT_CODES = frozenset({
    *("connection", "unfinished"),
    *("overloaded_error", "rate_limit_error", "api_error", "rate_limit_exceeded", "server_error"),
})  # fmt: skip
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
        request_id=parsed.request_id or headers.get("x-request-id") or headers.get("request-id"),
    )


def failure_of_client(error: Exception, url: str) -> StreamFailed | None:
    """The failure in an exception of a provider's package; `None` if the exception reports none, such as a mistake."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(status, int) and hasattr(error, "response"):
        body = error.body if hasattr(error, "body") else getattr(error, "details", None)
        return failure_of_answer(status, body, getattr(error.response, "headers", None) or {})
    failed = failed_by(error)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if failed.code not in ("connection", "timeout") and not kinds & {"APIError", "HTTPError", "InvalidURL"}:
        return None
    # The time to connect does not count as a silence of the server.
    never_connected = any(type(one).__name__ == "ConnectTimeout" for one in (error, error.__cause__))
    return failure_of_transport(
        error.__cause__ or error, url=url, timed_out=failed.code == "timeout" and not never_connected
    )


def failure_of_transport(error: BaseException, *, url: str, timed_out: bool) -> StreamFailed:
    """The failure of a connection that was refused, broke or timed out; user, password and query are left out."""
    fault = "no answer in time from" if timed_out else "cannot reach"
    why = str(error)[:LONGEST_MESSAGE] or type(error).__name__
    return StreamFailed(message=f"{fault} {shown_url(url)}: {why}", code="timeout" if timed_out else "connection")


def is_transient(failure: StreamFailed) -> bool:
    """Whether the same request may succeed if repeated. A timeout is not transient: the user has waited already."""
    if failure.status is not None:
        return failure.status in TRANSIENT_STATUS
    return failure.code in TRANSIENT_CODES
