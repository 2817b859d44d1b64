"""A chat request, and its body for each endpoint: pure functions.

Messages are in OpenAI's form: `tool_calls` with arguments as JSON text, results as messages of role `tool` with
`tool_call_id`. They are converted for Ollama's own endpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from cues.errors import did_you_mean
from stream.checks import check_number
from stream.errors import StreamTypeError, StreamValueError
from stream.request_bodies import sendable
from stream.services.addresses import Api

__all__ = [
    "ChatFields",
    "Message",
    "Think",
    "chat_body",
    "check_known",
    "check_request",
    "present",
    "text_of",
    "with_guidance",
]

Message: TypeAlias = "Mapping[str, Any]"
Think: TypeAlias = "bool | Literal['low', 'medium', 'high', 'max']"

DEEPEST_ARGUMENTS = 100
"""Deepest nesting of a call's arguments as an object: less than a body's, which contains them."""
EFFORTS: dict[object, str] = {False: "none", True: "medium"}  # of OpenAI, for `think`; text is passed unchanged


OTHER_NAMES = {"reasoning_effort": "think", "functions": "tools", "function_call": "tool_choice"}
"""What servers call a field of `chat`."""
OLLAMA_OPTIONS = {"max_tokens": "num_predict", "max_completion_tokens": "num_predict"} | {
    name: name for name in ("num_predict", "num_ctx", "seed", "stop", "top_k", "top_p", "min_p")
}
"""Fields that Ollama's own endpoint reads in `options`, and their names there."""


class ChatFields(TypedDict, total=False):
    """Options of a request beside messages and tools, as documented in `Connection.chat`."""

    tool_choice: str | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    format: str | Mapping[str, Any] | None
    response_format: Mapping[str, Any] | None
    temperature: float | None
    think: Think | None
    extra: Mapping[str, Any] | None
    told: Literal["hide", "run"]
    known_tools: Collection[str]
    may_call: bool


def check_known(fields: Mapping[str, object], *own: str) -> None:
    """Raise a `StreamTypeError` for a field that `chat` does not know; `own` are more fields of the caller's.

    >>> check_known({"tempreature": 0.2})
    Traceback (most recent call last):
    stream.errors.StreamTypeError: chat has no field 'tempreature'; did you mean 'temperature'? \
Other fields of the body go into `extra`, as extra={'tempreature': …}
    """
    known = ["messages", "tools", *own, *ChatFields.__annotations__]
    for name in fields:
        if name in known:
            continue
        other, option = OTHER_NAMES.get(name), OLLAMA_OPTIONS.get(name)
        near = f"; did you mean {other!r}?" if other else "" if option else did_you_mean(name, known)
        ollama = f", for /api/chat as extra={{'options': {{{option!r}: …}}}}" if option else ""
        way = f"Other fields of the body go into `extra`, as extra={{{name!r}: …}}{ollama}"
        raise StreamTypeError(f"chat has no field {name!r}{near or '.'} {way}")


def check_request(messages: Sequence[Message], fields: ChatFields) -> None:
    """Raise a `StreamError` for what no endpoint takes."""
    form, whole, parallel = (fields.get(name) for name in ("format", "response_format", "parallel_tool_calls"))
    temperature, think = fields.get("temperature"), fields.get("think")
    if not hasattr(messages, "__iter__") or not all(hasattr(message, "get") for message in messages):
        raise StreamTypeError("messages must be a list of dicts with `role` and `content`")
    if form is not None and form != "json" and not hasattr(form, "get"):
        raise StreamValueError(f"format is {form!r}; it must be 'json', a JSON Schema, or None")
    if whole is not None and not hasattr(whole, "get"):
        raise StreamTypeError(f"response_format is {whole!r}; it must be a dict in OpenAI's form")
    if not isinstance(parallel, bool | None):
        raise StreamTypeError(f"parallel_tool_calls is {parallel!r}; it must be a bool or None")
    if temperature is not None and not check_number("temperature", temperature) >= 0.0:
        raise StreamValueError(f"temperature is {temperature!r}; it must be 0 or more")
    if not isinstance(extra := fields.get("extra"), Mapping | None):
        raise StreamTypeError(f"extra is {extra!r}; it must be a dict of fields, or None")
    if think not in (None, True, False, "low", "medium", "high", "max"):
        raise StreamValueError(f"think is {think!r}; it must be a bool, 'low', 'medium', 'high', 'max', or None")


