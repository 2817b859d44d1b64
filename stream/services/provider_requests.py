"""Bodies of requests to OpenAI's Responses, Anthropic and Gemini, from messages in OpenAI's form: pure functions.

An assistant's message may have `provider_parts`: its answer in a provider's own form (`AnswerParts`), with signed
thinking and thought signatures. It goes back unchanged to that API; any other API gets the text and the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from stream.errors import StreamValueError
from stream.services.chat_request import (
    EFFORTS,
    arguments_of,
    ollama_body,
    openai_body,
    response_format_of,
    schema_of,
    tool_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stream.services.chat_request import ChatRequest, Message
    from stream.whole_answers import Api

__all__ = ["MAX_TOKENS", "anthropic_body", "body_of", "gemini_body", "responses_body"]

Json: TypeAlias = "dict[str, Any]"

MAX_TOKENS = 8192
"""Of an answer of Anthropic, which wants a number; `extra={"max_tokens": …}` gives another."""


def body_of(api: Api, request: ChatRequest, *, usage: bool = True) -> Json:
    """The body of a request for an API; `usage` asks Chat Completions for token counts."""
    if api == "chat":
        return openai_body(request, usage=usage)
    return _BODIES[api](request)


def responses_body(request: ChatRequest) -> Json:
    """The body for OpenAI's `/v1/responses`."""
    names = dict[str, str]()
    items = [item for message in request.messages for item in _items(message, names)]
    body: Json = {"model": request.model, "input": items, "stream": request.stream}
    fields = tool_fields(request)
    if "tools" in fields:
        functions = [{"type": "function", **tool["function"], "strict": False} for tool in fields["tools"]]
        choice = fields.get("tool_choice")
        named = {"type": "function", "name": choice["function"]["name"]} if isinstance(choice, dict) else choice
        fields = {**fields, "tools": functions, **({"tool_choice": named} if named else {})}
    wanted = response_format_of(request)
    if wanted is not None:
        body["text"] = {"format": {"type": wanted["type"], **wanted.get("json_schema", {})}}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.think is not None:
        body["reasoning"] = {"effort": EFFORTS.get(request.think, request.think)}
    return {**body, **fields, **(request.extra or {})}


def _items(message: Message, kinds: dict[str, str]) -> Iterator[Json]:
    """The input items of a message; `kinds` keeps the kind of each call for its result."""
    own = _own_parts(message, "responses", lambda item: item.get("call_id"))
    calls = message.get("tool_calls") or ()
    if own is not None:
        kinds.update({item["call_id"]: item["type"] for item in own if "call_id" in item})
        yield from own
    elif message.get("role") == "tool":
        kind = kinds.get(message.get("tool_call_id", ""), "function_call")
        yield {"type": f"{kind}_output", "call_id": message.get("tool_call_id", ""), "output": _text(message)}
    else:
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = [
                {"type": "input_text", "text": value}
                if kind == "text"
                else {"type": "input_image", "image_url": value, "detail": "auto"}
                for kind, value in _content(message)
            ]
        if content:
            yield {"role": message["role"], "content": content}
        for call in calls:
            yield {"type": "function_call", "call_id": call.get("id", ""), **call["function"]}


