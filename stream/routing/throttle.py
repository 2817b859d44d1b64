"""Limits how often cues sound: users turn off a system that beeps for each of ten calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stream.routing.rules import CueRules

__all__ = ["Throttle"]


class Throttle:
    """Coalesces repeated cues and thins bursts (a token bucket); time is in output samples."""

    __slots__ = ("_last_onset", "_rate", "_rules", "_tokens", "_tokens_at")

    def __init__(self, rules: CueRules, sample_rate: int, now: int) -> None:
        self._rules, self._rate = rules, sample_rate
        self._last_onset: dict[str, int] = {}
        self._tokens, self._tokens_at = float(rules.burst), now

    def admit(self, cue: str, now: int) -> Literal["play", "coalesce", "thin"]:
        """The verdict on `cue` at `now`; a cue that may play is counted."""
        last = self._last_onset.get(cue)
        if last is not None and (now - last) * 1000.0 < self._rules.coalesce_ms * self._rate:
            return "coalesce"
        refill = (now - self._tokens_at) / self._rate * self._rules.sustained_per_s
        self._tokens = min(self._tokens + refill, float(self._rules.burst))
        self._tokens_at = now
        if self._tokens < 1.0:
            return "thin"
        self._tokens -= 1.0
        self._last_onset[cue] = now
        return "play"

    def forget(self) -> None:
        """Coalesce nothing with earlier cues; the burst count stays."""
        self._last_onset.clear()
