"""Client of `/v1/chat/completions`: server-sent events from the `openai` package, parsed by `stream.read`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stream.errors import MissingFeatureError
from stream.events import Finish, Usage
from stream.extras import pip_install
from stream.reading import read
from stream.request_bodies import bodies_unlogged
from stream.services.failures import failure_of_answer, failure_of_transport
from stream.services.ollama_endpoint import trusted
from stream.services.sendable import sendable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from openai import AsyncOpenAI

    from stream.events import Event

__all__ = ["OpenAIEndpoint", "openai_client"]


def openai_client(base_url: str, *, api_key: str | None, timeout_s: float, connect_timeout_s: float) -> AsyncOpenAI:
    """The `openai` package's client, with its own retries switched off."""
    try:
        import openai
    except ImportError as error:
        raise MissingFeatureError(f"a client needs the `services` extra: {pip_install('services')}") from error
    # With "none" the package does not take OPENAI_API_KEY from the environment: that key is for OpenAI only.
    timeout = openai.Timeout(timeout_s, connect=connect_timeout_s)
    http = openai.DefaultAsyncHttpxClient(verify=trusted(), timeout=timeout)
    return openai.AsyncOpenAI(
        base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=timeout, http_client=http
    )


class OpenAIEndpoint:
    """Client of `{base_url}/chat/completions`."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._base_url = str(client.base_url)
        # The first access imports the package's resources (0.25 s): do it before a request has to wait for it.
        # The typed overloads fit OpenAI's own server only.
        self._completions: Any = client.chat.completions

    async def ask(
        self, body: Mapping[str, Any], tools: Sequence[str] | None, tap: Callable[[Any], None] | None
    ) -> AsyncGenerator[Event, None]:
        """The events of one answer; every failure is a `StreamFailed`. `tap` gets each decoded chunk."""
        import openai

        try:
            answer = await self._create(sendable(body))
        except openai.APIStatusError as error:
            yield failure_of_answer(error.status_code, error.body, error.response.headers)
            return
        except openai.APIError as error:
            yield failure_of_transport(error.__cause__ or error, url=self._base_url, timed_out=_waited(error))
            return
        chunks = answer if body["stream"] else _whole(answer)
        held: list[Event] = []  # the `Finish`: the usage comes after it but is yielded first, as on `/api/chat`
        try:
            async for event in read(chunks if tap is None else _tapped(chunks, tap), tools=tools):
                if held and not isinstance(event, Usage):
                    yield held.pop()
                if isinstance(event, Finish):
                    held.append(event)
                else:
                    yield event
            if held:
                yield held.pop()
        finally:
            if body["stream"]:
                await answer.close()

    async def _create(self, body: Mapping[str, Any]) -> Any:
        known = {name: body[name] for name in ("model", "messages", "stream")}
        rest = {name: value for name, value in body.items() if name not in known}
        try:
            with bodies_unlogged():
                return await self._completions.create(**known, extra_body=rest)
        except json.JSONDecodeError:
            return None  # a web page instead of an answer


def _waited(error: Exception) -> bool:
    """Whether the answer timed out; a timeout while connecting does not count."""
    import openai

    return isinstance(error, openai.APITimeoutError) and type(error.__cause__).__name__ != "ConnectTimeout"


async def _whole(answer: Any) -> AsyncGenerator[Any, None]:
    """An answer that was not streamed as a stream of one chunk; no chunk if it is no answer."""
    if hasattr(answer, "choices"):
        yield answer


async def _tapped(chunks: AsyncIterator[Any], tap: Callable[[Any], None]) -> AsyncGenerator[Any, None]:
    async for chunk in chunks:
        tap(chunk)
        yield chunk
