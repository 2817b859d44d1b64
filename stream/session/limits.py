"""How long a session waits for others."""

from __future__ import annotations

from dataclasses import dataclass, fields

from stream.checks import check_number
from stream.errors import StreamValueError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Watchdog, in seconds of stream time, each above 0.

    Attributes
    ----------
    model_s : for the next event of a model that is not waiting for a tool.
    tool_s : for the next event while a tool runs.
    speech_s : for the next piece of speech once there is text to speak.

    Raises
    ------
    StreamTypeError, StreamValueError : for what is no number, or none above 0.
    """

    model_s: float = 60.0
    tool_s: float = 600.0
    speech_s: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not check_number(field.name, getattr(self, field.name)) > 0.0:
                raise StreamValueError(f"{field.name} is {getattr(self, field.name)!r}; it must be above 0")
