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
    content_of,
    ollama_body,
    openai_body,
    present,
    response_format_of,
    schema_of,
    text_of,
    tool_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stream.services.chat_request import ChatRequest, Message
    from stream.whole_answers import Api

__all__ = ["anthropic_body", "body_of", "gemini_body", "responses_body"]

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
    kinds = dict[str, str]()
    fields = tool_fields(request)
    if "tools" in fields:
        fields["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in fields["tools"]]
    choice = fields.get("tool_choice")
    if isinstance(choice, dict):
        fields["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    wanted = response_format_of(request)
    effort = EFFORTS.get(request.think, request.think)
    body = {
        "model": request.model,
        "input": [item for message in request.messages for item in _items(message, kinds)],
        "stream": request.stream,
        "text": None if wanted is None else {"format": {"type": wanted["type"], **wanted.get("json_schema", {})}},
        "temperature": request.temperature,
        "reasoning": None if effort is None else {"effort": effort},
        **fields,
    }
    return present(body, request.extra)


def _items(message: Message, kinds: dict[str, str]) -> Iterator[Json]:
    """The input items of a message; `kinds` keeps the kind of each call for its result."""
    own = _own_parts(message, "responses")
    calls = message.get("tool_calls") or ()
    if own is not None:
        kinds.update({item["call_id"]: item["type"] for item in own if "call_id" in item})
        yield from own
    elif message.get("role") == "tool":
        kind = kinds.get(message.get("tool_call_id", ""), "function_call")
        yield {"type": f"{kind}_output", "call_id": message.get("tool_call_id", ""), "output": text_of(message)}
    else:
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = [
                {"type": "input_text", "text": value}
                if kind == "text"
                else {"type": "input_image", "image_url": value, "detail": "auto"}
                for kind, value in content_of(message)
            ]
        if content:
            yield {"role": message["role"], "content": content}
        for call in calls:
            yield {"type": "function_call", "call_id": call.get("id", ""), **call["function"]}


def anthropic_body(request: ChatRequest) -> Json:
    """The body for Anthropic's `/v1/messages`, which has no temperature any more."""
    system, messages = _conversation(request, "Anthropic", "content", _blocks)
    fields = tool_fields(request)
    tools = _declared(fields, "input_schema")
    choice = _anthropic_choice(fields.get("tool_choice"), parallel=fields.get("parallel_tool_calls"))
    used = dict.fromkeys(call["function"]["name"] for m in request.messages for call in m.get("tool_calls") or ())
    if used and not tools:  # a history with calls is refused unless tools are defined
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in used]
        choice = {"type": "none"}
    schema = schema_of(request)
    if schema == "json":
        raise StreamValueError("format is 'json'; for Anthropic it must be a JSON Schema")
    output = {
        "effort": request.think if isinstance(request.think, str) else None,
        "format": None if schema is None else {"type": "json_schema", "schema": schema},
    }
    body = {
        "model": request.model,
        "max_tokens": MAX_TOKENS,
        "messages": messages,
        "stream": request.stream,
        "system": system or None,
        "tools": tools or None,
        "tool_choice": choice,
        "output_config": present(output) or None,
        "thinking": None if request.think is None else {"type": "adaptive" if request.think else "disabled"},
    }
    return present(body, request.extra)


def _anthropic_choice(choice: Any, *, parallel: bool | None) -> Json | None:
    one_at_a_time = {"disable_parallel_tool_use": True} if parallel is False else {}
    if isinstance(choice, dict):
        return {"type": "tool", "name": choice["function"]["name"], **one_at_a_time}
    if choice is None and not one_at_a_time:
        return None
    return {"type": "any" if choice == "required" else "auto", **one_at_a_time}


def _blocks(message: Message) -> list[Json]:
    """The content of a message as blocks; blank text is left out, because it is refused."""
    own = _own_parts(message, "anthropic")
    if message.get("role") == "tool":
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", ""), "content": text_of(message)}
        return [{**result, "is_error": True} if message.get("is_error") else result]
    if own is not None:
        return [block for block in own if block.get("type") != "text" or block["text"].strip()]
    blocks: list[Json] = []
    for kind, value in content_of(message):
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
    calls = {call.get("id", ""): call for message in request.messages for call in message.get("tool_calls") or ()}
    own = [part for message in request.messages for part in _own_parts(message, "gemini") or ()]
    with_ids = {part["functionCall"].get("id") for part in own if "functionCall" in part}
    system, contents = _conversation(
        request, "Gemini", "parts", lambda message: _parts(message, calls, with_ids), assistant="model"
    )
    fields = tool_fields(request)
    declared = _declared(fields, "parametersJsonSchema")
    choice = fields.get("tool_choice")
    mode = "AUTO" if choice == "auto" else "ANY"  # a forced tool is the only one that is sent
    schema, think = schema_of(request), request.think
    level = {"thinkingLevel": "high" if think == "max" else think} if isinstance(think, str) else {}
    thinks = {"includeThoughts": True, **level} if think else {"thinkingBudget": 0}
    config = {
        "temperature": request.temperature,
        "responseMimeType": None if schema is None else "application/json",
        "responseJsonSchema": None if schema == "json" else schema,
        "thinkingConfig": None if think is None else thinks,
    }
    body = {
        "contents": contents,
        "systemInstruction": {"parts": [{"text": system}]} if system else None,
        "tools": [{"functionDeclarations": declared}] if declared else None,
        "toolConfig": None if choice is None else {"functionCallingConfig": {"mode": mode}},
        "generationConfig": present(config) or None,
    }
    return present(body, request.extra)


def _parts(message: Message, calls: Mapping[str, Any], with_ids: set[str | None]) -> list[Json]:
    """The content of a message as parts; a result has the id of its call if Google gave one."""
    if message.get("role") == "tool":
        identity = message.get("tool_call_id", "")
        name = message.get("name") or calls.get(identity, {}).get("function", {}).get("name", "")
        key = "error" if message.get("is_error") else "output"
        known = {"id": identity} if identity in with_ids else {}
        return [{"functionResponse": {**known, "name": name, "response": {key: text_of(message)}}}]
    own = _own_parts(message, "gemini")
    if own is not None:
        return own
    parts: list[Json] = []
    for kind, value in content_of(message):
        if kind == "text":
            parts += [{"text": value}] if value else []
        else:
            mime, data = _data_url(value)
            parts.append({"inlineData": {"mimeType": mime, "data": data}} if data else {"fileData": {"fileUri": value}})
    for call in message.get("tool_calls") or ():
        parts.append({"functionCall": {"name": call["function"]["name"], "args": arguments_of(call)}})
    return parts


def _conversation(
    request: ChatRequest,
    provider: str,
    key: str,
    written: Callable[[Message], list[Json]],
    assistant: str = "assistant",
) -> tuple[str, list[Json]]:
    """The system prompt, and the messages with their content under `key`; neighbors of one role are joined."""
    system: list[str] = []
    merged: list[Json] = []
    for message in request.messages:
        if message.get("role") in ("system", "developer"):
            system.append(text_of(message))
            continue
        role = assistant if message.get("role") == "assistant" else "user"
        content = written(message)
        if merged and merged[-1]["role"] == role:
            merged[-1][key] += content
        elif content:
            merged.append({"role": role, key: content})
    if not merged:
        raise StreamValueError(f"messages have no text; {provider} needs a message that is not empty")
    return "\n\n".join(system), merged


def _own_parts(message: Message, api: Api) -> list[Json] | None:
    """The answer in the API's own form, if it holds the message's calls and no others; `None` otherwise."""
    parts: Sequence[Json] | None = (message.get("provider_parts") or {}).get(api)
    if parts is None:
        return None
    calls = message.get("tool_calls") or ()
    if api == "gemini":  # its calls need not have ids
        found = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        return [*parts] if found == [call["function"]["name"] for call in calls] else None
    ids = [part["id"] if part.get("type") == "tool_use" else part.get("call_id") for part in parts]
    wanted = {call.get("id") for call in calls}
    kept = [part for part, identity in zip(parts, ids, strict=True) if identity is None or identity in wanted]
    return kept if wanted <= {*ids} else None


def _declared(fields: Json, key: str) -> list[Json]:
    """The tools of a request, with their schemas under `key`."""
    functions = [tool["function"] for tool in fields.get("tools", ())]
    return [{"name": one["name"], "description": one["description"], key: one["parameters"]} for one in functions]


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
