"""A playing cue: the scheduler's record of it, and when a waiting sound is heard."""

import math
import reprlib
from dataclasses import InitVar, dataclass, field
from typing import Literal, get_args

import numpy as np

from cues._kernels import layout
from cues.cue import Cue
from cues.errors import CueTypeError, CueValueError
from cues.mixing.sound import Sound, prepare
from cues.mixing.state import PAUSE_MS
from cues.signal.fades import MIN_FADE_MS
from cues.units import checked_number, checked_whole_number, db_to_gain, ms_to_samples

__all__ = [
    "LONGEST_RELEASE_MS",
    "MAX_GAIN_DB",
    "PHRASE_FADE_MS",
    "WAIT_FADE_MS",
    "Placement",
    "Playback",
    "Wait",
    "checked_fade_ms",
    "checked_gain_db",
    "checked_wait",
]

Placement = Literal["overlay", "replace", "in_pause"]
_PLACEMENTS = get_args(Placement)

MAX_GAIN_DB = 40.0
"""Highest gain of a voice (dB)."""
LONGEST_RELEASE_MS = 250.0
"""Longest fade of a barge-in (ms)."""
WAIT_FADE_MS = 30.0
"""Fade of a waiting sound where speech begins (ms)."""
PHRASE_FADE_MS = MIN_FADE_MS
"""Fade of a phrase where speech begins (ms): two voices must not be heard at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """When a waiting sound is heard; the fields that are numbers are output samples.

    It begins once neither speech nor a cue (but for loops) was heard for `patience`, and not before `not_before`. While
    a cue sounds it is silent, and keeps its beat. At the first sample of speech it fades over 30 ms: for good, if that
    is at or after `until_heard_from`, the answer, or if it does not begin again; else until it was quiet for `patience`
    again. At `give_up_at` it ends at the latest. If it `ducks`, speech that meets it is ducked; whether it does is
    settled by `play`. Unless it `counts`, the mixer is not active for it before it begins. Other values than whole
    numbers raise `CueTypeError`.
    """

    patience: int = 0
    not_before: int = 0
    until_heard_from: int = layout.NEVER
    begins_again: bool = True
    give_up_at: int = layout.NEVER
    ducks: bool = True
    counts: bool = True

    def __post_init__(self) -> None:
        for name in ("patience", "not_before", "until_heard_from", "give_up_at"):
            least = 0 if name == "patience" else -layout.NEVER
            object.__setattr__(self, name, checked_whole_number(name, getattr(self, name), least, layout.NEVER))


@dataclass(slots=True, eq=False)
class Playback:
    """The scheduler's record of a playing cue; the thread that mixes writes to it. Raises as `Mixer.play` does."""

    cue: Cue
    at: int | None  # requested output sample; None is the next one
    gain_db: float  # the level last asked for
    asked_loop: InitVar[bool | None]  # None: as the cue says
    priority: int  # without a free slot, the higher priority wins, then the later `order`
    placement: Placement
    wait: Wait | None  # any thread may replace it
    sample_rate: InitVar[int]
    loop: bool = field(init=False)
    sound: Sound = field(init=False)  # the cue, prepared
    phrases: tuple[Sound, ...] = field(init=False)  # of a cue that is speech, which always waits for silence
    ducks: bool = field(init=False)  # whether speech is ducked under it
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
    # Of a waiting sound.
    original: tuple[Sound, bool] = field(init=False)  # `sound` and `loop` before a fade replaced them
    stretches: list[tuple[int, int]] = field(default_factory=list)  # in which it sounded
    again: bool = False  # it fades and will wait again
    held: bool = False  # silent under a cue

    def __post_init__(self, asked_loop: bool | None, sample_rate: int) -> None:
        if not isinstance(self.cue, Cue):
            raise CueTypeError(_no_cue(self.cue))
        if self.placement not in _PLACEMENTS:
            raise CueValueError(f"placement is {self.placement!r}; it must be one of {', '.join(_PLACEMENTS)}")
        if self.wait is not None:
            checked_wait(self.wait)
            if self.at is not None:
                raise CueValueError("at is for cues without `wait`, which has not_before")
        if self.at is not None:
            self.at = checked_whole_number("at", self.at, -(1 << 61), 1 << 61)
        self.phrases = tuple(prepare(phrase, sample_rate) for phrase in self.cue.phrases)
        if self.phrases and self.wait is None:
            self.wait = Wait(patience=ms_to_samples(PAUSE_MS, sample_rate), not_before=self.at or 0, begins_again=False)
        self.ducks = not self.phrases and (self.wait is None or self.wait.ducks)
        self.gain_db = checked_gain_db(self.gain_db)
        self.priority = checked_whole_number("priority", self.priority, -(1 << 31), 1 << 31)
        self.loop = self.cue.loop if asked_loop is None else bool(asked_loop)
        if self.phrases:
            self.at, self.placement, self.sound = None, "overlay", self.phrases[0]
        else:
            self.sound = prepare(self.cue, sample_rate, loop=self.loop, replace=self.placement == "replace")
        self.gain = db_to_gain(self.gain_db)
        self.original = self.sound, self.loop

    def begin(self, now: int, turn: int) -> None:
        """Begin to sound at sample `now`; a cue that is speech with the phrase whose `turn` it is."""
        if self.phrases:
            self.sound, self.loop = self.phrases[turn % len(self.phrases)], False
        self.state, self.onset = "sounding", now
        self.end = layout.NEVER if self.loop else now + self.sound.length

    def retire(self) -> None:
        """Leave the slots: done, or, as a waiting sound, back to waiting."""
        spoken = self.phrases and not self.ends and self.end == self.start + self.sound.length
        self.again = self.again or bool(spoken and self.original[1])
        self.state = "waiting" if self.again else "done"
        if self.wait is not None and self.onset is not None:
            self.stretches.append((self.onset, self.end))
        if self.again:
            (self.sound, self.loop), self.onset, self.end = self.original, None, layout.NEVER
            self.again = self.held = self.ends = self.gain_waits = False
            self.gain = db_to_gain(self.gain_db)

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
    def counts(self) -> bool:
        """Whether the mixer is active for it while it waits."""
        return self.wait is None or self.wait.counts

    @property
    def heard_until(self) -> int:
        """The sample from which it is not heard, if other sounds wait for it to end: no tone's loop."""
        if self.phrases:
            return min(self.end, self.start + self.sound.audible[1])
        return 0 if self.wait is not None or self.original[1] else self.end

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


def checked_wait(wait: Wait) -> Wait:
    """`wait` itself; raises unless it is a `Wait`."""
    if not isinstance(wait, Wait):
        raise CueTypeError(f"wait is {reprlib.repr(wait)}; it must be a cues.mixing.voice.Wait")
    return wait


def checked_gain_db(gain_db: float) -> float:
    """`gain_db` as a float; raises unless it is a number up to `MAX_GAIN_DB`."""
    return checked_number("gain_db", gain_db, -math.inf, MAX_GAIN_DB)


def checked_fade_ms(fade_ms: float, longest_ms: float) -> float:
    """`fade_ms` clamped to 5 … `longest_ms`; raises unless it is a number."""
    return min(max(checked_number("fade_ms", fade_ms, -math.inf, math.inf), MIN_FADE_MS), longest_ms)


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
