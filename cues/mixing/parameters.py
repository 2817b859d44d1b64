"""What makes a session, and the checks of what callers pass in."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from cues.errors import CueTypeError, CueValueError
from cues.units import checked_number

__all__ = ["SessionOptions", "whole_number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The parameters of `Mixer`, checked; they are explained there.

    Raises
    ------
    CueTypeError, CueValueError : for a parameter outside of its limits.
    """

    sample_rate: int = 24000
    voices: int = 8
    limiter: bool = False
    guard: bool = False
    duck_db: float = -6.0
    gap_limit_ms: float = 1000.0
    follow_speech: bool = False

    def __post_init__(self) -> None:
        checked = {
            "sample_rate": whole_number("sample_rate", self.sample_rate, 1000, 384_000),
            "voices": whole_number("voices", self.voices, 1, 256),
            "duck_db": checked_number("duck_db", self.duck_db, -60.0, 0.0),
            "gap_limit_ms": checked_number("gap_limit_ms", self.gap_limit_ms, 0.0, 60_000.0),
            **{name: bool(getattr(self, name)) for name in ("limiter", "guard", "follow_speech")},
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an int, if it is a whole number from `least` to `most`; a `bool` is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise CueTypeError(f"{name} is {value!r}; it must be a whole number")
    whole = operator.index(value)
    if not least <= whole <= most:
        raise CueValueError(f"{name} is {whole}; it must be {least} … {most}")
    return whole
