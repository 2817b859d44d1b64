"""A client of each API: the body of a request in, the events of one answer out; and the HTTP clients of all."""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from cues.extras import needed
from stream.errors import MissingFeatureError, StreamValueError
from stream.events import StreamFailed
from stream.readers.ollama_reader import OllamaReader
from stream.request_bodies import sendable
from stream.services.asking import PackageEndpoint, failure_of_answer, failure_of_transport

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    import httpx2

    from stream.events import ServiceEvent
    from stream.whole_answers import Api

__all__ = ["GeminiEndpoint", "OllamaEndpoint", "OpenAIEndpoint", "http_client"]

LONGEST_PAGE = 1 << 16
"""Bytes of an error page that are read, before it is decompressed."""
# Class, extra, and the beginning of the error where the package is missing.
_PACKAGES = {
    "openai": ("AsyncOpenAI", "services", "a client needs the `services` extra"),
    "anthropic": ("AsyncAnthropic", "anthropic", "Anthropic needs its extra"),
}
# Package, resource, and the fields that its `create` names; the typed overloads fit the providers' own servers only.
_RESOURCES: Mapping[Api, tuple[str, str, tuple[str, ...]]] = {
    "chat": ("openai", "chat.completions", ("model", "messages", "stream")),
    "responses": ("openai", "responses", ("model", "input", "stream")),
    "anthropic": ("anthropic", "messages", ("model", "messages", "max_tokens", "stream")),
}
_CONFIG = ("systemInstruction", "tools", "toolConfig")


class OpenAIEndpoint(PackageEndpoint):
    """Client through `openai`, or through `anthropic`, which is built alike; the packages' own retries are off."""

    def __init__(
        self, api: Api, url: str, tap: Callable[[Any], None] | None, *, api_key: str | None, waits: Mapping[str, float]
    ) -> None:
        name, resource, self._named = _RESOURCES[api]
        client, extra, purpose = _PACKAGES[name]
        package = needed(name, extra, purpose, MissingFeatureError)
        timeout = package.Timeout(**waits)
        hooks = {"response": [_shorten_error]}
        http = package.DefaultAsyncHttpxClient(verify=_trusted(), timeout=timeout, event_hooks=hooks)
        # With "none" the package does not take a key from the environment: that key is for the provider only.
        self.client = getattr(package, client)(
            base_url=url, api_key=api_key or "none", max_retries=0, timeout=timeout, http_client=http
        )
        # The first access imports the package's resources (0.25 s): do it before a request has to wait for it.
        self._resource = attrgetter(resource)(self.client)
        super().__init__(api, str(self.client.base_url), tap)

    async def _send(self, body: dict[str, Any]) -> Any:
        if self._api != "chat":
            body["stream"] = True  # only Chat Completions' whole answers are read
        named = {name: body.pop(name) for name in self._named if name in body}
        try:
            return await self._resource.create(**named, extra_body=body)
        except json.JSONDecodeError:
            return None  # a web page instead of an answer


class GeminiEndpoint(PackageEndpoint):
    """Client of `{base_url}/v1beta/models/…`; never of Vertex AI, whatever the environment says."""

    def __init__(
        self,
        url: str,
        model: str,
        tap: Callable[[Any], None] | None,
        *,
        api_key: str | None,
        waits: Mapping[str, float],
    ) -> None:
        super().__init__("gemini", url, tap)
        genai = needed("google.genai", "google", "Gemini needs its extra", MissingFeatureError)
        httpx: Any = import_module("httpx" if int(genai.__version__.split(".")[0]) < 3 else "httpx2")
        limits = httpx.Timeout(**waits).as_dict()

        async def limit(request: Any) -> None:
            request.extensions["timeout"] = limits  # the package switches the client's own limits off

        # With a client of its own the package neither waits 1 to 10 s after a refused connection nor asks again.
        self._http = httpx.AsyncClient(
            verify=_trusted(), event_hooks={"request": [limit], "response": [_shorten_error]}
        )
        self._types, self._model = genai.types, model
        options = self._types.HttpOptions(base_url=url, httpx_async_client=self._http)
        # With "none" the package does not take a key from the environment: that key is for Google only.
        self.client = genai.Client(vertexai=False, api_key=api_key or "none", http_options=options)
        self._stream = self.client.aio.models.generate_content_stream

    async def _send(self, body: dict[str, Any]) -> Any:
        """Raises `StreamValueError` if the package does not take a part of the body."""
        config = {name: body.pop(name) for name in _CONFIG if name in body}
        config |= {"automaticFunctionCalling": {"disable": True}, **body.pop("generationConfig", {})}
        types, contents = self._types, body.pop("contents")
        try:  # from JSON, in which bytes are base64
            said = [types.Content.model_validate_json(json.dumps(content)) for content in contents]
            options = types.GenerateContentConfig.model_validate_json(json.dumps(config))
        except ValueError as error:
            raise StreamValueError(f"the request has no form that Gemini takes: {error}") from error
        if body:
            options.http_options = types.HttpOptions(extra_body=body)
        return await self._stream(model=self._model, contents=said, config=options)

    async def close(self) -> None:
        """Close the sockets."""
        await self._http.aclose()
        self.client.close()


class OllamaEndpoint:
    """Client of Ollama's own `{root}/api/chat`, which sends JSON lines; `tap` gets the bytes of each read."""

    def __init__(self, root: str, tap: Callable[[Any], None] | None, http: httpx2.AsyncClient) -> None:
        self._url, self._tap, self._http = f"{root}/api/chat", tap, http

    async def ask(self, body: Mapping[str, Any], tools: Sequence[str] | None) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`."""
        import httpx2

        reader = OllamaReader(tools=tools)
        try:
            async with self._http.stream("POST", self._url, json=sendable(body)) as response:
                if response.status_code >= 400:
                    yield failure_of_answer(response.status_code, await response.aread(), response.headers)
                    return
                async for data in response.aiter_bytes():
                    if self._tap is not None:
                        self._tap(data)
                    for event in reader.feed(data):
                        yield event
                        if isinstance(event, StreamFailed):
                            return
            last = reader.close()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            timed_out = isinstance(error, httpx2.ReadTimeout)
            last = reader.fail(failure_of_transport(error, url=self._url, timed_out=timed_out))
        for event in last:
            yield event

    async def close(self) -> None:
        """Nothing: the connection closes its HTTP client."""


def http_client(*, api_key: str | None, waits: Mapping[str, float]) -> httpx2.AsyncClient:
    """The HTTP client for all requests outside the providers' packages; `waits` are arguments of a `Timeout`."""
    package = needed("httpx2", "services", "a client needs the `services` extra", MissingFeatureError)
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    hooks = {"response": [_shorten_error]}
    client: httpx2.AsyncClient = package.AsyncClient(
        headers=headers, timeout=package.Timeout(**waits), verify=_trusted(), event_hooks=hooks
    )
    return client


@cache
def _trusted() -> ssl.SSLContext:
    """The trusted certificates, shared by all connections: loading them takes 40 ms."""
    import httpx2

    return httpx2.create_ssl_context()


async def _shorten_error(response: Any) -> None:
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
