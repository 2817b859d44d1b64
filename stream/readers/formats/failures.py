"""Errors of every format, in JSON or as a client's exception, as `StreamFailed`: message, code, status, wait."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stream.events import StreamFailed
from stream.readers.calls.values import count, listed, number, plain, text_of
from stream.redaction import logged_error
from stream.request_bodies import sendable_text

__all__ = ["LONGEST_MESSAGE", "failed_by", "failure", "retry_after_ms", "unwrap"]

_MS_PER_S = 1000.0
_NO_MESSAGE, _NO_CODE = "Request failed", "UpstreamFailure"
_ERROR_STATUS = range(400, 600)
_WAITS = (("retryAfterMs", 1.0), ("retry_after_ms", 1.0), ("retry_after", _MS_PER_S))
_WAIT_HEADERS = (("retry-after-ms", 1.0), ("retry-after", _MS_PER_S))
_ID_HEADERS = ("x-request-id", "request-id")  # OpenAI's, Anthropic's
_DEEPEST = 4  # objects around an error
LONGEST_MESSAGE = 500  # characters that are kept: a proxy may send a whole page
# Classes of the standard library, httpx, httpx2 (which the providers' packages use), aiohttp and websockets. A timeout
# is also an OSError or a TransportError, so it comes first.
_TRANSPORT_ERRORS = {
    "timeout": {"TimeoutError", "TimeoutException", "APITimeoutError"},
    "connection": {"OSError", "TransportError", "APIConnectionError", "ClientConnectionError", "ClientPayloadError",
                   "IncompleteRead", "ConnectionClosed"},
}  # fmt: skip


def unwrap(value: Any) -> StreamFailed:
    """The failure in an answer or event that reports an error: decoded, or as `bytes` or text.

    The error may be the value itself, or stand under `error`, in a list (Gemini), or in a failed response.
    """
    if isinstance(value, bytes | str):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text.strip()
    value, identity = plain(value), None
    for _ in range(_DEEPEST):
        inner = _inside(value)
        if inner is None:
            break
        identity = _request_id(value) or identity
        value = inner
    failed = failure(value or {}, typed=True)
    return replace(failed, request_id=failed.request_id or identity)


def failure(error: Any, *, typed: bool = False) -> StreamFailed:
    """The failure in a server's error itself: a text or an object; `typed`: its type stands in for a missing code."""
    if not isinstance(error, Mapping):
        return StreamFailed(sendable_text(text_of(error)) or _NO_MESSAGE)
    kind = None if error.get("type") == "error" else error.get("type")  # an event's own type says nothing
    message = next((error[key] for key in ("message", "detail", "error") if error.get(key)), kind)
    param = text_of(error.get("param"))
    if isinstance(message, str) and param and param not in message:  # the field that the words are about
        message = f"{message} (param: {param})"
    code, status = error.get("code"), count(error.get("status"))
    if code is None:
        # Ollama's form, in which a code belongs to an error; others have errors without one.
        has_own_form = any((kind, error.get("message"), error.get("error")))
        code = (kind if typed else None) if has_own_form else _NO_CODE
    return StreamFailed(
        message=sendable_text(text_of(message)) or _NO_MESSAGE,
        code=sendable_text(text_of(code)) or None,
        status=_error_status(code) if status is None else status,
        retry_after_ms=_wait_ms(error),
        request_id=_request_id(error),
    )


def failed_by(error: Exception) -> StreamFailed:
    """The failure that a client's exception reports.

    `openai` and `anthropic` set `body`, `status_code`, `request_id` and `response.headers`, `google-genai` sets
    `details`; other clients set some of them, or none. The server's own words come first: two of the packages put the
    whole body into the exception's text.
    """
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(body, str):  # a proxy's page has no words for the user
        body = None if body.lstrip().startswith("<") else body[:LONGEST_MESSAGE]
    sent = unwrap(body) if isinstance(body, str | Mapping | list) else StreamFailed("")
    headers = getattr(getattr(error, "response", None), "headers", None)
    ids = [headers.get(name) for name in _ID_HEADERS] if headers is not None and hasattr(headers, "get") else ()
    identity = text_of(getattr(error, "request_id", None)) or next((one for one in ids if isinstance(one, str)), None)
    wait_ms = retry_after_ms(headers)
    said = "" if sent.message == _NO_MESSAGE else sent.message
    classes = {kind.__name__ for kind in type(error).__mro__}
    transport = next((code for code, names in _TRANSPORT_ERRORS.items() if classes & names), None)
    return StreamFailed(
        message=said or _message(error) or sent.message or type(error).__name__,
        code=sent.code or text_of(vars(error).get("code")) or transport or type(error).__name__,
        status=_error_status(getattr(error, "status_code", None)) or sent.status,
        retry_after_ms=sent.retry_after_ms if wait_ms is None else wait_ms,
        request_id=identity or sent.request_id,
    )


def retry_after_ms(headers: Any) -> float | None:
    """The wait that an answer's headers ask for, milliseconds; a date is ignored, as there is no clock here."""
    waits = []
    for name, scale in _WAIT_HEADERS:
        with suppress(AttributeError, TypeError, ValueError):
            waits.append((number(float(headers.get(name))), scale))
    return _first_ms(waits)


def _inside(value: Any) -> Any:
    """The error, or the object that has it, one level further in; `None` if this is the error itself."""
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None
    found = (value.get("error"), value.get("response")) if isinstance(value, Mapping) else ()
    return next((inner for inner in map(plain, found) if isinstance(inner, Mapping)), None)


def _error_status(value: Any) -> int | None:
    found = count(value)
    return found if found in _ERROR_STATUS else None


def _wait_ms(error: Mapping[str, Any]) -> float | None:
    waits = [(number(error.get(key)), scale) for key, scale in _WAITS]
    for detail in listed(error.get("details")):  # Gemini: `google.rpc.RetryInfo`
        with suppress(AttributeError, LookupError, TypeError, ValueError):
            waits.append((number(float(detail["retryDelay"].removesuffix("s"))), _MS_PER_S))
    return _first_ms(waits)


def _first_ms(waits: list[tuple[float | None, float]]) -> float | None:
    return next((value * scale for value, scale in waits if value is not None and value >= 0), None)


def _message(error: Exception) -> str:
    """The exception's text with its cause: the `openai` package says only "Connection error."."""
    message, cause = _text(error), _text(error.__cause__ or "")
    return message if not message or not cause or cause in message else f"{message.rstrip('.')}: {cause}"


def _text(error: object) -> str:
    try:
        return str(error) and logged_error(error)
    except Exception:  # noqa: BLE001  (it may hold server data that nests too deep or is not text)
        return ""


def _request_id(error: Any) -> str | None:
    found = (error.get("requestId") or error.get("request_id")) if isinstance(error, Mapping) else None
    return text_of(found) or None
