"""The formats that can be read, by name, and what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream.readers.message_reader import MessageReader
    from stream.readers.options import Tools

__all__ = ["FORMATS", "format_of", "reader_for"]

FORMATS = {
    "chat": ("stream.readers.openai_reader", "OpenAIReader"),
    "ollama": ("stream.readers.ollama_reader", "OllamaReader"),
    "responses": ("stream.readers.responses_reader", "ResponsesReader"),
    "realtime": ("stream.readers.realtime_reader", "RealtimeReader"),
    "anthropic": ("stream.readers.anthropic_reader", "AnthropicReader"),
    "gemini": ("stream.readers.gemini_reader", "GeminiReader"),
    "live": ("stream.readers.live_reader", "LiveReader"),
}
"""Modules and names of the readers, which are imported when a stream is in their format."""
# What decides: a type up to its first dot, or a whole one; then fields that are there and not null.
_TYPES = {
    **dict.fromkeys(
        ("session", "conversation", "input_audio_buffer", "output_audio_buffer", "rate_limits"), "realtime"
    ),
    **dict.fromkeys(("message_start", "message_delta", "message_stop"), "anthropic"),
    **{f"content_block_{step}": "anthropic" for step in ("start", "delta", "stop")},
}
_FIELDS = {
    "choices": "chat",
    **dict.fromkeys(("candidates", "promptFeedback", "prompt_feedback"), "gemini"),
    **{
        name: "live"
        for camel, snake in (
            ("setupComplete", "setup_complete"), ("serverContent", "server_content"), ("toolCall", "tool_call"),
            ("toolCallCancellation", "tool_call_cancellation"), ("goAway", "go_away"),
            ("sessionResumptionUpdate", "session_resumption_update"),
        )
        for name in (camel, snake)
    },
}  # fmt: skip


def format_of(fields: Mapping[str, Any]) -> str | None:
    """The format of a message; `None` if it could be of several.

    Examples
    --------
    >>> format_of({"type": "message_start"}), format_of({"candidates": []}), format_of({"type": "ping"})
    ('anthropic', 'gemini', None)
    """
    kind = fields.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            is_realtime = fields.get("event_id") or _field(fields.get("response"), "object") == "realtime.response"
            return "realtime" if is_realtime else "responses"
        if kind == "error":
            return "realtime" if fields.get("event_id") else "responses"  # a failure is one in any format
        if found := _TYPES.get(kind) or (_TYPES.get(kind.partition(".")[0]) if "." in kind else None):
            return found
    if fields.get("object") in ("chat.completion.chunk", "error"):
        return "chat"
    if "done" in fields and (fields.get("message") is not None or isinstance(fields.get("response"), str)):
        return "ollama"
    found = next((format_ for name, format_ in _FIELDS.items() if fields.get(name) is not None), None)
    return found or ("chat" if fields.get("error") else None)


def reader_for(name: str, tools: Tools = None, **options: Any) -> MessageReader:
    """A new reader for the format with this name; see `FORMATS`."""
    reader: MessageReader = _class_of(name)(tools, **options)
    return reader


@cache
def _class_of(name: str) -> Any:
    module, reader = FORMATS[name]
    return getattr(import_module(module), reader)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
