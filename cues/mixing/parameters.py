"""Checks of what callers pass in: one error message with the parameter, the value and what is allowed."""

from __future__ import annotations

import operator
from typing import Any

from cues.errors import CueTypeError, CueValueError

__all__ = ["number_within", "whole_number"]


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an int, if it is a whole number from `least` to `most`."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise CueTypeError(f"{name} is {value!r}; it must be a whole number") from None
    if not least <= whole <= most:
        raise CueValueError(f"{name} is {whole}; it must be {least} … {most}")
    return whole


def number_within(name: str, value: Any, least: float, most: float) -> float:
    """`value` as a float, if it is a number from `least` to `most`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise CueTypeError(f"{name} is {value!r}; it must be a number") from None
    if not least <= number <= most:  # also refuses NaN
        raise CueValueError(f"{name} is {number:g}; it must be {least:g} … {most:g}")
    return number