def anthropic_body(request: ChatRequest) -> Json:
    """The body for Anthropic's `/v1/messages`, which has no temperature any more."""
    system = "\n\n".join(_text(message) for message in request.messages if message.get("role") in _SYSTEM)
    messages = _merged("content", ((_role(m), _blocks(m)) for m in request.messages if m.get("role") not in _SYSTEM))
    body: Json = {"model": request.model, "max_tokens": MAX_TOKENS, "messages": messages, "stream": request.stream}
    if not messages:
        raise StreamValueError("messages have no text; Anthropic needs a message that is not empty")
    if system:
        body["system"] = system
    fields = tool_fields(request)
    tools = [tool["function"] for tool in fields.get("tools", ())]
    if tools:
        body["tools"] = [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            for tool in tools
        ]
        choice = _anthropic_choice(fields.get("tool_choice"), parallel=fields.get("parallel_tool_calls"))
        body.update({"tool_choice": choice} if choice else {})
    elif used := _tools_used(request.messages):
        # A history with calls is refused unless tools are defined.
        body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in used]
        body["tool_choice"] = {"type": "none"}
    effort = {"effort": request.think} if isinstance(request.think, str) else {}
    schema = schema_of(request)
    if schema == "json":
        raise StreamValueError("format is 'json'; for Anthropic it must be a JSON Schema")
    output = {**effort, **({"format": {"type": "json_schema", "schema": schema}} if schema is not None else {})}
    if output:
        body["output_config"] = output
    if request.think is not None:
        body["thinking"] = {"type": "adaptive" if request.think else "disabled"}
    return {**body, **(request.extra or {})}


def _anthropic_choice(choice: Any, *, parallel: bool | None) -> Json | None:
    one_at_a_time = {"disable_parallel_tool_use": True} if parallel is False else {}
    if isinstance(choice, dict):
        return {"type": "tool", "name": choice["function"]["name"], **one_at_a_time}
    if choice is None and not one_at_a_time:
        return None
    return {"type": "any" if choice == "required" else "auto", **one_at_a_time}


def _blocks(message: Message) -> list[Json]:
    """The content of a message as blocks; blank text is left out, because it is refused."""
    own = _own_parts(message, "anthropic", lambda block: block["id"] if block.get("type") == "tool_use" else None)
    if message.get("role") == "tool":
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", ""), "content": _text(message)}
        return [{**result, "is_error": True} if message.get("is_error") else result]
    if own is not None:
        return [block for block in own if block.get("type") != "text" or block["text"].strip()]
    blocks: list[Json] = []
    for kind, value in _content(message):
        if kind == "text":
            blocks += [{"type": "text", "text": value}] if value.strip() else []
        else:
            mime, data = _data_url(value)
            encoded = {"type": "base64", "media_type": mime, "data": data}
            blocks.append({"type": "image", "source": encoded if data else {"type": "url", "url": value}})
    for call in message.get("tool_calls") or ():
        arguments = arguments_of(call)
        blocks.append(
            {"type": "tool_use", "id": call.get("id", ""), "name": call["function"]["name"], "input": arguments}
        )
    return blocks


