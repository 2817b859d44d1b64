"""The speech's gain: ducked under cues, faded out for a replacing cue, muted after a release.

One duck covers all voices and a hold time after the last, so cues in a row do not pump. The voices' ends are known, so
`plan` computes the next two ramps, and the kernels follow them. The duck is lifted at once when the cues are silent and
the speech pauses, so that an answer begins at full level.
"""

from __future__ import annotations

import math
import struct
from dataclasses import InitVar, dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from cues._kernels import layout
from cues.mixing.state import PAUSE_MS
from cues.signal.fades import CROSSFADE_MS, MIN_FADE_MS
from cues.units import db_to_gain, ms_to_samples

if TYPE_CHECKING:
    from cues.mixing.state import Row
    from cues.mixing.voice import Playback

__all__ = ["ATTACK_MS", "HOLD_MS", "RELEASE_MS", "SpeechBus", "turns_well"]

ATTACK_MS = 20.0
HOLD_MS = 200.0
RELEASE_MS = 300.0
LOOK_MS = 20.0
"""An idle mixer reads no speech: at the begin of a duck, this much silence shows that no speech passes."""
LEAD_MS = 10.0
"""The duck is lifted this long before a stopped cue's end, so at its stop; before another end, by the ramp's length."""
DEEPEST = 0.1
"""Lowest gain of speech ducked for headroom (−20 dB); the cues share the rest."""

