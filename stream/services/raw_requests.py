"""A question as a raw request of each API, for recording: URL, headers and body, or the messages of a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stream.services.addresses import api_and_address, key_for
from stream.services.chat_request import ChatRequest
from stream.services.provider_requests import body_of
from stream.services.tool import as_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream.services.tool import ToolLike

__all__ = ["SESSIONS", "RawRequest", "raw_request"]

SESSIONS = {
    "realtime": "/v1/realtime",
    "live": "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
}
"""APIs that are sessions, and the paths of their WebSockets."""
_PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "ollama": "/api/chat",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """A request to send; `body` of an HTTP request, or `messages` of a session."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Mapping[str, Any], ...] = ()


def raw_request(
    api: str, base_url: str, model: str, prompt: str, *, tools: Iterable[ToolLike] = (), api_key: str | None = None
) -> RawRequest:
    """The question `prompt` for an API; the key, if none is given, is the host's own from the environment.

    >>> raw_request("anthropic", "https://api.anthropic.com", "m", "Hello", api_key="k").url
    'https://api.anthropic.com/v1/messages'
    """
    is_session = api in SESSIONS
    kind, _, url = api_and_address(base_url, "gemini" if api == "live" else "chat" if is_session else api)
    key = api_key or key_for(urlsplit(url).hostname or "", asks_cloud=False)
    offered = [tool.openai() for tool in as_tools(tools)]
    request = ChatRequest(model=model, messages=[{"role": "user", "content": prompt}], tools=offered)
    if is_session:
        address = f"ws{url.removeprefix('http').removesuffix('/v1')}{SESSIONS[api]}"
        query = f"?model={model}" if api == "realtime" else ""
        messages = _realtime(request) if api == "realtime" else _live(request)
        return RawRequest(url=address + query, headers=_headers(kind, key), messages=messages)
    address = url + _PATHS[kind].replace("{model}", model)
    return RawRequest(url=address, headers=_headers(kind, key), body=body_of(kind, request))


def _headers(api: str, key: str | None) -> dict[str, str]:
    version = {"anthropic-version": "2023-06-01"} if api == "anthropic" else {}
    if not key:
        return version
    name = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(api)
    return {name: key, **version} if name else {"authorization": f"Bearer {key}"}


def _realtime(request: ChatRequest) -> tuple[dict[str, Any], ...]:
    body = body_of("responses", request)
    tools = [{key: value for key, value in tool.items() if key != "strict"} for tool in body.get("tools", ())]
    session = {"type": "realtime", "output_modalities": ["text"], "tools": tools}
    content = [{"type": "input_text", "text": request.messages[0]["content"]}]
    item = {"type": "message", "role": "user", "content": content}
    return (
        {"type": "session.update", "session": session},
        {"type": "conversation.item.create", "item": item},
        {"type": "response.create"},
    )


def _live(request: ChatRequest) -> tuple[dict[str, Any], ...]:
    body = body_of("gemini", request)
    # Live models speak; what they say comes as a transcript, too.
    setup = {"model": f"models/{request.model}", "generationConfig": {"responseModalities": ["AUDIO"]}}
    tools = {"tools": body["tools"]} if "tools" in body else {}
    content = {"turns": body["contents"], "turnComplete": True}
    return ({"setup": {**setup, **tools, "outputAudioTranscription": {}}}, {"clientContent": content})
