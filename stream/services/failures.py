"""What went wrong between us and a server, as a `StreamFailed`; and which failures may pass by themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stream.events import StreamFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["failure_of_answer", "failure_of_transport", "is_transient"]

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
TRANSIENT_CODES = frozenset({"connection", "unfinished"})
LONGEST_MESSAGE = 500
"""An error page of a proxy is not a message; its first characters say enough."""


def failure_of_answer(status: int, body: bytes | str | Any, headers: Mapping[str, str]) -> StreamFailed:
    """The failure that an HTTP error answer describes.

    Parameters
    ----------
    status : the HTTP status, ≥ 400.
    body : the answer's body, as bytes, text, or JSON already decoded.
    headers : of the answer, with names in lower case or without regard to it.
    """
    value = _decoded(body)
    error = value.get("error", value) if isinstance(value, dict) else value
    fields = error if isinstance(error, dict) else {"message": error}
    message = fields.get("message") or fields.get("detail") or f"the server answered with status {status}"
    code = fields.get("code") or fields.get("type")
    request_id = fields.get("requestId") or fields.get("request_id") or headers.get("x-request-id")
    return StreamFailed(
        message=str(message)[:LONGEST_MESSAGE],
        code=None if code is None else str(code),
        status=status,
        retry_after_ms=_retry_after_ms(fields, headers),
        request_id=None if request_id is None else str(request_id),
    )


def failure_of_transport(error: Exception, *, timed_out: bool) -> StreamFailed:
    """The failure of a connection that could not be made, broke, or gave no answer in time."""
    return StreamFailed(
        message=str(error)[:LONGEST_MESSAGE] or type(error).__name__, code="timeout" if timed_out else "connection"
    )


def is_transient(failure: StreamFailed) -> bool:
    """Whether the same request may succeed when it is sent again. A timeout is not: the user has waited already."""
    if failure.status is not None:
        return failure.status in TRANSIENT_STATUS
    return failure.code in TRANSIENT_CODES


def _decoded(body: Any) -> Any:
    if not isinstance(body, (bytes, str)):
        return body
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _retry_after_ms(fields: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """From the body, else from `retry-after-ms`, else from `retry-after` where it is a number of seconds."""
    for value, factor in (
        (fields.get("retryAfterMs"), 1.0),
        (fields.get("retry_after_ms"), 1.0),
        (headers.get("retry-after-ms"), 1.0),
        (headers.get("retry-after"), 1000.0),
    ):
        try:
            if value is not None and float(value) >= 0.0:
                return float(value) * factor
        except (TypeError, ValueError):
            continue  # An HTTP date: the caller's own backoff is as good.
    return None
