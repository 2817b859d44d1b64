"""Values as servers and their clients' packages send them: of any type, in any place."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from stream.readers.options import LONGEST_NAME

__all__ = ["NOTHING", "count", "dumps", "fields_of", "listed", "name_of", "number", "plain", "snake_case", "text_of"]

NOTHING: dict[str, Any] = {}
_DEEPEST = 16  # levels at which calls, results and errors hold objects
_LARGEST = 1e18
_HUMPS = re.compile(r"(?<=[a-z])[A-Z]")


def fields_of(value: Any) -> Mapping[str, Any]:
    """An object's fields by name, without copying what need not be copied; `NOTHING` if it has none."""
    if type(value) is dict:
        return value
    try:
        found, extra = value.__dict__, value.__pydantic_extra__
    except Exception:  # noqa: BLE001  (an attribute of somebody else's object may raise anything)
        with suppress(Exception):
            return value if isinstance(value, Mapping) else value.__dict__
        return NOTHING
    return {**found, **extra} if extra else found


def listed(value: Any) -> Sequence[Any]:
    """A list's items; none for other values."""
    return value if isinstance(value, list | tuple) else ()


def plain(value: Any, levels: int = _DEEPEST) -> Any:
    """Objects as dicts, as deep as calls and errors go."""
    if value is None or isinstance(value, str | int | float | dict) or not levels:
        return value
    if isinstance(value, list | tuple):
        return [plain(item, levels - 1) for item in value]
    found = fields_of(value)
    return None if found is NOTHING else {key: plain(item, levels - 1) for key, item in found.items()}


def count(value: Any) -> int | None:
    """A value, if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: Any) -> float | None:
    """A value, if it is a number of a plausible size."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _LARGEST else None


def text_of(value: Any) -> str:
    """A text unchanged, any other value as JSON; `""` for `None`, and for values that nest too deep."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def name_of(value: Any) -> str:
    """A name, an id or a key as text, cut where it is longer than any."""
    return text_of(value)[:LONGEST_NAME]


@lru_cache(maxsize=1024)
def snake_case(name: str) -> str:
    """A field's name in snake case, as the packages of Google and of MCP write what the protocol has in camel case.

    >>> snake_case("functionCall")
    'function_call'
    """
    return _HUMPS.sub(lambda hump: f"_{hump[0].lower()}", name)


def dumps(value: Any) -> str:
    """A value as JSON; `""` if that cannot be written."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""
