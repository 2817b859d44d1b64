"""A playing cue: `Playback` is the scheduler's record, `Voice` the handle that `Mixer.play` returns."""

from __future__ import annotations

import math
import reprlib
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from cues._kernels import layout
from cues.cue import Cue
from cues.errors import CueTypeError, CueValueError
from cues.mixing.sound import prepare
from cues.signal.fades import MIN_FADE_MS
from cues.units import checked_number, checked_whole_number, db_to_gain

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues.mixing.sound import Sound

__all__ = [
    "LONGEST_RELEASE_MS",
    "MAX_GAIN_DB",
    "Placement",
    "Playback",
    "Voice",
    "checked_fade_ms",
    "checked_playback",
]

Placement = Literal["overlay", "replace", "in_pause"]
_PLACEMENTS = get_args(Placement)

MAX_GAIN_DB = 40.0
"""Highest gain of a voice (dB)."""
LONGEST_RELEASE_MS = 250.0
"""Longest fade of a barge-in (ms)."""


@dataclass(slots=True, eq=False, kw_only=True)
class Playback:
    """The scheduler's record of a playing cue; the thread that mixes writes to it."""

    cue: Cue
    sound: Sound  # the cue, prepared
    at: int | None  # requested output sample; None is the next one
    gain_db: float  # the level last asked for
    loop: bool
    priority: int  # without a free slot, the higher priority wins, then the later `order`
    placement: Placement
    order: int = 0
    gain: float = field(init=False)  # linear; the one that has taken effect
    follow_gain: float = 1.0  # correction of `gain` if the mixer follows the speech
    state: Literal["waiting", "sounding", "done"] = "waiting"
    slot: int = -1
    gain_waits: bool = False  # for a ramp to end
    onset: int | None = None  # output sample at which it began to sound
    end: int = layout.NEVER  # output sample at which it ends; `NEVER` for a loop that nobody stopped
    # Its slot, as `cues._kernels.layout` has it: the sample at which its sound starts, and its ramp.
    start: int = 0
    t0: int = 0
    n: int = 0
    g0: float = 0.0
    g1: float = 0.0
    ends: bool = False

    def __post_init__(self) -> None:
        self.gain = db_to_gain(self.gain_db)

    def begin(self, now: int) -> None:
        """Begin to sound at sample `now`."""
        self.state, self.onset = "sounding", now
        self.end = layout.NEVER if self.loop else now + self.sound.length

    def silence(self, now: int) -> tuple[int, int]:
        """The next stretch in which it is not audible; it ends at the onset of a loop's next period.

        A loop that is audible for more than three quarters of its period counts as audible until its end.
        """
        start = self.start
        first, last = self.sound.audible
        if self.placement == "replace" or (self.loop and 4 * (last - first) > 3 * self.sound.length):
            return self.end, layout.NEVER
        if not self.loop:
            return min(self.end, start + last), layout.NEVER
        start += (now - start - first) // self.sound.length * self.sound.length
        onset = start + self.sound.length + first
        return min(self.end, start + last), onset if onset < self.end else layout.NEVER

    @property
    def ramp_end(self) -> int:
        """The sample at which its ramp ends or ended."""
        return self.start + self.t0 + self.n if self.n else 0

    def reach(self, now: int) -> float:
        """The largest magnitude that it can still reach."""
        if now >= self.end:
            return 0.0
        peak = self.sound.peak if self.loop else self.sound.peak_from(now - self.start)
        return max(self.g0, self.g1) * peak


class _Scheduler(Protocol):
    """The methods of `cues.mixing.scheduler.Scheduler` that a voice calls."""

    closed: bool

    def post(self, command: Callable[..., None], *arguments: Any) -> None: ...

    def stop(self, playback: Playback, fade_ms: float) -> None: ...

    def change_gain(self, playback: Playback, gain: float) -> None: ...

    def sounds_in(self, playback: Playback) -> bool: ...


