"""Records a model server's stream; allowed fields, and a search for what was sent, keep secrets out."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from cues.extras import needed
from stream.errors import MissingFeatureError, StreamError
from stream.replay.hiding import Secrets
from stream.replay.recording import Kind, Recording
from stream.request_bodies import sendable
from stream.urls import server_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["KEPT_HEADERS", "record", "record_session"]

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


def record_session(
    url: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> Recording:
    """Send `messages` over a WebSocket (Realtime, Live), and record what the server sends until its turn is over.

    The parameters, errors, and what is kept out, are as in `record`. The first message waits for nothing; each further
    one waits for the answer to the first.
    """
    server_url("url", url, ("ws", "wss"))
    client = needed("websockets.sync.client", "openai", "recording needs websockets", MissingFeatureError)
    from websockets.exceptions import WebSocketException

    start_s = time.perf_counter()
    secrets = Secrets(url, headers or {})
    body, reads = bytearray(), []
    try:
        with client.connect(
            url, additional_headers=dict(headers or {}), open_timeout=timeout_s, max_size=None
        ) as socket:
            waiting = [json.dumps(sendable(dict(message))) for message in messages]
            socket.send(waiting.pop(0))
            message: dict[str, Any] = {}
            while not _is_over(message):
                data = socket.recv(timeout=timeout_s)
                at_ms = round((time.perf_counter() - start_s) * 1000.0, 1)
                message = _decoded(data, url)
                line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                reads.append((len(line), at_ms))
                body += secrets.hide(line)
                while waiting and _is_set_up(message):
                    socket.send(waiting.pop(0))
    except (OSError, WebSocketException, ValueError) as error:
        raise StreamError(f"cannot record {shown_url(url)}: {str(error) or type(error).__name__}") from error
    return Recording(
        name="recorded",
        kind="jsonl",
        body=bytes(body),
        reads=tuple(reads),
        request={"messages": [secrets.hide_in_request(sendable(dict(message))) for message in messages]},
    )


def _decoded(data: str | bytes, url: str) -> dict[str, Any]:
    message = json.loads(data)
    if not isinstance(message, dict):
        raise StreamError(f"cannot record {shown_url(url)}: it sent {message!r:.40}; it must be a JSON object")
    return message


def _is_set_up(message: Mapping[str, Any]) -> bool:
    return message.get("type") == "session.updated" or "setupComplete" in message


def _is_over(message: Mapping[str, Any]) -> bool:
    """Whether the server's turn is over: it has answered, called a tool, or refused."""
    content = message.get("serverContent")
    turn_is_complete = isinstance(content, dict) and bool(content.get("turnComplete"))
    return message.get("type") in ("response.done", "error") or "toolCall" in message or turn_is_complete
