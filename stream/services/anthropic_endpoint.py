"""Client of `/v1/messages` through the `anthropic` package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError
from stream.extras import pip_install
from stream.sendable import sendable
from stream.services.asking import answered
from stream.services.http_clients import shorten_error, trusted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from stream.events import ServiceEvent

__all__ = ["AnthropicEndpoint"]


class AnthropicEndpoint:
    """Client of `{base_url}/v1/messages`; the package's own retries are off."""

    def __init__(self, base_url: str, *, api_key: str | None, timeout_s: float, connect_timeout_s: float) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise MissingFeatureError(f"Anthropic needs its extra: {pip_install('anthropic')}") from error
        timeout = anthropic.Timeout(timeout_s, connect=connect_timeout_s)
        http = anthropic.DefaultAsyncHttpxClient(
            verify=trusted(), timeout=timeout, event_hooks={"response": [shorten_error]}
        )
        # With "none" the package does not look for keys in the environment: those are for Anthropic only.
        self.client = anthropic.AsyncAnthropic(
            base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=timeout, http_client=http
        )
        self._messages: Any = self.client.messages  # the typed overloads know no further fields

    def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; every failure is a `StreamFailed`. `tap` gets each event."""
        sent = sendable(body)
        known = {name: sent.pop(name) for name in ("model", "messages", "max_tokens")}
        fields = {**known, "stream": True, "extra_body": {**sent, "stream": True}}
        url = str(self.client.base_url)
        return answered(lambda: self._messages.create(**fields), "anthropic", url, tools=tools, tap=tap)

    async def close(self) -> None:
        """Close the sockets."""
        await self.client.close()
