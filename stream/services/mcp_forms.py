"""Tools and results of MCP: dicts or the SDK's objects, with the protocol's names or, since SDK 2, in snake case."""

from collections.abc import Mapping
from typing import Any

from stream.readers.calls.values import snake_case
from stream.request_bodies import json_of

__all__ = ["is_mcp_result", "mcp_field", "mcp_text"]

PARTS = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""Types of the parts of a result."""


def mcp_field(value: Any, name: str) -> Any:
    """A field by its name in the protocol, also in snake case; `None` if there is none.

    >>> mcp_field({"is_error": True}, "isError")
    True
    """
    names = (name, snake_case(name))
    found = (value.get(one) if isinstance(value, Mapping) else getattr(value, one, None) for one in names)
    return next((one for one in found if one is not None), None)


def is_mcp_result(value: Any) -> bool:
    """Whether a tool's result is one of MCP; a dict is one by the types of its parts."""
    parts = mcp_field(value, "content")
    if not isinstance(parts, list):
        return False
    if not isinstance(value, Mapping):
        return True
    return all(isinstance(part, Mapping) and part.get("type") in PARTS for part in parts) and (
        bool(parts) or mcp_field(value, "isError") is not None
    )


def mcp_text(result: Any) -> str:
    """The texts of a result, with embedded and linked resources; the structured content if it has no parts.

    >>> mcp_text({"content": [{"type": "resource_link", "name": "report.md", "uri": "file:///report.md"}]})
    'report.md: file:///report.md'
    """
    parts = mcp_field(result, "content")
    found = map(_text_of, parts)
    structured = None if parts else mcp_field(result, "structuredContent")
    if structured is not None:
        return json_of(structured)
    return "\n".join(text for text in found if isinstance(text, str))


def _text_of(part: Any) -> Any:
    if mcp_field(part, "type") == "resource_link":
        return f"{mcp_field(part, 'name')}: {mcp_field(part, 'uri')}"
    return mcp_field(part, "text") or mcp_field(mcp_field(part, "resource"), "text")
