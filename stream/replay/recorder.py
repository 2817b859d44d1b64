"""Records a model server's stream; a list of allowed fields keeps secrets out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stream.errors import MissingFeatureError, StreamError
from stream.extras import pip_install
from stream.replay.recording import Kind, Recording

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KEPT_HEADERS", "record"]

KEPT_HEADERS = frozenset({"content-type", "date", "retry-after", "server", "transfer-encoding", "x-request-id"})
"""Response headers that are recorded; request headers never are."""


def record(
    url: str,
    request: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> Recording:
    """Send `request` as JSON to `url`, and record every byte of the answer with its time.

    An answer that breaks off is recorded as far as it came.

    Parameters
    ----------
    url : str
        The full URL of the endpoint, such as `http://localhost:11434/v1/chat/completions`.
    request : Mapping[str, Any]
        The JSON body.
    headers : Mapping[str, str] or None
        More request headers (an API key, say); they are not recorded.
    timeout_s : float
        Longest wait for the connection, and for each read, seconds.

    Raises
    ------
    StreamError
        If the server cannot be reached, or sends no answer.
    """
    try:
        import httpx2
    except ImportError as error:
        raise MissingFeatureError(f"recording needs httpx2: {pip_install('services')}") from error
    start_s = time.perf_counter()
    body, reads = bytearray(), []
    try:
        with httpx2.stream("POST", url, json=dict(request), headers=dict(headers or {}), timeout=timeout_s) as response:
            status, answered = response.status_code, response.headers
            complete = True
            try:
                for data in response.iter_bytes():
                    body += data
                    reads.append((len(data), round((time.perf_counter() - start_s) * 1000.0, 1)))
            except httpx2.HTTPError:
                complete = False  # The bytes so far are the recording of a broken connection.
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise StreamError(f"cannot reach {_without_secrets(url)}: {str(error) or type(error).__name__}") from error
    kept = {name.lower(): value for name, value in answered.items() if name.lower() in KEPT_HEADERS}
    kind: Kind = "ndjson" if body.lstrip()[:1] == b"{" else "sse"
    return Recording(
        name="recorded",
        kind=kind,
        body=bytes(body),
        status=status,
        reads=tuple(reads),
        headers=kept,
        request=request,
        complete=complete,
    )


def _without_secrets(url: str) -> str:
    """The URL without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
