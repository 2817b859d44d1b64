"""The counters of one session."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MixerStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerStats:
    """Counters of one session; also a mapping (`stats["late"]`, `dict(stats)`).

    Attributes
    ----------
    started : int
        Voices that began to sound.
    late : int
        Voices scheduled at a sample that had passed.
    stolen : int
        Voices that lost their slot, or got none, to more important ones.
    limited_samples : int
        Samples clipped at ±1.0 or attenuated by the limiter.
    nonfinite_samples : int
        NaN and infinite samples that were silenced.
    silence_frames : int
        Frames made by `silence`.
    """

    started: int
    late: int
    stolen: int
    limited_samples: int
    nonfinite_samples: int
    silence_frames: int

    def __getitem__(self, name: str) -> int:
        """Return the counter of that name."""
        if name not in self.keys():
            raise KeyError(name)
        value: int = getattr(self, name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Names of the counters."""
        return [field.name for field in fields(self)]