def chat_body(
    api: Api,
    model: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    fields: ChatFields,
    *,
    stream: bool = True,
    usage: bool = True,
) -> dict[str, Any]:
    """The body of a request with checked fields; tools are in OpenAI's form.

    `usage` asks the Chat Completions endpoint for token counts at the end of a stream.
    """
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": stream, **_tool_fields(tools, fields)}
    temperature, think, extra = fields.get("temperature"), fields.get("think"), dict(fields.get("extra") or {})
    if api == "ollama":
        body["messages"] = [*_ollama_messages(messages)]
        body["format"] = _schema_of(fields)
        body["options"] = present({"temperature": temperature}) | dict(extra.pop("options", None) or {}) or None
        body["think"] = think
    else:
        # Strict servers refuse the field of another API.
        body["messages"] = [{key: value for key, value in m.items() if key != "thinking"} for m in messages]
        body["stream_options"] = {"include_usage": True} if usage and stream else None
        body["response_format"] = _response_format_of(fields)
        body["temperature"] = temperature
        body["reasoning_effort"] = EFFORTS.get(think, think)
    return present(body) | extra


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not `None`."""
    return {name: value for name, value in fields.items() if value is not None}


def with_guidance(messages: Sequence[Message], words: str) -> list[Message]:
    """The messages with `words` added to the system prompt, or as the system prompt."""
    if not words:
        return list(messages)
    first = messages[0] if messages else {}
    content: Any = first.get("content")
    if first.get("role") in ("system", "developer") and isinstance(content, (str, list)):
        added = f"{content}\n\n{words}" if isinstance(content, str) else [*content, {"type": "text", "text": words}]
        return [{**first, "content": added}, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


def _tool_fields(tools: Sequence[Mapping[str, Any]], fields: ChatFields) -> dict[str, Any]:
    """The fields about tools, in OpenAI's form; stock Ollama ignores all but the first."""
    if not tools:
        return {}
    choice, parallel = fields.get("tool_choice"), fields.get("parallel_tool_calls")
    return {"tools": [*tools], "tool_choice": choice, "parallel_tool_calls": parallel}


def _response_format_of(fields: ChatFields) -> dict[str, Any] | None:
    """The format of the answer in OpenAI's form; `None` for plain text."""
    schema, whole = fields.get("format"), fields.get("response_format")
    if whole is not None:
        return dict(whole)
    if schema is None or isinstance(schema, str):
        return None if schema is None else {"type": "json_object"}
    # OpenAI refuses names that are not 1 to 64 letters, digits, `_` and `-`.
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(schema.get("title") or "answer"))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema)}}


def _schema_of(fields: ChatFields) -> Any:
    """The format of the answer as `"json"` or a JSON Schema; `None` for plain text."""
    form, whole = fields.get("format"), fields.get("response_format")
    kind = None if whole is None else whole.get("type")
    if form is not None or whole is None or kind in (None, "text"):
        return form
    if kind == "json_object":
        return whole.get("schema", "json")  # llama-server allows a schema beside the type
    schema = (whole.get("json_schema") or {}).get("schema")
    if kind != "json_schema" or schema is None:
        raise StreamValueError(
            f"response_format has type {kind!r}; for /api/chat it must be 'text', 'json_object', or 'json_schema' with"
            " `json_schema.schema`"
        )
    return schema


def _ollama_messages(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    """Messages in Ollama's form: arguments as objects, results with the tool's name, content as one text and images."""
    names: dict[str, str] = {}
    for message in messages:
        out = {key: message[key] for key in ("role", "thinking", "tool_call_id", "images") if message.get(key)}
        out["content"] = text_of(message)
        for url in (value for kind, value in _content_of(message) if kind == "image"):
            head, _, data = url.partition(",")
            if not head.startswith("data:"):
                raise StreamValueError("for /api/chat the URL of an image must begin with 'data:'")
            out["images"] = [*out.get("images", ()), data or head]
        for place, call in enumerate(message.get("tool_calls") or ()):
            name = call["function"]["name"]
            written = {"function": {"index": place, "name": name, "arguments": _arguments_of(call)}}
            out.setdefault("tool_calls", []).append({"id": call["id"], **written} if call.get("id") else written)
            names[call.get("id", "")] = name
        if message.get("role") == "tool":
            name = message.get("tool_name") or message.get("name") or names.get(message.get("tool_call_id", ""), "")
            out["tool_name"] = name
        yield out


def _arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call as an object; `{}` for any others: the call's result says what was wrong."""
    arguments = call["function"].get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = sendable(json.loads(arguments), DEEPEST_ARGUMENTS)
        except (ValueError, RecursionError):
            return {}
    return arguments if isinstance(arguments, dict) else {}


def _content_of(message: Message) -> Iterator[tuple[str, str]]:
    """The parts of a content: `("text", text)` or `("image", url)`."""
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if part.get("type") == "text":
            yield "text", part["text"]
        elif part.get("type") == "image_url":
            image: Any = part["image_url"]
            yield "image", image["url"] if hasattr(image, "get") else image


def text_of(message: Message) -> str:
    """The text of a content, each part on a line of its own."""
    return "\n".join(value for kind, value in _content_of(message) if kind == "text")
