"""The HTTP client of both endpoints: the body of a request in, the events of one answer out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cues.extras import needed
from stream.errors import MissingFeatureError
from stream.events import Event, Finish, ServiceEvent, StreamFailed, Usage
from stream.readers.formats.any_format import FORMATS
from stream.readers.formats.failures import LONGEST_MESSAGE, retry_after_ms, unwrap
from stream.readers.options import Start, checked_start
from stream.redaction import logged_error
from stream.request_bodies import asks_for_data, sendable
from stream.services.addresses import Api, is_near
from stream.urls import shown_url

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = ["Endpoint"]

PATHS: dict[Api, str] = {"chat": "/chat/completions", "ollama": "/api/chat"}
LONGEST_ERROR = 1 << 16
"""Bytes of an error page that are read, before it is decompressed."""
LONGEST_PAGE = 1 << 22
WAIT_FOR_END_S = 0.1
"""Longest wait for the end of the HTTP answer after `[DONE]`; a connection that has ended can be used again."""

_DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]\s*$")


class Endpoint:
    """A server's endpoint, asked through httpx2; redirects are not followed. `tap` gets the bytes of each read."""

    def __init__(
        self,
        api: Api,
        url: str,
        tap: Callable[[bytes], None] | None,
        *,
        api_key: str | None,
        waits: Mapping[str, float],
        start: Start,
    ) -> None:
        package = needed("httpx2", "services", "a client needs the `services` extra", MissingFeatureError)
        self._start = checked_start(start)
        self._api, self._url, self._tap, self._has_key = api, f"{url}{PATHS[api]}", tap, bool(api_key)
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http: httpx2.AsyncClient = package.AsyncClient(
            headers=headers, timeout=package.Timeout(**waits), verify=_trusted()
        )

    async def close(self) -> None:
        """Close the sockets."""
        await self._http.aclose()

    async def page(self, method: str, url: str, *, until_s: float, **fields: Any) -> dict[str, Any]:
        """A JSON page of the server; empty if it cannot be had before `until_s`.

        `until_s` is a time of the running loop, seconds.
        """
        import httpx2

        page: Any = None
        if self._http.is_closed:
            return {}
        with suppress(httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError, TimeoutError):
            async with asyncio.timeout_at(until_s), self._http.stream(method, url, **fields) as response:
                page = json.loads(await _begin(response, LONGEST_PAGE)) if response.status_code == 200 else None
        return page if isinstance(page, dict) else {}

    async def ask(self, body: Mapping[str, Any], tools: Sequence[str] | None) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`, and the usage comes before the `Finish`."""
        import httpx2

        if self._http.is_closed:  # during the wait for a retry, or while a tool ran
            yield self._closed()
            return
        reader = FORMATS[self._api](tools, calls_in_text=not asks_for_data(body), start=self._start)
        reached = False
        finish: list[Event] = []
        try:
            async with self._http.stream("POST", self._url, json=sendable(body)) as response:
                reached = True
                if refused := await self._refusal(response):
                    yield refused
                    return
                reads, end = response.aiter_bytes(), b""
                async for data in reads:
                    if self._tap is not None:
                        self._tap(data)
                    for event in _usage_first(reader.feed(data), finish):
                        yield event
                        if isinstance(event, StreamFailed):
                            return
                    end = (end + data)[-32:]
                    if _DONE.search(end):
                        break
                for event in _usage_first(reader.close(), finish, is_end=True):
                    yield event
                with suppress(TimeoutError, httpx2.HTTPError):
                    async with asyncio.timeout(WAIT_FOR_END_S):
                        async for _ in reads:
                            pass
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Of an answer that has its finish reason only the transport's end is missing.
            last = reader.close() if finish else reader.fail(self._broken(error, reached=reached))
            for event in _usage_first(last, finish, is_end=True):
                yield event

    async def _refusal(self, response: httpx2.Response) -> StreamFailed | None:
        """The failure in an answer that is no stream: an error, a redirect or a web page."""
        status, where, headers = response.status_code, shown_url(self._url), response.headers
        if status >= 400:
            failed, note = unwrap(await _begin(response, LONGEST_ERROR)), ""
            if status == 404:
                note = f" (HTTP 404 from {where})"
            elif status in (401, 403) and not self._has_key:
                note = f" (no key was sent to {urlsplit(self._url).hostname}; `api_key` or --api-key-env gives one)"
            return replace(
                failed,
                message=failed.message[:LONGEST_MESSAGE] + note,
                status=status,
                retry_after_ms=retry_after_ms(headers) if failed.retry_after_ms is None else failed.retry_after_ms,
                request_id=failed.request_id or headers.get("x-request-id") or headers.get("request-id"),
            )
        if status >= 300:
            target = shown_url(headers.get("location") or "nowhere")
            return StreamFailed(f"{where} redirects to {target}; redirects are not followed", "redirect", status)
        if headers.get("content-type", "").startswith("text/html"):
            return StreamFailed(f"{where} answered with a web page; is it the address of an API?", "web_page", status)
        return None

    def _broken(self, error: Exception, *, reached: bool) -> StreamFailed:
        """The failure of a connection that was refused, broke or timed out; the URL is without user and password."""
        import httpx2

        if self._http.is_closed:
            return self._closed()
        # A server that could not be reached has not been silent.
        code = "timeout" if isinstance(error, httpx2.ReadTimeout) else "connection"
        fault = "lost the connection to" if reached else "cannot reach"
        fault = "no answer in time from" if code == "timeout" else fault
        why = logged_error(error)[:LONGEST_MESSAGE]
        hint = "; is the server running?" if fault == "cannot reach" and is_near(self._url) else ""
        return StreamFailed(f"{fault} {shown_url(self._url)}: {why}{hint}", code)

    def _closed(self) -> StreamFailed:
        """The failure of a connection that we closed ourselves: no retry, and no fault of the server."""
        return StreamFailed(f"the connection to {shown_url(self._url)} was closed", "closed")


def _usage_first(events: Iterable[Event], finish: list[Event], *, is_end: bool = False) -> Iterable[Event]:
    """The events, in which a `Usage` after a `Finish` comes before it; `finish` has one that is held back."""
    for event in events:
        if finish and not isinstance(event, Usage):
            yield finish.pop()
        if isinstance(event, Finish):
            finish.append(event)
        else:
            yield event
    if is_end and finish:
        yield finish.pop()


async def _begin(response: httpx2.Response, longest: int) -> bytes:
    """The body, or its beginning: a server may never end it."""
    page = bytearray()
    async for data in response.aiter_bytes():
        page += data
        if len(page) > longest:
            break
    return bytes(page[:longest])


@cache
def _trusted() -> ssl.SSLContext:
    """The trusted certificates, shared by all connections: loading them takes 40 ms."""
    import httpx2

    return httpx2.create_ssl_context()