class Voice:
    """The handle of a playing cue, returned by `Mixer.play`. Any thread."""

    __slots__ = ("_playback", "_scheduler")

    def __init__(self, scheduler: _Scheduler, playback: Playback) -> None:
        self._scheduler, self._playback = scheduler, playback

    @property
    def cue(self) -> Cue:
        """The cue."""
        return self._playback.cue

    @property
    def onset(self) -> int | None:
        """Output sample at which it began to sound; None until then."""
        return self._playback.onset

    @property
    def done(self) -> bool:
        """Whether it has ended, or was stopped or its mixer closed before it began."""
        playback = self._playback
        if playback.state == "waiting":
            return self._scheduler.closed
        return playback.state == "done" or not self._scheduler.sounds_in(playback)

    @property
    def active(self) -> bool:
        """The old name of `not done`."""
        warnings.warn(
            "Voice.active is now `not Voice.done`; the old name goes in 0.3", DeprecationWarning, stacklevel=2
        )
        return not self.done

    @property
    def gain_db(self) -> float:
        """Level, at most 40 dB; −inf is silence. A new value is reached by a ramp of 10 ms."""
        return self._playback.gain_db

    @gain_db.setter
    def gain_db(self, gain_db: float) -> None:
        self._playback.gain_db = _checked_gain_db(gain_db)
        self._scheduler.post(self._scheduler.change_gain, self._playback, db_to_gain(self._playback.gain_db))

    def stop(self, fade_ms: float = 10.0) -> None:
        """Fade out from the next `mix` over `fade_ms` (clamped to 5 … 10,000 ms); a waiting voice never begins."""
        self._scheduler.post(self._scheduler.stop, self._playback, checked_fade_ms(fade_ms, 10_000.0))

    def __repr__(self) -> str:
        state = "done" if self.done else self._playback.state
        return f"<Voice of {self.cue.name!r}, {state}, {self.gain_db:g} dB>"


def _checked_gain_db(gain_db: float) -> float:
    """`gain_db` as a float; raises unless it is a number up to `MAX_GAIN_DB`."""
    return checked_number("gain_db", gain_db, -math.inf, MAX_GAIN_DB)


def checked_fade_ms(fade_ms: float, longest_ms: float) -> float:
    """`fade_ms` clamped to 5 … `longest_ms`; raises unless it is a number."""
    return min(max(checked_number("fade_ms", fade_ms, -math.inf, math.inf), MIN_FADE_MS), longest_ms)


def checked_playback(
    cue: Cue,
    sample_rate: int,
    *,
    at: int | None,
    gain_db: float,
    loop: bool | None,
    priority: int,
    placement: Placement,
) -> Playback:
    """A playback with the arguments of `Mixer.play`, its cue prepared for `sample_rate`; raises as `play` does."""
    if not isinstance(cue, Cue):
        raise CueTypeError(_no_cue(cue))
    if placement == "gap":  # type: ignore[comparison-overlap]  # the old name, for one version
        warnings.warn('placement="gap" is now "in_pause"; the old name goes in 0.3', DeprecationWarning, stacklevel=3)
        placement = "in_pause"
    if placement not in _PLACEMENTS:
        raise CueValueError(f"placement is {placement!r}; it must be one of {', '.join(_PLACEMENTS)}")
    loop = cue.loop if loop is None else bool(loop)
    return Playback(
        cue=cue,
        sound=prepare(cue, sample_rate, loop=loop, replace=placement == "replace"),
        at=None if at is None else checked_whole_number("at", at, -(1 << 61), 1 << 61),
        gain_db=_checked_gain_db(gain_db),
        loop=loop,
        priority=checked_whole_number("priority", priority, -(1 << 31), 1 << 31),
        placement=placement,
    )


_LONGEST_NAME = 40


def _no_cue(thing: object) -> str:
    """Error message for a value that is not a cue; it does not print an array's samples."""
    if isinstance(thing, np.ndarray):
        return (
            f"cue is an array of {thing.dtype}, shape {thing.shape}; it must be a cues.Cue: "
            'cues.Cue(name="mine", samples=…, sample_rate=…) makes one'
        )
    name = thing if isinstance(thing, str) and len(thing) < _LONGEST_NAME else "agent"
    return f"cue is {reprlib.repr(thing)}; it must be a cues.Cue, such as bank[{name!r}]"