_NEVER = layout.NEVER
_STEEPEST_BEND = 10.0 / math.sqrt(3.0)
"""Largest second derivative of the quintic smoothstep."""
_SLACK = 1e-4
_BUS = struct.Struct("=qqqiiffffi")  # as `layout` has it from the wake mark to the flags
_BUS_AT = 8 * layout.WAKE_I64


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Durations in samples."""

    attack: int
    hold: int
    release: int
    crossfade: int
    quick: int
    pause: int
    look: int
    lead: int


@cache
def _lengths(sample_rate: int) -> _Lengths:
    durations_ms = (ATTACK_MS, HOLD_MS, RELEASE_MS, CROSSFADE_MS, MIN_FADE_MS, PAUSE_MS, LOOK_MS, LEAD_MS)
    return _Lengths(*(max(1, ms_to_samples(ms, sample_rate)) for ms in durations_ms))


@dataclass(slots=True, eq=False)
class SpeechBus:
    """Plans the gain of one session's speech."""

    # The ramps are kept here as Python numbers, which take a tenth of the time of a numpy array's items; `plan` writes
    # them to the row. A kernel that lets the next ramp take over changes its row alone: `settle` does the same here.

    row: Row
    voices: list[Playback]  # the slots' own list
    sample_rate: InitVar[int]
    duck_db: InitVar[float]
    _lengths: _Lengths = field(init=False)
    _duck: float = field(init=False)
    _depth: float = field(init=False)
    _duck_end: int = 0
    _replace_end: int = 0
    _fade_end: int = 0
    _lifted_until: int = 0
    _since: int = 0
    _muted: bool = False
    t0: int = 0
    n: int = 0
    g0: float = 1.0
    g1: float = 1.0
    slope: float = 0.0
    rest: int = 0
    next_t0: int = _NEVER
    next_n: int = 0
    next_g1: float = 1.0

    def __post_init__(self, sample_rate: int, duck_db: float) -> None:
        self._lengths = _lengths(sample_rate)
        self._duck = self._depth = db_to_gain(duck_db)

    def begin(self, now: int) -> None:
        """Make room for a voice that begins now; it unmutes the speech."""
        self.settle(now)
        if not self.voices and self._at_rest(now):
            self._since = now  # idle frames are not read
        self._muted = False
        if now < self._lifted_until or (now >= self._duck_end and now >= self._ends()[0]):
            self._depth = self._duck
        self._lifted_until = 0

    def make_room(self, peak: float) -> None:
        """Duck deep enough that full-scale speech and cues of this summed peak stay within ±1.0."""
        # The depth never decreases during a duck, which would pump. A bus with a duck of 0 dB never ducks.
        if self._depth > 1.0 - peak and self._duck < 1.0:
            self._depth = min(self._depth, max(1.0 - peak, DEEPEST))

    def ended(self, voice: Playback) -> None:
        """Keep the end of a voice that is no longer among the voices: it still counts for the hold."""
        if not voice.ducks:
            return
        if voice.placement == "replace":
            self._replace_end = max(self._replace_end, voice.end - self._lengths.crossfade)
        else:
            self._duck_end = max(self._duck_end, voice.end + self._lengths.hold)

    def release(self, now: int, n: int) -> None:
        """Fade out over `n` samples and mute; a fade-out under way goes on instead, also after `resume`."""
        if self._muted or now < self._fade_end:  # its caller has kept no more speech than that fade takes
            self._muted = True
            return
        self.settle(now)
        if self._at_rest(now) and all(voice.end <= now for voice in self.voices):
            self._since = now
        self._muted = True
        self._ramp(now, 0.0, n)
        self._fade_end = self.rest if self.next_t0 == _NEVER else self.rest + n

    def resume(self) -> None:
        """Unmute the speech after the fade of a release."""
        self._muted = False

    @property
    def muted_from(self) -> int:
        """The sample at which the fade of a release ends; −1 if the speech is not muted."""
        return self._fade_end if self._muted else -1

    def plan(self, now: int, heard: int) -> int:
        """Update the ramps and return the sample of the next update; earlier calls change nothing."""
        # Speech was last heard before sample `heard`; it counts since the duck began.
        self.settle(now)
        duck_end, replace_end = self._ends()
        check = self._lift(now, heard, duck_end, replace_end)
        if self._muted or now < self._fade_end or now < replace_end:
            change = self._change_from_silence(now, duck_end, replace_end)
            wake = self._plan_ramps(now, 0.0, change, self._level(change, duck_end, replace_end))
        elif now < self._lifted_until:
            onset = self._lifted_until if self._lifted_until < duck_end else _NEVER
            wake = self._plan_ramps(now, 1.0, onset, self._depth)
        elif now < duck_end:
            wake = self._plan_ramps(now, self._depth, min(_NEVER, duck_end), 1.0)
        else:
            wake = self._plan_ramps(now, 1.0, _NEVER, 1.0)
        return min(wake, check)

    @property
    def end(self) -> int:
        """The sample from which speech passes unchanged if nothing else is planned."""
        if self.next_t0 != _NEVER:
            return self.next_t0 + abs(self.next_n) if self.next_g1 == 1.0 else _NEVER
        return self.rest if self.g1 == 1.0 else _NEVER

    def write(self, wake: int, flags: int) -> None:
        """Write the ramps to the row, with the sample at which to plan again and the flags."""
        ramps = self.t0, self.next_t0, self.n, self.next_n, self.g0, self.g1, self.slope, self.next_g1
        _BUS.pack_into(self.row.words, _BUS_AT, wake, *ramps, flags)

    def _change_from_silence(self, now: int, duck_end: int, replace_end: int) -> int:
        """The sample at which the speech is no longer muted; `NEVER` if that takes a command."""
        changes = (t for t in (self._fade_end, replace_end, self._lifted_until, duck_end) if now < t < _NEVER)
        return min((t for t in changes if self._level(t, duck_end, replace_end) != 0.0), default=_NEVER)

    def _plan_ramps(self, now: int, level: float, change: int, later: float) -> int:
        """Plan ramps to `level` now and to `later` at `change`; return the sample at which to plan again."""
        if level != self.g1:
            if self.next_t0 > self.rest or self.next_g1 != level:  # the next ramp is another, or for later
                self._ramp(now, level, self._length(self.g1, level))
            if self.next_t0 != _NEVER:  # it waits for the running ramp to end
                return min(self.next_t0, change)
        if change == _NEVER or later == level or change < self.rest:
            self.next_t0 = _NEVER
            return change if later != level else _NEVER
        self.next_t0, self.next_g1, self.next_n = change, later, self._length(level, later)
        return _NEVER if later == 1.0 else change

    def _lift(self, now: int, heard: int, duck_end: int, replace_end: int) -> int:
        """Lift the duck where no cue is audible and the speech pauses; return the sample of the next check."""
        if now < self._lifted_until:  # up to the next onset; the cue that it was of may have been stopped
            onsets = (voice.silence(now)[1] for voice in self.voices if voice.ducks)
            self._lifted_until = min(onsets, default=_NEVER)
            return self._lifted_until
        if self._muted or self._depth == 1.0 or (now >= duck_end and self._at_rest(now)):
            return _NEVER
        if now < self._fade_end or now < replace_end:  # the speech is away: there is no duck to lift
            return max(self._fade_end, replace_end)
        lengths = self._lengths
        due = (heard if heard > self._since else self._since + lengths.look - lengths.pause) + lengths.pause
        silent_until = _NEVER
        for voice in self.voices:
            if not voice.ducks:
                continue
            first, last = voice.silence(now)
            due = max(due, first - (lengths.lead if voice.ends else lengths.quick))
            silent_until = min(silent_until, last)
        if due > now or due >= silent_until:
            return min(silent_until, due)
        self._lifted_until = silent_until
        if self.g1 != 1.0 or self.rest > now + lengths.quick:
            self.next_t0 = _NEVER
            self._ramp(now, 1.0, lengths.quick)
        return silent_until

    def _ends(self) -> tuple[int, int]:
        """The samples at which ducking and replacement end; `NEVER` for a loop's."""
        duck, replace, lengths = self._duck_end, self._replace_end, self._lengths
        for voice in self.voices:
            end = voice.end if voice.ducks else 0
            if voice.placement == "replace":
                replace = max(replace, end - lengths.crossfade if end < _NEVER else end)
            elif end + lengths.hold > duck:
                duck = end + lengths.hold if end < _NEVER else end
        return duck, replace

    def _level(self, t: int, duck_end: int, replace_end: int) -> float:
        """Target gain of the speech at sample `t`."""
        if self._muted or t < self._fade_end or t < replace_end:
            return 0.0
        return self._depth if self._lifted_until <= t < duck_end else 1.0

    def _length(self, before: float, after: float) -> int:
        """Length of a ramp, samples; negative for the equal-power law."""
        if before == 0.0 or after == 0.0:
            return -self._lengths.crossfade
        return self._lengths.attack if after < before else self._lengths.release

    def settle(self, now: int) -> None:
        """Let a due ramp take over, as the kernels do."""
        if self.next_t0 <= now:
            self.t0, self.n, self.next_t0 = self.next_t0, self.next_n, _NEVER
            self.g0, self.g1, self.slope = self.g1, self.next_g1, 0.0
            self.rest = self.t0 + abs(self.n)

    def _at_rest(self, now: int) -> bool:
        """Whether the speech passes unchanged."""
        return self.g1 == 1.0 and self.next_t0 == _NEVER and now >= self.rest

    def _ramp(self, now: int, level: float, n: int) -> None:
        """Start a ramp to `level` with the current value and slope, or after the current ramp."""
        # From a steep slope, a long ramp would leave 0 … 1, and a short one would bend too sharply. Steep ramps take 20
        # ms, so the new one waits.
        value, slope = (self.g1, 0.0) if now >= self.rest else self._state(now)
        slope *= abs(n)
        if slope and not turns_well(value, level, slope, _STEEPEST_BEND / self._lengths.quick**2 * n * n):
            self.next_t0, self.next_n, self.next_g1 = self.rest, n, level
            return
        self.t0, self.next_t0 = now, _NEVER
        self.n = abs(n) if slope else n  # the equal-power law cannot start with a slope
        self.g0, self.g1, self.slope = value, level, slope
        self.rest = now + abs(n)

    def _state(self, now: int) -> tuple[float, float]:
        """Gain and slope (per sample) at `now`, within a ramp."""
        n, k, g0, g1 = abs(self.n), now - self.t0, self.g0, self.g1
        s, u = self.slope, k / n
        q = u**3 * (10 - 15 * u + 6 * u * u)
        dq = 30 * u * u * (1 - u) ** 2
        if self.n > 0:
            value = g0 + (g1 - g0) * q + s * (u - 6 * u**3 + 8 * u**4 - 3 * u**5)
            return value, ((g1 - g0) * dq + s * (1 - 18 * u**2 + 32 * u**3 - 15 * u**4)) / n
        angle = 0.5 * math.pi * q
        value = g0 * math.cos(angle) + g1 * math.sin(angle)
        return value, 0.5 * math.pi * dq / n * (g1 * math.cos(angle) - g0 * math.sin(angle))


