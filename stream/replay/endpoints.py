"""The endpoints of model servers: paths, pages, errors, and answers to clients that do not stream. Pure functions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from stream.events import ToolCallEnd
from stream.reading import read_sync
from stream.whole_answers import whole_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.replay.recording import RecordedApi, Recording
    from stream.whole_answers import Api

__all__ = ["PATHS", "api_of_path", "error_of", "pages", "served", "turn_index"]

PATHS: dict[str, RecordedApi] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/api/chat": "ollama",
    "/messages": "anthropic",
    ":streamGenerateContent": "gemini",
    ":generateContent": "gemini",
    "/realtime": "realtime",
    ".BidiGenerateContent": "live",
}
"""The ends of paths; the last two are WebSockets."""

_MODEL = "replay"


def api_of_path(path: str) -> RecordedApi | None:
    """The API of a path without query, such as `/v1/messages`; `None` if no API has it."""
    return next((api for ending, api in PATHS.items() if path.endswith(ending)), None)


def error_of(path: str, status: int, message: str) -> dict[str, Any]:
    """An error as the server of the path's API writes it."""
    api = api_of_path(path)
    if api == "ollama" or (api is None and path.startswith("/api/")):
        return {"error": message}
    if api == "anthropic":
        kind = "not_found_error" if status == 404 else "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": message}}
    if api in ("gemini", "live"):
        name = "NOT_FOUND" if status == 404 else "INVALID_ARGUMENT"
        return {"error": {"code": status, "message": message, "status": name}}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def pages(path: str) -> Any:
    """The JSON of a page that lists models or versions; `None` for another path."""
    if path == "/api/tags":
        return {"models": [{"name": _MODEL, "model": _MODEL, "size": 0, "digest": "0" * 64, "details": {}}]}
    if path == "/api/version":
        return {"version": "0.33.0"}
    if path.endswith("/models"):
        # The fields of OpenAI's list, and those that Anthropic's and Google's clients read.
        model = {"id": _MODEL, "object": "model", "created": 0, "owned_by": "replay", "type": "model"}
        named = {"name": f"models/{_MODEL}", "supportedGenerationMethods": ["generateContent"]}
        return {"object": "list", "data": [{**model, "display_name": _MODEL}], "has_more": False, "models": [named]}
    return None


def served(
    recording: Recording, api: RecordedApi | None, path: str, query: str, request: Mapping[str, Any]
) -> Recording:
    """The recording in the form that the client asks for: a stream (Gemini has two forms of it) or the whole answer."""
    if recording.status >= 400 or api in (None, "realtime", "live"):
        return recording
    if api == "gemini" and not path.endswith(":generateContent"):
        return _gemini_form(recording, as_events="alt=sse" in query.split("&"))
    streams = api != "gemini" and request.get("stream", api == "ollama")
    return recording if streams else _whole(recording, cast("Api", api))


def _gemini_form(recording: Recording, *, as_events: bool) -> Recording:
    """The recording as server-sent events, or as one array."""
    if as_events == (recording.kind == "sse"):
        return recording
    pieces = [json.dumps(message).encode() for message in recording.messages()]
    body = b"".join(b"data: " + piece + b"\r\n\r\n" for piece in pieces) if as_events else b"[%b]" % b"\n,".join(pieces)
    return replace(recording, kind="sse" if as_events else "json", body=body, headers={}, reads=())


def _whole(recording: Recording, api: Api) -> Recording:
    """The answer for a client that does not stream."""
    pieces = recording.messages()
    ends = [event for event in read_sync(pieces) if isinstance(event, ToolCallEnd)] if api == "gemini" else []
    error = next((piece for piece in pieces if piece.get("error") and not piece.get("done")), None)
    try:
        value = error or whole_answer(api, pieces, ends)
        body = json.dumps(value).encode()
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        return recording  # no answer of this API
    status = 500 if error else recording.status
    headers = {**recording.headers, "content-type": "application/json"}
    return replace(recording, kind="json", body=body, status=status, headers=headers, reads=())


def turn_index(request: Mapping[str, Any]) -> int:
    """Number of rounds of tool results, and of a pause, after the last user message of a request in any API's form.

    >>> turn_index({"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}]})
    1
    >>> turn_index({"contents": [{"role": "user", "parts": [{"functionResponse": {}}]}]})
    1
    """
    try:
        messages = request.get("messages") or request.get("input") or request.get("contents") or ()
        roles = [_role(message) for message in messages]
    except (TypeError, AttributeError):
        return 0
    last_user = max((place for place, role in enumerate(roles) if role == "user"), default=-1)
    since = roles[last_user + 1 :]
    is_paused = since[-1:] == ["assistant"]  # Anthropic goes on with its own answer
    return is_paused + sum(
        role == "tool" and previous != "tool" for previous, role in zip([None, *since], since, strict=False)
    )


def _role(message: Mapping[str, Any]) -> str:
    """`"tool"` for a message with a tool's result, else its role."""
    if str(message.get("type")).endswith("_call_output"):
        return "tool"
    parts = message.get("parts") or message.get("content")
    for part in parts if isinstance(parts, list) else ():
        if part.get("type") == "tool_result" or "functionResponse" in part:
            return "tool"
    return str(message.get("role") or "")
