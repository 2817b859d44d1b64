"""The endpoints of model servers: paths, pages, errors, and answers to clients that do not stream. Pure functions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream.replay.recording import Recording

__all__ = ["PATHS", "api_of_path", "error_of", "pages", "served", "turn_index"]

Json = dict[str, Any]

PATHS = {"/chat/completions": "chat", "/api/chat": "ollama"}
"""The ends of paths, and their APIs."""

_MODEL = "replay"


def api_of_path(path: str) -> str | None:
    """The API of a path without query, such as `/v1/chat/completions`; `None` if no API has it."""
    return next((api for ending, api in PATHS.items() if path.endswith(ending)), None)


def error_of(path: str, message: str) -> Json:
    """An error as the server of the path writes it."""
    if "/api/" in path:
        return {"error": message}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def pages(path: str) -> Any:
    """The JSON of a page that lists models or versions; `None` for another path."""
    if path == "/api/tags":
        return {"models": [{"name": _MODEL, "model": _MODEL, "size": 0, "digest": "0" * 64, "details": {}}]}
    if path == "/api/version":
        return {"version": "0.33.0"}
    if path.endswith("/models"):
        return {"object": "list", "data": [{"id": _MODEL, "object": "model", "created": 0, "owned_by": "replay"}]}
    return None


def served(recording: Recording, api: str | None, request: Mapping[str, Any]) -> Recording:
    """The recording as it is, or the whole answer if the client does not stream."""
    if recording.status >= 400 or api is None or request.get("stream", api == "ollama"):
        return recording
    pieces = recording.messages()
    error = next((piece for piece in pieces if piece.get("error") and not piece.get("done")), None)
    try:
        body = json.dumps(error or (_whole_line if api == "ollama" else _whole_completion)(pieces)).encode()
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        return recording  # no answer of this API
    headers = {**recording.headers, "content-type": "application/json"}
    return replace(recording, body=body, status=500 if error else recording.status, headers=headers, reads=())


def _whole_line(pieces: Iterable[Json]) -> Json:
    """The lines of Ollama's own endpoint as one."""
    answer: Json = {}
    message: Json = {"role": "assistant", "content": ""}
    for piece in pieces:
        said = piece.get("message") or {}
        _join(message, {key: said.get(key) for key in ("content", "thinking")})
        if said.get("tool_calls"):
            message.setdefault("tool_calls", []).extend(said["tool_calls"])
        answer.update(piece)
    return {**answer, "message": message}


def _whole_completion(pieces: Iterable[Json]) -> Json:
    """The chunks of Chat Completions as one completion."""
    answer: Json = {}
    message: Json = {"role": "assistant", "content": None}
    reason = None
    for piece in pieces:
        answer.update({key: value for key, value in piece.items() if value})
        for choice in piece.get("choices") or ():
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or choice.get("message") or {}
            for entry in delta.get("tool_calls") or ():
                _add_call(message.setdefault("tool_calls", []), entry)
            _join(message, {key: text for key, text in delta.items() if key != "role"})
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    return {**answer, "object": "chat.completion", "choices": choices}


def _join(into: Json, texts: Json) -> None:
    """Add each text to the one of its key."""
    for key, text in texts.items():
        if isinstance(text, str):
            into[key] = (into.get(key) or "") + text


def _add_call(calls: list[Json], entry: Json) -> None:
    """Add an entry of `tool_calls`: a call, or the rest of the last one's arguments."""
    function = entry.get("function") or {}
    last = calls[-1] if calls else None
    if last is None or (function.get("name") and (not entry.get("id") or entry["id"] != last["id"])):
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


def turn_index(request: Mapping[str, Any]) -> int:
    """Number of rounds of tool results after the last user message of a request.

    >>> turn_index({"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}]})
    1
    """
    try:
        roles = [message.get("role") for message in request.get("messages") or ()]
    except (TypeError, AttributeError):
        return 0
    last_user = max((place for place, role in enumerate(roles) if role == "user"), default=-1)
    since = roles[last_user + 1 :]
    return sum(role == "tool" and previous != "tool" for previous, role in zip([None, *since], since, strict=False))
