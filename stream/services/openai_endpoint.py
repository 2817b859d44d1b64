"""Clients of `/v1/chat/completions` and `/v1/responses` through the `openai` package."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from stream.errors import MissingFeatureError
from stream.extras import pip_install
from stream.sendable import sendable
from stream.services.asking import answered
from stream.services.http_clients import shorten_error, trusted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from stream.events import ServiceEvent

__all__ = ["OpenAIEndpoint"]


class OpenAIEndpoint:
    """Client of `{base_url}/chat/completions` or `{base_url}/responses`; the package's own retries are off."""

    def __init__(
        self,
        base_url: str,
        api: Literal["chat", "responses"],
        *,
        api_key: str | None,
        timeout_s: float,
        connect_timeout_s: float,
    ) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingFeatureError(f"a client needs the `services` extra: {pip_install('services')}") from error
        timeout = openai.Timeout(timeout_s, connect=connect_timeout_s)
        http = openai.DefaultAsyncHttpxClient(
            verify=trusted(), timeout=timeout, event_hooks={"response": [shorten_error]}
        )
        # With "none" the package does not take OPENAI_API_KEY from the environment: that key is for OpenAI only.
        self.client = openai.AsyncOpenAI(
            base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=timeout, http_client=http
        )
        self._api: Literal["chat", "responses"] = api
        # The first access imports the package's resources (0.25 s): do it before a request has to wait for it.
        # The typed overloads fit OpenAI's own server only.
        self._resource: Any = self.client.chat.completions if api == "chat" else self.client.responses

    def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`. `tap` gets each decoded chunk."""
        return answered(
            lambda: self._create(sendable(body)), self._api, str(self.client.base_url), tools=tools, tap=tap
        )

    async def close(self) -> None:
        """Close the sockets."""
        await self.client.close()

    async def _create(self, body: Mapping[str, Any]) -> Any:
        known = {name: body[name] for name in ("model", "messages", "input", "stream") if name in body}
        rest = {name: value for name, value in body.items() if name not in known}
        try:
            return await self._resource.create(**known, extra_body=rest)
        except json.JSONDecodeError:
            return None  # a web page instead of an answer
