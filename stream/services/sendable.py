"""What can be sent: UTF-8 has no half of a surrogate pair, and JSON no infinity. Files, users and models bring both."""

from __future__ import annotations

import math
from typing import Any

from stream.errors import StreamValueError

__all__ = ["sendable", "sendable_text"]

DEEPEST = 200
"""Levels of a body. Python's writer of JSON ends at some hundreds, and where depends on who calls it."""


def sendable_text(text: str) -> str:
    r"""Return a text with halves of surrogate pairs joined, or U+FFFD for one that is alone.

    Examples
    --------
    >>> sendable_text("\ud83d\ude00 and \udcff") == "\N{GRINNING FACE} and \ufffd"
    True
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sendable(value: Any, deepest: int = DEEPEST) -> Any:
    r"""Return a request's body with all of its texts as `sendable_text` makes them, keys included.

    Raises
    ------
    StreamValueError : it nests deeper than `deepest` levels, or a number in it is not finite.

    Examples
    --------
    >>> sendable({"messages": [{"content": "a\udcff"}]}) == {"messages": [{"content": "a\ufffd"}]}
    True
    """
    if isinstance(value, str):
        return sendable_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise StreamValueError(f"a number to be sent is {value}; it must be finite")
    if not isinstance(value, dict | list | tuple):
        return value
    if not deepest:
        raise StreamValueError("what is to be sent nests too deep")
    if isinstance(value, dict):
        return {sendable(key): sendable(one, deepest - 1) for key, one in value.items()}
    return [sendable(one, deepest - 1) for one in value]
