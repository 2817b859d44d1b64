"""Records a model server's stream; allowed fields, and a search for what was sent, keep secrets out."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cues.extras import needed
from stream.checks import header_value
from stream.errors import MissingFeatureError, StreamError, StreamTypeError
from stream.redaction import logged_error
from stream.replay.hiding import Secrets
from stream.replay.recording import Kind, Recording, save_recording
from stream.request_bodies import sendable
from stream.urls import server_url, shown_url

if TYPE_CHECKING:
    import httpx2

__all__ = ["KEPT_HEADERS", "record", "recording"]

logger = logging.getLogger(__name__)

KEPT_HEADERS = frozenset({"content-type", "date", "retry-after", "server", "transfer-encoding", "x-request-id"})
"""Response headers that are recorded; request headers never are."""


def record(
    url: str, request: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, timeout_s: float = 120.0
) -> Recording:
    """Send `request` as JSON to the endpoint `url`, and record every byte of the answer with its time.

    An answer that breaks off is recorded as far as it came. Keys are recorded neither from the headers and the URL nor
    where the server quotes them. `timeout_s` is the longest wait for the connection, and for each read. A `StreamError`
    is raised if `url` is no address, a header cannot be sent, or the server cannot be reached or sends no answer.
    """
    server_url("url", url)
    if not isinstance(request, Mapping):
        raise StreamTypeError(f"request is {request!r:.40}; it must be a JSON object")
    httpx2 = needed("httpx2", "services", "recording needs httpx2", MissingFeatureError)
    sent = sendable(dict(request))
    own = {name: header_value(f"the header {name}", value) for name, value in (headers or {}).items()}
    start_s = time.perf_counter()
    body, reads = bytearray(), []
    try:
        with httpx2.stream("POST", url, json=sent, headers=own, timeout=timeout_s) as response:
            complete = True
            try:
                for data in response.iter_bytes():
                    body += data
                    reads.append((len(data), round((time.perf_counter() - start_s) * 1000.0, 1)))
            except httpx2.HTTPError:
                complete = False  # The bytes so far are the recording of a broken connection.
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        raise StreamError(f"cannot reach {shown_url(url)}: {logged_error(error)}") from error
    return _recorded(url, sent, own, response, bytes(body), reads=tuple(reads), complete=complete)


def _recorded(
    url: str,
    request: Mapping[str, Any],
    headers: Mapping[str, str],
    response: httpx2.Response,
    body: bytes,
    **arrival: Any,
) -> Recording:
    """The recording of a response with this body, without secrets; `arrival` is `reads` and `complete`."""
    secrets = Secrets(url, headers, request)
    answered = ((name.lower(), value) for name, value in response.headers.items())
    first = body.lstrip()[:1]
    kind: Kind = "ndjson" if first == b"{" else "json" if first == b"[" else "sse"
    return Recording(
        name="recorded",
        kind=kind,
        body=secrets.hide(body),
        status=response.status_code,
        headers={name: secrets.hide_in(value) for name, value in answered if name in KEPT_HEADERS},
        request=secrets.hide_in_request(request),
        **arrival,
    )


async def recording(
    reads: AsyncIterator[bytes], response: httpx2.Response, request: Mapping[str, Any], folder: Path
) -> AsyncGenerator[bytes]:
    """The same reads; at their end, also an early one, the folder has a further recording, without secrets."""
    start_s, body, sizes, complete = time.perf_counter(), bytearray(), [], False
    try:
        async for data in reads:
            body += data
            sizes.append((len(data), round((time.perf_counter() - start_s) * 1000.0, 1)))
            yield data
        complete = True
    finally:
        url, headers = str(response.request.url), response.request.headers
        try:
            sent = sendable(dict(request))
            kept = _recorded(url, sent, headers, response, bytes(body), reads=tuple(sizes), complete=complete)
            save_recording(kept, _next_file(folder, kept.kind))
        except (StreamError, OSError) as error:  # the answer goes on without
            logger.warning("no recording: %s", error)


def _next_file(folder: Path, kind: Kind) -> Path:
    taken = {path.name.partition(".")[0] for path in folder.iterdir()}
    number = next(number for number in count(1) if f"{number:05}" not in taken)
    return folder / f"{number:05}.{kind}"
