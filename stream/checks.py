"""Checks of parameters, so that a mistake raises at construction and not in a live call."""

import math
import numbers
import re
from typing import Any

from stream.errors import StreamTypeError, StreamValueError

__all__ = ["are_texts", "check_choice", "check_number", "check_patterns", "check_whole_number", "header_value"]

_NOT_IN_A_HEADER = re.compile(r"[^\t -~]")


def check_number(name: str, value: object) -> Any:
    """`value`, if it is a number; raises `StreamTypeError` for others and for a `bool`, `StreamValueError` for NaN.

    >>> check_number("tool_s", "60")
    Traceback (most recent call last):
    stream.errors.StreamTypeError: tool_s is '60'; it must be a number
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise StreamTypeError(f"{name} is {value!r}; it must be a number")
    try:
        is_number = not math.isnan(value)
    except OverflowError:
        raise StreamValueError(f"{name} has more digits than a float holds") from None
    if not is_number:
        raise StreamValueError(f"{name} is {value!r}; it must be a number")
    return value


def check_whole_number(name: str, value: object, least: int) -> None:
    """Reject all but integers of at least `least`, by `StreamTypeError` (a `bool`, too) or `StreamValueError`.

    >>> check_whole_number("burst", 0, 1)
    Traceback (most recent call last):
    stream.errors.StreamValueError: burst is 0; it must be 1 or more
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise StreamTypeError(f"{name} is {value!r}; it must be a whole number")
    if value < least:
        raise StreamValueError(f"{name} is {value!r}; it must be {least} or more")


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Reject everything but one of the `allowed` values, by `StreamValueError`.

    >>> check_choice("told", "now", ("hide", "run"))
    Traceback (most recent call last):
    stream.errors.StreamValueError: told is 'now'; it must be 'hide' or 'run'
    """
    if value not in allowed:
        *others, last = map(repr, allowed)
        raise StreamValueError(f"{name} is {value!r}; it must be {', '.join(others)} or {last}")


def are_texts(values: object) -> bool:
    """Whether `values` is a collection of strings; one string is not."""
    return isinstance(values, tuple | list | set | frozenset) and all(isinstance(value, str) for value in values)


def check_patterns(name: str, value: object, example: str) -> None:
    """Reject everything but a collection of patterns for tool names, by `StreamTypeError`; one string is not.

    >>> check_patterns("agent_tools", "research_*", "research_*")
    Traceback (most recent call last):
    stream.errors.StreamTypeError: agent_tools is 'research_*'; it must be patterns, as ("research_*",)
    """
    if not are_texts(value):
        raise StreamTypeError(f'{name} is {value!r}; it must be patterns, as ("{example}",)')


def header_value(name: str, value: object) -> str:
    r"""`value` without white space around it, if it can stand in an HTTP header; no error quotes it: it may be a key.

    >>> header_value("api_key", "hunter2\r\n")
    'hunter2'
    >>> header_value("api_key", "hun\nter2")
    Traceback (most recent call last):
    stream.errors.StreamValueError: api_key has U+000A as character 4; an HTTP header takes printable ASCII alone
    """
    if not isinstance(value, str):
        raise StreamTypeError(f"{name} is {type(value).__name__}; it must be text")
    stripped = value.strip()
    if odd := _NOT_IN_A_HEADER.search(stripped):
        place = value.index(stripped) + odd.start() + 1
        raise StreamValueError(
            f"{name} has U+{ord(odd[0]):04X} as character {place}; an HTTP header takes printable ASCII alone"
        )
    return stripped
