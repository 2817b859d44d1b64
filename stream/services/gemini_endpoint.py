"""Client of Gemini's `:streamGenerateContent` through the `google-genai` package."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError, StreamValueError
from stream.extras import pip_install
from stream.sendable import sendable
from stream.services.asking import answered
from stream.services.http_clients import shorten_error, trusted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from stream.events import ServiceEvent

__all__ = ["GeminiEndpoint"]

_CONFIG = ("systemInstruction", "tools", "toolConfig")


class GeminiEndpoint:
    """Client of `{base_url}/v1beta/models/…`; never of Vertex AI, whatever the environment says."""

    def __init__(
        self, base_url: str, model: str, *, api_key: str | None, timeout_s: float, connect_timeout_s: float
    ) -> None:
        try:
            from google import genai
            from google.genai import types
        except ImportError as error:
            raise MissingFeatureError(f"Gemini needs its extra: {pip_install('google')}") from error
        httpx: Any = import_module("httpx" if int(genai.__version__.split(".")[0]) < 3 else "httpx2")
        waits = httpx.Timeout(timeout_s, connect=connect_timeout_s).as_dict()

        async def limit(request: Any) -> None:
            request.extensions["timeout"] = waits  # the package switches the client's own limits off

        # With a client of its own the package neither waits 1 to 10 s after a refused connection nor asks again.
        self._http = httpx.AsyncClient(verify=trusted(), event_hooks={"request": [limit], "response": [shorten_error]})
        options = types.HttpOptions(base_url=base_url, httpx_async_client=self._http)
        # With "none" the package does not take a key from the environment: that key is for Google only.
        self.client = genai.Client(vertexai=False, api_key=api_key or "none", http_options=options)
        self._types, self._url, self._model = types, base_url, model
        self._stream: Any = self.client.aio.models.generate_content_stream

    def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`. `tap` gets each chunk.

        Raises `StreamValueError` if the package does not take a part of the body.
        """
        sent = sendable(body)
        config = {name: sent.pop(name) for name in _CONFIG if name in sent}
        config |= {"automaticFunctionCalling": {"disable": True}, **sent.pop("generationConfig", {})}
        contents, extra = sent.pop("contents"), sent
        types = self._types
        try:  # from JSON, in which bytes are base64
            fields = {
                "contents": [types.Content.model_validate_json(json.dumps(content)) for content in contents],
                "config": types.GenerateContentConfig.model_validate_json(json.dumps(config)),
            }
        except ValueError as error:
            raise StreamValueError(f"the request has no form that Gemini takes: {error}") from error
        if extra:
            fields["config"].http_options = types.HttpOptions(extra_body=extra)
        return answered(lambda: self._stream(model=self._model, **fields), "gemini", self._url, tools=tools, tap=tap)

    async def close(self) -> None:
        """Close the sockets."""
        await self._http.aclose()
        self.client.close()
