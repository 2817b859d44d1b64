"""Unit conversions and checks of numbers."""

import math
import numbers
import operator
from typing import Any

from cues.errors import CueTypeError, CueValueError

__all__ = [
    "MAX_SAMPLE_RATE",
    "MIN_SAMPLE_RATE",
    "checked_number",
    "checked_sample_rate",
    "checked_whole_number",
    "db_to_gain",
    "gain_to_db",
    "ms_to_samples",
    "s_to_samples",
]

MIN_SAMPLE_RATE = 8_000
MAX_SAMPLE_RATE = 192_000
"""Limits of the rates at which cues are rendered and measured (Hz)."""
_ENORMOUS = 1 << 31  # limits beyond it only guard the arithmetic; messages give them only for values outside
_FIX = "choose a value within these bounds"


def db_to_gain(db: float) -> float:
    """Linear gain of a level in decibels."""
    return float(10.0 ** (db / 20.0))


def gain_to_db(gain: float) -> float:
    """Level in decibels of a linear gain; −inf for zero."""
    return 20.0 * math.log10(gain) if gain > 0.0 else -math.inf


def ms_to_samples(ms: float, sample_rate: int) -> int:
    """Nearest whole number of samples in `ms` milliseconds at `sample_rate` Hz."""
    return s_to_samples(ms / 1000.0, sample_rate)


def s_to_samples(s: float, sample_rate: int) -> int:
    """Nearest whole number of samples in `s` seconds at `sample_rate` Hz."""
    return round(s * sample_rate)


def checked_number(name: str, value: object, least: float, most: float) -> float:
    """`value` as a float; raises if it is no real number (`bool`, strings), NaN, or outside of `least` … `most`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise CueTypeError(f"{name} is {value!r}; it must be a number{_limits(least, most)}")
    real: Any = value
    try:
        number = float(real)
    except OverflowError:  # a whole number may be too large for a float
        number = math.inf if real > 0 else -math.inf
    if not least <= number <= most:
        raise CueValueError(f"{name} is {value!r}; it must be{_limits(least, most, number) or ' a number'}", fix=_FIX)
    return number


def checked_whole_number(name: str, value: object, least: int, most: int) -> int:
    """`value` as an int; raises if it is no whole number (`bool`, `3.0`), or outside of `least` … `most`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise CueTypeError(f"{name} is {value!r}; it must be a whole number{_limits(least, most)}")
    whole = operator.index(value)
    if not least <= whole <= most:
        raise CueValueError(f"{name} is {whole}; it must be a whole number{_limits(least, most, whole)}", fix=_FIX)
    return whole


def checked_sample_rate(sample_rate: object) -> int:
    """`sample_rate` as an int, 8000 … 192,000 Hz; raises as `checked_whole_number` does."""
    return checked_whole_number("sample_rate", sample_rate, MIN_SAMPLE_RATE, MAX_SAMPLE_RATE)


def _limits(least: float, most: float, value: float = 0) -> str:
    """Limits of a `value` for a message; empty if none matters."""
    low, high = (str(limit) if isinstance(limit, int) else f"{limit:g}" for limit in (least, most))
    has_low, has_high = least > -_ENORMOUS or value < least, most < _ENORMOUS or value > most
    if has_low and has_high:
        return f" from {low} to {high}"
    if has_low:
        return f" from {low} on"
    return f" up to {high}" if has_high else ""
