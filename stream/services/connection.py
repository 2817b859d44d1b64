"""One interface over Chat Completions and Ollama's own endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack
from urllib.parse import urlsplit

from stream.checks import header_value
from stream.errors import StreamTypeError
from stream.events import ServiceEvent, StreamFailed, ToolsLeftOut
from stream.readers.options import Start
from stream.redaction import logged_list, logged_name
from stream.services.addresses import (
    CLOUD_HOSTS,
    Api,
    api_and_address,
    cloud_address,
    default_model,
    key_for,
    local_address,
    normalize_model,
)
from stream.services.chat_request import ChatFields, Message, chat_body, check_known, check_request, with_guidance
from stream.services.endpoint import Endpoint
from stream.services.models import (
    ModelCapabilities,
    capabilities_of,
    guidance,
    too_old,
    translate_tools,
    with_server_word,
)
from stream.services.retrying import Part, Retries, refused_part, with_retries
from stream.services.tool import ToolLike, as_tools, tool_choice_field

__all__ = ["Connection", "connect"]

LONGEST_LEARNING_S = 3.0
"""Longest wait for what a server says of its model: a turn may wait for it, and no limit of a turn holds yet."""

logger = logging.getLogger(__name__)


def connect(
    base_url: str | None = None,
    model: str | None = None,
    *,
    api: Literal["auto", "chat", "ollama"] = "auto",
    api_key: str | None = None,
    capabilities: ModelCapabilities | None = None,
    overrides: Path | str | Sequence[Mapping[str, Any]] | None = None,
    guide: bool = False,
    usage: bool = True,
    temperature: float | None = None,
    retries: Retries | None = None,
    timeout_s: float = 120.0,
    connect_timeout_s: float = 5.0,
    tap: Callable[[bytes], None] | None = None,
    start: Start = "text",
) -> Connection:
    """A connection to one model of one server. It sends nothing until `chat` or `learn`.

    Parameters
    ----------
    base_url : str or None
        With or without `/v1` or `/api`, such as `http://localhost:11434`. `None` is the Ollama of this machine
        (`OLLAMA_LOCAL_BASE`, else `OLLAMA_HOST`, else `http://127.0.0.1:11434`); `"cloud"` is Ollama's cloud
        (`OLLAMA_CLOUD_HOST`, else `https://ollama.com`).
    model : str or None
        Name; names of cloud models are rewritten as the server expects them. `None` takes `ACTOR_MODEL`, else
        `qwen3-coder:480b`.
    api : {"auto", "chat", "ollama"}
        `"chat"` is OpenAI-compatible Chat Completions, `"ollama"` is `/api/chat`; `"auto"` takes the latter for
        Ollama's cloud alone.
    api_key : str or None
        `None` takes `OLLAMA_API_KEY` for Ollama's cloud, `OPENAI_API_KEY` for OpenAI, `ANTHROPIC_API_KEY` for
        Anthropic, `GEMINI_API_KEY` or `GOOGLE_API_KEY` for Google; no key for other hosts, and over plain
        http none but the cloud's, if `OLLAMA_CLOUD_HOST` says so. White space around a key is not part of it.
    capabilities : ModelCapabilities or None
        The model's abilities with tools; `None` looks them up with `capabilities_of`.
    overrides : Path, str, Sequence[Mapping] or None
        A file of `[[family]]` entries, or the entries, that override the table.
    guide, usage : bool
        Whether to add guidance about the tools to the system prompt; whether to ask the OpenAI-compatible endpoint for
        token counts, until it refuses.
    temperature : float or None
        Sampling temperature of every answer, ≥ 0, unless `chat` is given another.
    retries : Retries or None
        When to repeat a request that fails before its first event; `None` takes the defaults.
    timeout_s, connect_timeout_s : float
        Longest wait for the next bytes, and for the connection, seconds.
    tap : Callable or None
        Gets the bytes of each read before they are parsed.
    start : {"text", "reasoning"}
        `"reasoning"` if the model's prompt opens a block of thoughts and the server does not parse them, so that
        answers begin with thoughts and only the block's end comes; see `stream.OpenAIReader`.

    Raises
    ------
    StreamValueError
        If the URL is not http(s), the model's name is empty, `api` or `start` is unknown, or no HTTP header can hold
        the key.
    MissingFeatureError
        If the `services` extra is not installed.
    """
    asks_cloud = base_url == "cloud"
    address = cloud_address() if asks_cloud else local_address() if base_url is None else base_url
    kind, root, url = api_and_address(address, "ollama" if asks_cloud and api == "auto" else api)
    host = urlsplit(url).hostname or ""
    is_private = asks_cloud or url.startswith("https:")
    asks_cloud = asks_cloud or host in CLOUD_HOSTS
    name = normalize_model(default_model() if model is None else model, "cloud" if asks_cloud else "local")
    known = capabilities or capabilities_of(name, overrides)
    key = header_value("api_key", api_key or "") or (key_for(host, asks_cloud=asks_cloud) if is_private else None)
    waits = {"timeout": timeout_s, "connect": connect_timeout_s}
    endpoint = Endpoint(kind, url, tap, api_key=key, waits=waits, start=start)
    options: dict[str, Any] = {"guide": guide, "usage": usage, "temperature": temperature}
    return Connection(kind, root, name, known, endpoint, retries or Retries(), **options)


@dataclass(slots=True, eq=False)
class Connection:
    """One model of one server; made by `connect`.

    Attributes
    ----------
    api : {"chat", "ollama"}
    base_url : str
        Address of the server, without the endpoint's path.
    model : str
        The name as sent.
    capabilities : ModelCapabilities
        `learn` and refused requests correct them.
    server_too_old : str
        After `learn`: why the server is too old for the model's calls, or `""`.
    """

    api: Api
    base_url: str = field(repr=False)  # it may hold a password
    model: str
    capabilities: ModelCapabilities
    _endpoint: Endpoint
    _retries: Retries
    _: KW_ONLY
    guide: bool
    usage: bool
    temperature: float | None
    server_too_old: str = ""
    _logged_left_out: tuple[str, ...] = ()
    _takes_parallel: bool = True  # whether the server takes `parallel_tool_calls`
    _refuses_tools: bool = False  # whether the server does

    async def __aenter__(self) -> Self:
        """Return the connection."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the sockets; a chat that is under way, also between its requests, ends with a `StreamFailed`."""
        await self._endpoint.close()

    async def learn(self) -> ModelCapabilities:
        """The model's capabilities, corrected by the server if it is an Ollama, and used from now on.

        A server that has not answered within 3 s corrects nothing. Logs a warning if the Ollama is older than the
        model's `min_ollama`.
        """
        until_s = asyncio.get_running_loop().time() + LONGEST_LEARNING_S
        page = partial(self._endpoint.page, until_s=until_s)
        shown = await page("POST", f"{self.base_url}/api/show", json={"model": self.model})
        if shown:
            version = (await page("GET", f"{self.base_url}/api/version")).get("version")
            self.capabilities = with_server_word(self.capabilities, shown, version)
            self.server_too_old = too_old(version, self.model, self.capabilities)
            if self.server_too_old:
                logger.warning("%s", self.server_too_old)
        return self.capabilities

    async def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer. A fault of the server is a `StreamFailed`, never an exception.

        Parameters
        ----------
        messages : Sequence[Mapping]
            In OpenAI's form, for both endpoints.
        tools : Iterable or None
            Tools to offer, in the model's own style; without them the request mentions no tools.
        tool_choice : str, Mapping or None
            `"auto"`, `"none"`, `"required"` (also `"any"`), a tool's name, or OpenAI's object.
        parallel_tool_calls : bool or None
            Whether one answer may hold several calls; `None` asks for one at a time if the model requires it.
        format, response_format : str, Mapping or None
            `"json"` or a JSON Schema; or the same in OpenAI's form. If both are given, Ollama's own endpoint takes
            `format`, and Chat Completions `response_format`.
        temperature : float or None
            Sampling temperature, ≥ 0.
        think : bool, {"low", "medium", "high", "max"} or None
            Whether, or how much, a reasoning model thinks.
        extra : Mapping or None
            Further fields of the body, such as `max_tokens`; they override all others. `options` of Ollama are merged
            one by one.
        told : {"hide", "run"}
            From `ToolRunner` for a `Recovery`: what becomes of calls that the model only tells of. It is not sent.
        known_tools : Collection[str]
            Names of tools that the request does not offer, but whose calls are read where the model writes them as
            text; from `ToolRunner`, `ToolTiers` and `Recovery`. They are not sent.
        may_call : bool
            From `ToolTiers` for a `Recovery`: a call is run although no tools are offered. It is not sent.

        Raises
        ------
        StreamValueError, StreamTypeError
            If a parameter is unknown, or cannot be sent.
        """
        check_known(fields)
        wanted, known, choice, named = as_tools(tools), fields.get("known_tools", ()), None, None
        if wanted:
            choice = tool_choice_field(fields.get("tool_choice"), tuple(tool.name for tool in wanted))
            named = choice["function"]["name"] if isinstance(choice, dict) else None
        # The named tool comes first, so that the maximum cuts others.
        offered, left_out = translate_tools(sorted(wanted, key=lambda tool: tool.name != named), self.capabilities)
        if left_out:
            why_none: Literal["refused", "untrained"] = "refused" if self._refuses_tools else "untrained"
            yield self._left_out(left_out, "maximum" if self.capabilities.tools else why_none)
        names = tuple(entry["function"]["name"] for entry in offered)
        fields.setdefault("temperature", self.temperature)
        # Stock Ollama ignores `tool_choice`: a tool that must be called is sent alone, and no tool if none may be.
        offered = [] if choice == "none" else offered[:1] if named else offered
        fields["tool_choice"] = choice if offered else None
        own_parallel = not self.capabilities.parallel and fields.get("parallel_tool_calls") is None
        if own_parallel and self._takes_parallel:
            fields["parallel_tool_calls"] = False
        if self.capabilities.source == "server" and not self.capabilities.reasoning:
            fields["think"] = None
        check_request(messages, fields)
        readable = tuple(dict.fromkeys((*(tool.name for tool in wanted), *known)))
        sent = {entry["function"]["name"] for entry in offered}
        words = guidance((tool for tool in wanted if tool.name in sent), self.capabilities) if self.guide else ""
        while True:
            refused, has_begun = None, False
            had: dict[Part, bool] = {
                "tool_choice": fields["tool_choice"] is not None,
                "tools": bool(offered),
                "think_value": fields.get("think") is not None,
                "thinking": fields.get("think") is not None,
                "parallel_tool_calls": own_parallel and fields.get("parallel_tool_calls") is False and bool(offered),
                "stream_options": self.usage,
            }
            parts = [part for part, is_there in had.items() if is_there]
            streams = self.capabilities.streaming or not offered
            asked = with_guidance(messages, words)
            try:
                body = chat_body(self.api, self.model, asked, offered, fields, stream=streams, usage=self.usage)
            except (AttributeError, LookupError, TypeError) as error:
                raise StreamTypeError(f"a message is not in OpenAI's form: {error!r}") from error
            ask = partial(self._endpoint.ask, body, readable or None)
            async with aclosing(with_retries(ask, self._retries, parts)) as events:
                async for event in events:
                    # The beginning of an answer is spoken already: it is not asked for twice.
                    if isinstance(event, StreamFailed) and not has_begun and (refused := refused_part(event, parts)):
                        break
                    has_begun = True
                    yield event
            if not refused:
                return
            if refused == "tools":
                self.capabilities, self._refuses_tools = replace(self.capabilities, tools=False), True
                yield self._left_out(names, "refused")
                names, offered, words = (), [], ""
                fields["tool_choice"] = None
            elif refused == "tool_choice":  # for this request alone: another value may be taken
                logger.warning("The server refuses this `tool_choice` of %s: asked again without it", self.model)
                fields["tool_choice"] = None
            elif refused == "parallel_tool_calls":
                logger.warning("The server refuses `parallel_tool_calls` for %s: asked again without it", self.model)
                self._takes_parallel, fields["parallel_tool_calls"] = False, None
            elif refused == "stream_options":
                logger.warning(
                    "The server refuses `stream_options` for %s: asked again without token counts", self.model
                )
                self.usage = False
            elif refused == "think_value":
                logger.warning("The server refuses this `think` of %s: asked again without it", self.model)
                fields["think"] = None
            else:
                logger.warning("The server says that %s does not think: asked again without `think`", self.model)
                self.capabilities = replace(self.capabilities, reasoning=False, source="server")
                fields["think"] = None

    def _left_out(self, names: tuple[str, ...], reason: Literal["maximum", "untrained", "refused"]) -> ToolsLeftOut:
        """The event; the same tools are logged once, not with each request of a conversation."""
        left_out = ToolsLeftOut(names, reason)
        if names != self._logged_left_out:
            self._logged_left_out = names
            listed = logged_list(logged_name(name) for name in names)
            logger.warning("%d tools not offered to %s (%s): %s", len(names), self.model, left_out.why, listed)
        return left_out