def turns_well(value: float, level: float, slope: float, most_bend: float) -> bool:
    """Whether a ramp of initial `slope` (per ramp) stays within 0 … 1 and bends no more than `most_bend` (per ramp²).

    In the terms of `cues._kernels.layout`, with d = level − value, the ramp's derivative is `(1 − u)²·((30d − 15s)·u² +
    2s·u + s)` and its second derivative `u·(1 − u)·(a + b·u)` with a = 60d − 36s and b = 60s − 120d.
    """
    d = level - value
    a, b = 60.0 * d - 36.0 * slope, 60.0 * slope - 120.0 * d
    for u in _roots(-3.0 * b, b - a, a):
        if abs(u * (1.0 - u) * (a + b * u)) > most_bend:
            return False
    for u in _roots(30.0 * d - 15.0 * slope, slope, slope):
        gain = value + d * (u**3 * (10 - 15 * u + 6 * u * u)) + slope * (u - 6 * u**3 + 8 * u**4 - 3 * u**5)
        if not -_SLACK < gain < 1.0 + _SLACK:
            return False
    return True


def _roots(a: float, half_b: float, c: float) -> tuple[float, ...]:
    """The roots of `a·u² + 2·half_b·u + c` between 0 and 1."""
    square = half_b * half_b - a * c
    if square < 0.0:
        return ()
    # Without cancellation: the larger root of the sum, the other by the product.
    sum_ = -(half_b + math.copysign(math.sqrt(square), half_b))
    roots = (sum_ / a if a else 2.0, c / sum_ if sum_ else 2.0)
    return tuple(u for u in roots if 0.0 < u < 1.0)
