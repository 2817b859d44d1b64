"""Arguments and texts as they may stand in a debug log: shapes and harmless short values, no secrets, nothing long."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["redacted", "redacted_arguments"]

SECRET_KEY = re.compile(
    r"pass|secret|token|api.?key|access.?key|private.?key|auth|credential|bearer|cookie|session|signature|\bpin\b"
    r"|\bcvv\b|iban|ssn|card",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile(r"^(sk-|ghp_|gho_|xox[abps]-|AKIA|eyJ|Bearer )|://[^/\s]*@")
LONGEST = 24
DEEPEST = 4


def redacted(value: Any, depth: int = 0) -> Any:
    """The value without what smells of a secret, and with long texts and deep parts as their size alone.

    Examples
    --------
    >>> redacted({"city": "Oslo", "api_key": "abc", "body": "x" * 100})
    {'city': 'Oslo', 'api_key': '<redacted>', 'body': '<100 characters>'}
    """
    if isinstance(value, dict):
        if depth >= DEEPEST:
            return f"<{len(value)} keys>"
        return {
            str(key)[:LONGEST]: "<redacted>" if SECRET_KEY.search(str(key)) else redacted(one, depth + 1)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [redacted(one, depth + 1) for one in value[:8]] if depth < DEEPEST else f"<{len(value)} items>"
    if isinstance(value, str):
        if SECRET_VALUE.search(value):
            return "<redacted>"
        return value if len(value) <= LONGEST else f"<{len(value)} characters>"
    return value


def redacted_arguments(arguments_json: str) -> str:
    """Arguments as JSON text, redacted; text that is no JSON is told by its length alone."""
    try:
        return json.dumps(redacted(json.loads(arguments_json)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return f"<{len(arguments_json)} characters, no JSON>"
