"""Options of a session."""

from __future__ import annotations

from dataclasses import dataclass

from cues.units import checked_number, checked_whole_number

__all__ = ["PAUSE_MS", "MixerOptions"]

PAUSE_MS = 80.0
"""Least length of a pause in the speech, ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerOptions:
    """Checked parameters of `Mixer`, which documents them."""

    sample_rate: int = 24000
    voices: int = 8
    limiter: bool = False
    guard: bool = False
    duck_db: float = -6.0
    gap_limit_ms: float = 1000.0
    follow_speech: bool = False
    channels: int = 1

    def __post_init__(self) -> None:
        checked = {
            "sample_rate": checked_whole_number("sample_rate", self.sample_rate, 1000, 384_000),
            "voices": checked_whole_number("voices", self.voices, 1, 256),
            "channels": checked_whole_number("channels", self.channels, 1, 64),
            "duck_db": checked_number("duck_db", self.duck_db, -60.0, 0.0),
            "gap_limit_ms": checked_number("gap_limit_ms", self.gap_limit_ms, 0.0, 60_000.0),
            **{name: bool(getattr(self, name)) for name in ("limiter", "guard", "follow_speech")},
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
