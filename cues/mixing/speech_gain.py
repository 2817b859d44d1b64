"""The speech's gain: ducked under cues, faded out for a replacing cue, muted after a release.

One duck covers all voices and a hold time after the last, so cues in a row do not pump. The voices' ends are known, so
`plan` computes the next two ramps, and the kernels follow them. The duck is lifted at once when the cues are silent and
the speech pauses, so that an answer begins at full level.
"""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from cues._kernels import layout
from cues.mixing.parameters import PAUSE_MS
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
DEEPEST = 0.1
"""Lowest gain of speech ducked for headroom (−20 dB); the cues share the rest."""

_NEVER = layout.NEVER
_STEEPEST_BEND = 10.0 / math.sqrt(3.0)
"""Largest second derivative of the quintic smoothstep."""
_SLACK = 1e-4
_RAMPS = struct.Struct("=qqiiffff")
_RAMPS_AT = 8 * layout.SPEECH_T0_I64


class _Lengths(NamedTuple):
    """Durations in samples, and the largest second derivative of a gain per sample²."""

    attack: int
    hold: int
    release: int
    crossfade: int
    quick: int
    pause: int
    look: int
    most_bend: float


@cache
def _lengths(sample_rate: int) -> _Lengths:
    durations_ms = (ATTACK_MS, HOLD_MS, RELEASE_MS, CROSSFADE_MS, MIN_FADE_MS, PAUSE_MS, LOOK_MS)
    attack, hold, release, crossfade, quick, pause, look = (
        max(1, ms_to_samples(ms, sample_rate)) for ms in durations_ms
    )
    return _Lengths(attack, hold, release, crossfade, quick, pause, look, _STEEPEST_BEND / quick**2)


