"""Bodies of requests that can be encoded: lone surrogates are not in UTF-8, and infinite numbers not in JSON."""

from __future__ import annotations

import math
from typing import Any

from stream.errors import StreamValueError

__all__ = ["sendable", "sendable_text"]

DEEPEST = 200
"""Deepest nesting of a body. Python's JSON encoder fails at some hundreds of levels, depending on the stack."""


def sendable_text(text: str) -> str:
    r"""The text with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    >>> sendable_text("\ud83d\ude00 and \udcff") == "\N{GRINNING FACE} and \ufffd"
    True
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sendable(value: Any, deepest: int = DEEPEST) -> Any:
    r"""A body with `sendable_text` applied to all of its texts and keys.

    Raises `StreamValueError` if it nests deeper than `deepest` levels, or a number in it is not finite.

    >>> sendable({"messages": [{"content": "a\udcff"}]}) == {"messages": [{"content": "a\ufffd"}]}
    True
    """
    if isinstance(value, str):
        return sendable_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise StreamValueError(f"the request has the number {value}; it must be finite")
    if not isinstance(value, dict | list | tuple):
        return value
    if not deepest:
        raise StreamValueError("the request nests too deep")
    if isinstance(value, dict):
        return {sendable(key): sendable(one, deepest - 1) for key, one in value.items()}
    return [sendable(one, deepest - 1) for one in value]
