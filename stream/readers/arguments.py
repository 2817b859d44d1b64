"""A call's arguments: from what the model wrote to JSON text that holds an object, or to nothing."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from stream.readers.parse.scanner import JsonScanner

__all__ = ["canonical", "read_arguments"]

_EXACT = 2.0**53  # below it a float that is whole and the same integer are one number
_ENCODINGS = 3  # an object, a string that holds one, and such a string encoded once more


def read_arguments(raw: str) -> str | None:
    r"""Return the arguments as JSON text of an object; None if they cannot be read.

    Empty text and `null` mean no arguments. An object may be encoded into a string once or twice. Raw control
    characters in strings are accepted and come out escaped; nothing else is repaired.

    Examples
    --------
    >>> read_arguments('"{\\"at\\": 5}"')
    '{"at": 5}'
    >>> read_arguments(" null "), read_arguments("[1]")
    ('{}', None)
    """
    text = raw.strip()
    for _ in range(_ENCODINGS):
        if text in ("", "null"):
            return "{}"
        if text[0] == "{":
            return _object(text)
        if text[0] != '"':
            return None
        try:
            text = json.loads(text, strict=False).strip()
        except ValueError:
            return None
    return None


def _object(text: str) -> str | None:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _object_escaped(text)
    return text


def _object_escaped(text: str) -> str | None:
    scanner = JsonScanner()
    if scanner.scan(text, 0) != len(text) or not scanner.done:
        return None
    try:
        return json.dumps(json.loads(text, strict=False), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text  # valid, but deeper or with longer numbers than Python's reader goes


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if abs(number) < _EXACT and number.is_integer() else number


def canonical(arguments_json: str) -> str:
    """Return a text that is the same for equal arguments, whatever their spacing, key order and `1` or `1.0`."""
    try:
        value: Any = json.loads(arguments_json, parse_float=_number)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments_json
