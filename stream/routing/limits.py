"""Timeouts of a turn."""

from __future__ import annotations

from dataclasses import dataclass, fields

from stream.checks import check_number
from stream.errors import StreamValueError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Timeouts of a turn, seconds of output, above 0; other values raise a `StreamError`.

    Attributes
    ----------
    model_s, tool_s : float
        For the model's next event while no tool runs, and while one runs.
    speech_s : float
        For the next piece of speech while there is text to speak.
    """

    model_s: float = 60.0
    tool_s: float = 600.0
    speech_s: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not check_number(field.name, getattr(self, field.name)) > 0.0:
                raise StreamValueError(f"{field.name} is {getattr(self, field.name)!r}; it must be above 0")
