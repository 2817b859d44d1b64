"""Bodies of requests: what can be encoded (no lone surrogates, no infinite numbers), and what they ask for."""

import json
import math
import secrets
from collections.abc import Mapping
from typing import Any

from stream.errors import StreamTypeError, StreamValueError

__all__ = ["asks_for_data", "json_of", "new_call_id", "sendable", "sendable_text"]

_DATA_FIELDS = ("format", "structured_outputs", "guided_json", "json_schema", "grammar")  # Ollama, vLLM, llama-server
DEEPEST = 200
"""Deepest nesting of a body. Python's JSON encoder fails at some hundreds of levels, depending on the stack."""


def new_call_id() -> str:
    """An id for a call that came without one: servers of Mistral's models take 9 letters and digits, and no others.

    >>> len(new_call_id())
    9
    """
    return secrets.token_hex(5)[:9]


def sendable_text(text: str) -> str:
    r"""The text with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    >>> sendable_text("\ud83d\ude00 and \udcff") == "\N{GRINNING FACE} and \ufffd"
    True
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_of(value: Any) -> str:
    """A tool's result as JSON; values and keys that JSON does not have, such as dates, are written with `str`.

    >>> json_of({(1, 2): {3}})
    '{"(1, 2)": "{3}"}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except TypeError:  # `default` is for values alone
        return json.dumps(_with_text_keys(value), ensure_ascii=False, default=str)


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str | int | float | None) else str(key): _with_text_keys(one)
            for key, one in value.items()
        }
    return [_with_text_keys(one) for one in value] if isinstance(value, list | tuple) else value


def sendable(value: Any, deepest: int = DEEPEST) -> Any:
    r"""A body with `sendable_text` applied to all of its texts and keys.

    Raises `StreamValueError` if it nests deeper than `deepest` levels, or a number in it is not finite; and
    `StreamTypeError` for what JSON does not have.

    >>> sendable({"messages": [{"content": "a\udcff"}]}) == {"messages": [{"content": "a\ufffd"}]}
    True
    """
    if isinstance(value, str):
        return sendable_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise StreamValueError(f"the request has the number {value}; it must be finite")
    if not isinstance(value, dict | list | tuple):
        if not isinstance(value, int | float | None):
            raise StreamTypeError(f"the request has a {type(value).__name__}, which JSON does not have")
        return value
    if not deepest:
        raise StreamValueError("the request nests too deep")
    if isinstance(value, dict):
        return {sendable(key): sendable(one, deepest - 1) for key, one in value.items()}
    return [sendable(one, deepest - 1) for one in value]


def asks_for_data(body: Mapping[str, Any]) -> bool:
    """Whether a request wants JSON or another grammar in place of text for people, by any server's field.

    >>> [asks_for_data({"response_format": {"type": kind}}) for kind in ("json_schema", "text")]
    [True, False]
    """
    form = body.get("response_format")
    kind = form.get("type", "text") if isinstance(form, Mapping) else "text"
    return kind != "text" or any(body.get(field) for field in _DATA_FIELDS)
