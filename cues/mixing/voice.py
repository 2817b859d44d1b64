"""A voice: one sounding of a cue, and the handle that `Mixer.play` returns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cues.signal.fades import MIN_FADE_MS
from cues.units import checked_number, db_to_gain

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues.cue import Cue
    from cues.mixing.sound import Sound

__all__ = ["LONGEST_RELEASE_MS", "MAX_GAIN_DB", "Placement", "Voice", "checked_fade_ms", "checked_gain_db"]

Placement = Literal["overlay", "replace", "gap"]

MAX_GAIN_DB = 40.0
"""No voice is amplified by more (dB)."""
LONGEST_RELEASE_MS = 250.0
"""A barge-in takes no longer than this (ms)."""


class _Scheduler(Protocol):
    """The part of `cues.mixing.scheduler.Scheduler` that a voice calls."""

    def post(self, command: Callable[..., None], *arguments: Any) -> None: ...

    def stop(self, voice: Voice, fade_ms: float) -> None: ...

    def change_gain(self, voice: Voice) -> None: ...

    def sounds_in(self, voice: Voice) -> bool: ...


class Voice:
    """One sounding of a cue. Made by `Mixer.play`; its methods may be called from any thread, at any time.

    Attributes
    ----------
    cue : what sounds.
    at : absolute output sample that was asked for.
    priority : higher wins where voices are short.
    loop : whether it goes on until it is stopped.
    placement : "overlay", "replace" or "gap".
    onset : the output sample at which it began to sound; `None` before that.
    """

    __slots__ = (
        "_gain_db",
        "_scheduler",
        "at",
        "cue",
        "gain_waits",
        "loop",
        "offset_db",
        "onset",
        "order",
        "placement",
        "priority",
        "slot",
        "sound",
        "state",
    )

    def __init__(
        self,
        scheduler: _Scheduler,
        cue: Cue,
        sound: Sound,
        *,
        at: int | None,
        gain_db: float,
        loop: bool,
        priority: int,
        placement: Placement,
    ) -> None:
        self._scheduler = scheduler
        self._gain_db = gain_db
        self.cue = cue
        self.sound = sound
        self.at = at
        self.loop = loop
        self.priority = priority
        self.placement: Placement = placement
        self.state: Literal["waiting", "sounding", "done"] = "waiting"
        self.slot = -1
        self.order = 0
        self.gain_waits = False
        self.offset_db = 0.0
        self.onset: int | None = None

    @property
    def active(self) -> bool:
        """Whether it sounds or still waits for its time."""
        if self.state == "waiting":
            return not self._scheduler.closed  # what has not begun by then never does
        return self.state == "sounding" and self._scheduler.sounds_in(self)

    @property
    def gain_db(self) -> float:
        """Level in decibels; setting it takes 10 ms, without a click."""
        return self._gain_db

    @gain_db.setter
    def gain_db(self, gain_db: float) -> None:
        self._gain_db = checked_gain_db(gain_db)
        self._scheduler.post(self._scheduler.change_gain, self)

    @property
    def gain(self) -> float:
        """`gain_db`, and what the mixer adds to follow the speech, as a factor."""
        return db_to_gain(self._gain_db + self.offset_db)

    def stop(self, fade_ms: float = 10.0) -> None:
        """Fade out over `fade_ms` (5 … 10,000 ms; less is taken as 5) from the next `mix` on, or never begin."""
        self._scheduler.post(self._scheduler.stop, self, checked_fade_ms(fade_ms, 10_000.0))

    def __repr__(self) -> str:
        state = self.state if self.active else "done"
        return f"<Voice of {self.cue.name!r}, {state}, {self._gain_db:g} dB>"


def checked_gain_db(gain_db: float) -> float:
    """`gain_db` as a float, if it is a number of at most `MAX_GAIN_DB`; −inf is silence."""
    return checked_number("gain_db", gain_db, -math.inf, MAX_GAIN_DB)


def checked_fade_ms(fade_ms: float, longest_ms: float) -> float:
    """`fade_ms` brought into 5 … `longest_ms`, if it is a number."""
    return min(max(checked_number("fade_ms", fade_ms, -math.inf, math.inf), MIN_FADE_MS), longest_ms)
