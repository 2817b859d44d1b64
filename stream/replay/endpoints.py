"""The endpoints of model servers: paths, pages, errors, and answers to clients that do not stream. Pure functions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stream.events import ToolCallEnd
from stream.reading import read_sync
from stream.replay.recording import Recording

__all__ = ["PATHS", "api_of_path", "error_of", "json_answer", "pages", "served", "turn_index"]

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


def json_answer(status: int, value: Any) -> Recording:
    """An answer that is not a stream."""
    return Recording(name="", kind="json", body=json.dumps(value).encode(), status=status)


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
        value = error or (_whole_line if api == "ollama" else _whole_completion)(pieces)
        return json_answer(500 if error else recording.status, value)
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        return recording  # no answer of this API


def _whole_line(pieces: Sequence[Json]) -> Json:
    """The lines of Ollama's own endpoint as one."""
    said = [piece.get("message") or {} for piece in pieces]
    message: Json = {"role": "assistant", "content": "", **_texts(said)}
    if calls := [call for one in said for call in one.get("tool_calls") or ()]:
        message["tool_calls"] = calls
    return {**{key: value for piece in pieces for key, value in piece.items()}, "message": message}


def _whole_completion(pieces: Sequence[Json]) -> Json:
    """The chunks of Chat Completions as one completion."""
    choices = [choice for piece in pieces for choice in piece.get("choices") or ()]
    said = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    message: Json = {"role": "assistant", "content": None, **_texts(said)}
    calls = read_sync({"choices": [{"delta": {"tool_calls": one.get("tool_calls")}}]} for one in said)
    if ends := [event for event in calls if isinstance(event, ToolCallEnd)]:
        message["tool_calls"] = [
            {
                "id": end.tool_call_id,
                "type": "function",
                "function": {"name": end.tool_name, "arguments": end.arguments_json},
            }
            for end in ends
        ]
    reason = next((choice["finish_reason"] for choice in reversed(choices) if choice.get("finish_reason")), None)
    answer = {key: value for piece in pieces for key, value in piece.items() if value}
    whole = [{"index": 0, "message": message, "finish_reason": reason}]
    return {**answer, "object": "chat.completion", "choices": whole}


def _texts(said: Sequence[Json]) -> Json:
    """The texts of each field but the role, joined."""
    fields = dict.fromkeys(key for one in said for key, text in one.items() if isinstance(text, str) and key != "role")
    return {key: "".join(one.get(key) or "" for one in said) for key in fields}


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
