"""Bodies of requests: what can be encoded, and a filter that keeps them out of a log.

Lone surrogates are not in UTF-8 and infinite numbers not in JSON. Before version 3 the `openai` package logged bodies.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from stream.errors import StreamValueError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bodies_unlogged", "sendable", "sendable_text"]

DEEPEST = 200
"""Deepest nesting of a body. Python's JSON encoder fails at some hundreds of levels, depending on the stack."""

_in_request: ContextVar[bool] = ContextVar("in_request", default=False)


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


@contextmanager
def bodies_unlogged() -> Iterator[None]:
    """Keep the bodies of requests sent in this context out of the log; other requests are logged unchanged."""
    logging.getLogger("openai._base_client").addFilter(_without_bodies)  # logging adds the same filter only once
    token = _in_request.set(True)
    try:
        yield
    finally:
        _in_request.reset(token)


def _without_bodies(record: logging.LogRecord) -> bool:
    """True: the record stays, but a body of ours is redacted."""
    if _in_request.get() and isinstance(record.args, dict) and "json_data" in record.args:
        record.args = {**record.args, "json_data": "<redacted>", "extra_json": "<redacted>"}
    return True
