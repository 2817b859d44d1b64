"""Records a model server's stream; allowed fields, and a search for what was sent, keep secrets out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cues.extras import needed
from stream.errors import MissingFeatureError, StreamError, StreamTypeError
from stream.replay.hiding import Secrets
from stream.replay.recording import Kind, Recording
from stream.request_bodies import sendable
from stream.urls import server_url, shown_url

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
    """Send `request` as JSON to the endpoint `url`, and record every byte of the answer with its time.

    An answer that breaks off is recorded as far as it came. Keys are recorded neither from the headers and the URL nor
    where the server quotes them. `timeout_s` is the longest wait for the connection, and for each read. A `StreamError`
    is raised if `url` is no address, or the server cannot be reached or sends no answer.
    """
    server_url("url", url)
    if not isinstance(request, Mapping):
        raise StreamTypeError(f"request is {request!r:.40}; it must be a JSON object")
    httpx2 = needed("httpx2", "services", "recording needs httpx2", MissingFeatureError)
    sent = sendable(dict(request))
    start_s = time.perf_counter()
    body, reads = bytearray(), []
    try:
        with httpx2.stream("POST", url, json=sent, headers=dict(headers or {}), timeout=timeout_s) as response:
            status, answered = response.status_code, response.headers
            complete = True
            try:
                for data in response.iter_bytes():
                    body += data
                    reads.append((len(data), round((time.perf_counter() - start_s) * 1000.0, 1)))
            except httpx2.HTTPError:
                complete = False  # The bytes so far are the recording of a broken connection.
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        raise StreamError(f"cannot reach {shown_url(url)}: {str(error) or type(error).__name__}") from error
    secrets = Secrets(url, headers or {})
    kept = {name.lower(): secrets.hide_in(value) for name, value in answered.items() if name.lower() in KEPT_HEADERS}
    first = body.lstrip()[:1]
    kind: Kind = "ndjson" if first == b"{" else "json" if first == b"[" else "sse"
    return Recording(
        name="recorded",
        kind=kind,
        body=secrets.hide(bytes(body)),
        status=status,
        reads=tuple(reads),
        headers=kept,
        request=secrets.hide_in_request(sent),
        complete=complete,
    )
