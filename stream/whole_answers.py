"""Whole answers from streamed pieces, in the provider's form: for clients that do not stream, and for history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream.events import ToolCallEnd

__all__ = ["Api", "whole_answer"]

Api: TypeAlias = Literal["chat", "responses", "ollama", "anthropic", "gemini"]
Json: TypeAlias = "dict[str, Any]"


def whole_answer(api: Api, pieces: Iterable[Json], calls: Sequence[ToolCallEnd] = ()) -> Json:
    """The answer that the decoded pieces of a stream make up, as the server sends it without streaming.

    `calls` are the calls that a reader found; Gemini's arguments may come in pieces that only a reader joins.

    >>> lines = [{"message": {"content": "Hel"}}, {"message": {"content": "lo"}, "done": True}]
    >>> whole_answer("ollama", lines)
    {'message': {'role': 'assistant', 'content': 'Hello'}, 'done': True}
    """
    return _gemini(pieces, calls) if api == "gemini" else _FORMS[api](pieces)


def _chat(pieces: Iterable[Json]) -> Json:
    answer: Json = {"object": "chat.completion"}
    message: Json = {"role": "assistant", "content": None}
    reason = None
    for piece in pieces:
        answer.update({key: value for key, value in piece.items() if value and key not in ("choices", "object")})
        for choice in piece.get("choices") or ():
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or choice.get("message") or {}
            for entry in delta.get("tool_calls") or ():
                _add_call(message.setdefault("tool_calls", []), entry)
            _join(message, {key: text for key, text in delta.items() if key != "role"})
    return {**answer, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _add_call(calls: list[Json], entry: Json) -> None:
    function = entry.get("function") or {}
    last = calls[-1] if calls else None
    is_next = last is None or (function.get("name") and (not entry.get("id") or entry["id"] != last["id"]))
    if is_next or last is None:
        made = {"name": function.get("name", ""), "arguments": function.get("arguments") or ""}
        calls.append({"id": entry.get("id") or "", "type": "function", "function": made})
    elif not (function.get("name") and _is_json(last["function"]["arguments"])):  # otherwise a call sent twice
        last["function"]["arguments"] += function.get("arguments") or ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _join(into: Json, texts: Json) -> None:
    """Add each text to the one of its key."""
    for key, text in texts.items():
        if isinstance(text, str):
            into[key] = (into.get(key) or "") + text


def _ollama(pieces: Iterable[Json]) -> Json:
    answer: Json = {}
    message: Json = {"role": "assistant", "content": ""}
    for piece in pieces:
        said = piece.get("message") or {}
        _join(message, {key: said.get(key) for key in ("content", "thinking")})
        if said.get("tool_calls"):
            message.setdefault("tool_calls", []).extend(said["tool_calls"])
        answer.update({key: value for key, value in piece.items() if key != "message"})
    return {"message": message, **answer}


def _responses(pieces: Iterable[Json]) -> Json:
    answer: Json = {"object": "response", "status": "completed"}
    items: list[Json] = []
    for piece in pieces:
        if isinstance(piece.get("response"), dict):
            answer = piece["response"]
        if piece.get("type") == "response.output_item.done":
            items.append(piece["item"])
    return {**answer, "output": items or answer.get("output") or []}


def _anthropic(pieces: Iterable[Json]) -> Json:
    answer: Json = {"type": "message", "role": "assistant"}
    blocks: dict[int, Json] = {}
    for piece in pieces:
        match piece.get("type"):
            case "message_start":
                answer, blocks = {**piece["message"]}, {}
            case "content_block_start":
                blocks[piece["index"]] = {**piece["content_block"]}
            case "content_block_delta" if piece["index"] in blocks:
                _add_delta(blocks[piece["index"]], piece["delta"])
            case "message_delta":
                answer.update(piece["delta"])
                answer["usage"] = {**(answer.get("usage") or {}), **(piece.get("usage") or {})}
    for block in blocks.values():
        written = block.pop("partial_json", "")
        if written:
            block["input"] = json.loads(written) if _is_json(written) else {}
    return {**answer, "content": [*blocks.values()]}


def _add_delta(block: Json, delta: Json) -> None:
    if delta.get("type") == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
    else:
        _join(block, {key: text for key, text in delta.items() if key != "type"})


def _gemini(pieces: Iterable[Json], calls: Sequence[ToolCallEnd]) -> Json:
    answer: Json = {}
    candidate: Json = {}
    parts: list[Json] = []
    for piece in pieces:
        answer.update(piece)
        for one in (piece.get("candidates") or ())[:1]:
            candidate.update(one)
            for part in (one.get("content") or {}).get("parts") or ():
                _add_part(parts, part)
    made = [part["functionCall"] for part in parts if "functionCall" in part]
    for call, end in zip(made, calls, strict=False):
        if "args" not in call and call["name"] == end.tool_name:
            call["args"] = end.arguments or {}
    return {**answer, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}


def _add_part(parts: list[Json], part: Json) -> None:
    call = part.get("functionCall")
    if call is not None:
        if call.get("name"):
            kept = {key: value for key, value in call.items() if key not in ("willContinue", "partialArgs")}
            parts.append({**part, "functionCall": kept})
        elif parts and part.get("thoughtSignature"):  # of the call whose arguments stream
            parts[-1].setdefault("thoughtSignature", part["thoughtSignature"])
    elif part == {"text": ""}:
        return  # a part without content is refused when it goes back
    elif parts and set(part) | set(parts[-1]) <= {"text", "thought"} and _kind(part) == _kind(parts[-1]):
        parts[-1]["text"] += part["text"]
    else:
        parts.append({**part})


def _kind(part: Json) -> tuple[bool, bool]:
    return "text" in part, bool(part.get("thought"))


_FORMS: dict[str, Callable[[Iterable[Json]], Json]] = {
    "chat": _chat,
    "responses": _responses,
    "ollama": _ollama,
    "anthropic": _anthropic,
}