def gemini_body(request: ChatRequest) -> Json:
    """The body for Gemini's `:streamGenerateContent`; `model` stands in the path."""
    system = "\n\n".join(_text(message) for message in request.messages if message.get("role") in _SYSTEM)
    calls = {call.get("id", ""): call for message in request.messages for call in message.get("tool_calls") or ()}
    with_ids = {part["functionCall"].get("id") for m in request.messages for part in _own_gemini(m) or ()
                if "functionCall" in part}  # fmt: skip
    said = ((_role(m), _parts(m, calls, with_ids)) for m in request.messages if m.get("role") not in _SYSTEM)
    body: Json = {"contents": _merged("parts", said, "model")}
    if not body["contents"]:
        raise StreamValueError("messages have no text; Gemini needs a message that is not empty")
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    fields = tool_fields(request)
    if "tools" in fields:
        tools = [tool["function"] for tool in fields["tools"]]
        declared = [
            {"name": tool["name"], "description": tool["description"], "parametersJsonSchema": tool["parameters"]}
            for tool in tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
        choice = fields.get("tool_choice")
        if choice is not None:
            mode = "AUTO" if choice == "auto" else "ANY"  # a forced tool is the only one that is sent
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
    config: Json = {}
    if request.temperature is not None:
        config["temperature"] = request.temperature
    schema = schema_of(request)
    if schema is not None:
        config["responseMimeType"] = "application/json"
        config.update({"responseJsonSchema": schema} if schema != "json" else {})
    if request.think is not None:
        level = {"thinkingLevel": "high" if request.think == "max" else request.think}
        thinks = {"includeThoughts": True, **(level if isinstance(request.think, str) else {})}
        config["thinkingConfig"] = thinks if request.think else {"thinkingBudget": 0}
    if config:
        body["generationConfig"] = config
    return {**body, **(request.extra or {})}


def _own_gemini(message: Message) -> Sequence[Json] | None:
    return _own_parts(message, "gemini", None)


def _parts(message: Message, calls: Mapping[str, Any], with_ids: set[str | None]) -> list[Json]:
    """The content of a message as parts; a result has the id of its call if Google gave one."""
    if message.get("role") == "tool":
        identity = message.get("tool_call_id", "")
        name = message.get("name") or calls.get(identity, {}).get("function", {}).get("name", "")
        key = "error" if message.get("is_error") else "output"
        known = {"id": identity} if identity in with_ids else {}
        return [{"functionResponse": {**known, "name": name, "response": {key: _text(message)}}}]
    own = _own_gemini(message)
    if own is not None:
        return [*own]
    parts: list[Json] = []
    for kind, value in _content(message):
        if kind == "text":
            parts += [{"text": value}] if value else []
        else:
            mime, data = _data_url(value)
            parts.append({"inlineData": {"mimeType": mime, "data": data}} if data else {"fileData": {"fileUri": value}})
    for call in message.get("tool_calls") or ():
        parts.append({"functionCall": {"name": call["function"]["name"], "args": arguments_of(call)}})
    return parts


_SYSTEM = ("system", "developer")


def _role(message: Message) -> str:
    return "assistant" if message.get("role") == "assistant" else "user"


def _merged(key: str, said: Iterable[tuple[str, list[Json]]], assistant: str = "assistant") -> list[Json]:
    """Messages with their content under `key`; neighbors of one role are joined, and empty ones left out."""
    merged: list[Json] = []
    for role, content in said:
        name = assistant if role == "assistant" else role
        if merged and merged[-1]["role"] == name:
            merged[-1][key] += content
        elif content:
            merged.append({"role": name, key: [*content]})
    return merged


def _own_parts(message: Message, api: str, call_id: Any) -> Sequence[Json] | None:
    """The answer in the API's own form, if it holds the message's calls and no others; `None` otherwise."""
    parts: Sequence[Json] | None = (message.get("provider_parts") or {}).get(api)
    if parts is None:
        return None
    calls = message.get("tool_calls") or ()
    if call_id is None:
        found = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        return parts if found == [call["function"]["name"] for call in calls] else None
    wanted = {call.get("id") for call in calls}
    kept = [part for part in parts if call_id(part) is None or call_id(part) in wanted]
    return kept if wanted <= {call_id(part) for part in kept} else None


def _tools_used(messages: Sequence[Message]) -> list[str]:
    return [*dict.fromkeys(call["function"]["name"] for m in messages for call in m.get("tool_calls") or ())]


def _text(message: Message) -> str:
    return "".join(value for kind, value in _content(message) if kind == "text")


def _content(message: Message) -> Iterator[tuple[str, str]]:
    """The parts of a content: `("text", text)` or `("image", url)`."""
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if part.get("type") == "text":
            yield "text", part["text"]
        elif part.get("type") == "image_url":
            image: Any = part["image_url"]
            yield "image", image["url"] if hasattr(image, "get") else image


def _data_url(url: str) -> tuple[str, str]:
    """Type and base64 of a `data:` URL; empty for another URL."""
    head, _, data = url.partition(",")
    return (head.removeprefix("data:").split(";")[0], data) if head.startswith("data:") else ("", "")


_BODIES: Mapping[str, Callable[[ChatRequest], Json]] = {
    "responses": responses_body,
    "ollama": ollama_body,
    "anthropic": anthropic_body,
    "gemini": gemini_body,
}