class SpeechBus:
    """Plans the gain of one session's speech.

    The ramps are kept here as Python numbers, which take a tenth of the time of a numpy array's items; `plan` writes
    them to the row. A kernel that lets the next ramp take over changes its row alone: `_settle` does the same here.
    """

    __slots__ = (
        "_depth",
        "_duck",
        "_duck_end",
        "_fade_end",
        "_g0",
        "_g1",
        "_lengths",
        "_lifted_until",
        "_muted",
        "_n",
        "_next_g1",
        "_next_n",
        "_next_t0",
        "_replace_end",
        "_row",
        "_since",
        "_slope",
        "_t0",
        "_voices",
    )

    def __init__(self, row: Row, sample_rate: int, duck_db: float) -> None:
        self._row = row
        self._lengths = _lengths(sample_rate)
        self._duck = self._depth = db_to_gain(duck_db)
        self._voices: list[Playback] = []
        self._duck_end = self._replace_end = self._fade_end = 0
        self._lifted_until = self._since = 0
        self._muted = False
        self._t0 = self._n = self._next_n = 0
        self._next_t0 = _NEVER
        self._g0 = self._g1 = self._next_g1 = 1.0
        self._slope = 0.0

    @property
    def muted(self) -> bool:
        """Whether a release mutes the speech."""
        return self._muted

    def move_to(self, row: Row) -> None:
        """Continue in another row, a copy of this one."""
        self._row = row

    def begin(self, voice: Playback, now: int) -> None:
        """Add a voice, which begins now; it unmutes the speech."""
        self._leave_rest(now)
        self._muted = False
        if now < self._lifted_until or now >= self._ends()[0]:
            self._depth = self._duck
        self._lifted_until = 0
        self._voices.append(voice)

    def make_room(self, peak: float) -> None:
        """Duck deep enough that full-scale speech and cues of this summed peak stay within ±1.0.

        The depth never decreases during a duck, which would pump. A bus with a duck of 0 dB never ducks.
        """
        if self._duck < 1.0:
            self._depth = min(self._depth, max(1.0 - peak, DEEPEST))

    def ended(self, voice: Playback) -> None:
        """Remove an ended voice; its end still counts for the hold."""
        self._voices.remove(voice)
        if voice.placement == "replace":
            self._replace_end = max(self._replace_end, voice.end - self._lengths.crossfade)
        else:
            self._duck_end = max(self._duck_end, voice.end + self._lengths.hold)

    def release(self, now: int, n: int) -> None:
        """Fade out over `n` samples and mute."""
        if self._muted:
            return
        self._leave_rest(now)
        self._muted = True
        self._ramp(now, 0.0, n)
        self._fade_end = self._rest() if self._next_t0 == _NEVER else self._rest() + n

    def resume(self) -> None:
        """Unmute the speech after the fade of a release."""
        self._muted = False

    def plan(self, now: int, heard: int) -> int:
        """Update the row's ramps and return the sample of the next update; earlier calls change nothing.

        Speech was last heard before sample `heard`; only what came since the duck began counts.
        """
        self._settle(now)
        duck_end, replace_end = self._ends()
        check = self._lift(now, heard, duck_end)
        wake = self._plan_ramps(now, duck_end, replace_end)
        _RAMPS.pack_into(
            self._row.buffer,
            _RAMPS_AT,
            self._t0,
            self._next_t0,
            self._n,
            self._next_n,
            self._g0,
            self._g1,
            self._slope,
            self._next_g1,
        )
        return min(check, wake)

    def _plan_ramps(self, now: int, duck_end: int, replace_end: int) -> int:
        """Plan the ramps to the gain of now and to the next one; return the sample at which to plan again."""
        level = self._level(now, duck_end, replace_end)
        changes = (self._fade_end, self._lifted_until, duck_end, replace_end)
        later = [t for t in changes if now < t < _NEVER // 2 and self._level(t, duck_end, replace_end) != level]
        change = min(later, default=_NEVER)
        if level != self._g1:
            if self._next_t0 == _NEVER or self._next_g1 != level:
                self._ramp(now, level, self._length(self._g1, level))
            if self._next_t0 != _NEVER:  # it waits for the running ramp to end
                return min(self._next_t0, change)
        if change == _NEVER or change < self._rest():
            self._next_t0 = _NEVER
            return change
        self._next_t0 = change
        self._next_g1 = self._level(change, duck_end, replace_end)
        self._next_n = self._length(level, self._next_g1)
        return _NEVER if self._next_g1 == 1.0 else change

    def _lift(self, now: int, heard: int, duck_end: int) -> int:
        """Lift the duck where no cue is audible and the speech pauses; return the sample of the next check."""
        if now < self._lifted_until:
            return self._lifted_until
        if self._muted or self._depth == 1.0 or (now >= duck_end and self._at_rest(now)):
            return _NEVER
        lengths = self._lengths
        silent_from, silent_until = self._silence(now)
        pause = (heard if heard > self._since else self._since + lengths.look - lengths.pause) + lengths.pause
        due = max(silent_from - lengths.quick, pause)
        if due > now or due >= silent_until:
            return min(due, silent_until)
        self._lifted_until = silent_until
        if self._g1 != 1.0 or self._rest() > now + lengths.quick:
            self._next_t0 = _NEVER
            self._ramp(now, 1.0, lengths.quick)
        return silent_until

    def _silence(self, now: int) -> tuple[int, int]:
        """The next stretch in which no voice is audible: its first sample, and the next onset of a loop."""
        first, last = now, _NEVER
        for voice in self._voices:
            start, end = voice.silence(now)
            first, last = max(first, start), min(last, end)
        return first, last

    def _ends(self) -> tuple[int, int]:
        """The samples at which ducking and replacement end."""
        duck, replace = self._duck_end, self._replace_end
        for voice in self._voices:
            if voice.placement == "replace":
                replace = max(replace, voice.end - self._lengths.crossfade)
            else:
                duck = max(duck, voice.end + self._lengths.hold)
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

    def _settle(self, now: int) -> None:
        """Let a due ramp take over, as the kernels do."""
        if self._next_t0 <= now:
            self._t0, self._n, self._next_t0 = self._next_t0, self._next_n, _NEVER
            self._g0, self._g1, self._slope = self._g1, self._next_g1, 0.0

    def _rest(self) -> int:
        """The sample at which the current ramp ends or ended."""
        return self._t0 + abs(self._n)

    def _at_rest(self, now: int) -> bool:
        """Whether the speech passes unchanged."""
        return self._g1 == 1.0 and self._next_t0 == _NEVER and now >= self._rest()

    def _leave_rest(self, now: int) -> None:
        """From now on speech is read: idle frames are not."""
        self._settle(now)
        if not self._voices and self._at_rest(now):
            self._since = now

    def _ramp(self, now: int, level: float, n: int) -> None:
        """Start a ramp to `level` with the current value and slope, or after the current ramp.

        From a steep slope, a long ramp would leave 0 … 1, and a short one would bend too sharply. Steep ramps take
        20 ms, so the new one waits.
        """
        value, slope = self._state(now)
        slope *= abs(n)
        if slope and not turns_well(value, level, slope, self._lengths.most_bend * n * n):
            self._next_t0, self._next_n, self._next_g1 = self._rest(), n, level
            return
        self._t0, self._next_t0 = now, _NEVER
        self._n = abs(n) if slope else n  # the equal-power law cannot start with a slope
        self._g0, self._g1, self._slope = value, level, slope

    def _state(self, now: int) -> tuple[float, float]:
        """Gain and slope (per sample) at `now`."""
        n, k, g0, g1 = abs(self._n), now - self._t0, self._g0, self._g1
        if k >= n:
            return g1, 0.0
        s, u = self._slope, k / n
        q = u**3 * (10 - 15 * u + 6 * u * u)
        dq = 30 * u * u * (1 - u) ** 2
        if self._n > 0:
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
