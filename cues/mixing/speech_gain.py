"""The speech's gain: ducked under cues, faded out for a replacing cue, muted after a release.

One duck covers all voices and a hold time after the last, so cues in a row do not pump. The voices' ends are known, so
`plan` computes the next two ramps, and the kernels follow them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cues._kernels import layout
from cues.signal.fades import CROSSFADE_MS, MIN_FADE_MS, smoothstep
from cues.units import db_to_gain, ms_to_samples

if TYPE_CHECKING:
    from cues.mixing.state import Row
    from cues.mixing.voice import Playback

__all__ = ["ATTACK_MS", "HOLD_MS", "RELEASE_MS", "SpeechBus"]

ATTACK_MS = 20.0
HOLD_MS = 200.0
RELEASE_MS = 300.0
DEEPEST = 0.1
"""Lowest gain of speech ducked for headroom (−20 dB); the cues share the rest."""

# The two basis functions of a ramp (`cues._kernels.layout`) over 0 … 1, and their second derivatives.
_U = np.linspace(0.0, 1.0, 65)
_Q = smoothstep(_U)
_H = _U - 6 * _U**3 + 8 * _U**4 - 3 * _U**5
_Q_BEND = 60 * _U - 180 * _U**2 + 120 * _U**3
_H_BEND = -36 * _U + 96 * _U**2 - 60 * _U**3
_STEEPEST_BEND = np.abs(_Q_BEND).max()
_SLACK = 1e-4


class SpeechBus:
    """Plans the gain of one session's speech."""

    def __init__(self, row: Row, sample_rate: int, duck_db: float) -> None:
        self._row = row
        self._duck = self._depth = float(np.float32(db_to_gain(duck_db)))
        self._attack = max(1, ms_to_samples(ATTACK_MS, sample_rate))
        self._hold = max(1, ms_to_samples(HOLD_MS, sample_rate))
        self._release = max(1, ms_to_samples(RELEASE_MS, sample_rate))
        self._crossfade = max(1, ms_to_samples(CROSSFADE_MS, sample_rate))
        self._most_bend = _STEEPEST_BEND / max(1, ms_to_samples(MIN_FADE_MS, sample_rate)) ** 2
        self._ends: dict[Playback, int] = {}
        self._duck_end = self._replace_end = self._fade_end = 0
        self._muted = False

    @property
    def muted(self) -> bool:
        """Whether a release mutes the speech."""
        return self._muted

    def move_to(self, row: Row) -> None:
        """Continue in another row, a copy of this one."""
        self._row = row

    def begin(self, voice: Playback, end: int) -> None:
        """Add a voice that ends at sample `end`; it unmutes the speech."""
        self._muted = False
        if self._row.position >= self._latest(self._ends)[0]:
            self._depth = self._duck
        self._ends[voice] = end

    def make_room(self, peak: float) -> None:
        """Duck deep enough that full-scale speech and cues of this summed peak stay within ±1.0.

        The depth never decreases during a duck, which would pump. A bus with a duck of 0 dB never ducks.
        """
        if self._duck < 1.0:
            self._depth = min(self._depth, float(np.float32(max(1.0 - peak, DEEPEST))))

    def ends(self, voice: Playback, end: int) -> None:
        """Set the new end of a voice."""
        self._ends[voice] = end

    def ended(self, voice: Playback) -> None:
        """Remove an ended voice; its end still counts for the hold."""
        end = self._ends.pop(voice)
        self._duck_end, self._replace_end = self._latest({voice: end})

    def release(self, now: int, n: int) -> None:
        """Fade out over `n` samples and mute."""
        if self._muted:
            return
        self._muted = True
        self._settle(now)
        self._ramp(now, 0.0, n)
        self._fade_end = self._rest() if self._row.words[layout.NEXT_T0_I64] == layout.NEVER else self._rest() + n

    def resume(self) -> None:
        """Unmute the speech after the fade of a release."""
        self._muted = False

    def plan(self, now: int) -> int:
        """Update the row's ramps and return the sample of the next update; earlier calls change nothing."""
        words, ints, floats = self._row.words, self._row.ints, self._row.floats
        self._settle(now)
        level = self._level(now)
        change = self._next_change(now, level)
        if level != floats[layout.SPEECH_G1_F32]:
            if words[layout.NEXT_T0_I64] == layout.NEVER or floats[layout.NEXT_G1_F32] != level:
                self._ramp(now, level, self._length(float(floats[layout.SPEECH_G1_F32]), level))
            if words[layout.NEXT_T0_I64] != layout.NEVER:  # it waits for the running ramp to end
                return min(int(words[layout.NEXT_T0_I64]), change)
        if change < self._rest() or change == layout.NEVER:
            words[layout.NEXT_T0_I64] = layout.NEVER
            return change
        later = self._level(change)
        words[layout.NEXT_T0_I64] = change
        ints[layout.NEXT_N_I32] = self._length(level, later)
        floats[layout.NEXT_G1_F32] = later
        return layout.NEVER if later == 1.0 else change

    def _latest(self, ends: dict[Playback, int]) -> tuple[int, int]:
        """The samples at which ducking and replacement end."""
        duck, replace = self._duck_end, self._replace_end
        for voice, end in ends.items():
            if voice.placement == "replace":
                replace = max(replace, end - self._crossfade)
            else:
                duck = max(duck, end + self._hold)
        return duck, replace

    def _level(self, now: int) -> float:
        """Target gain of the speech at `now`."""
        duck_end, replace_end = self._latest(self._ends)
        if self._muted or now < self._fade_end or now < replace_end:
            return 0.0
        return self._depth if now < duck_end else 1.0

    def _next_change(self, now: int, level: float) -> int:
        """The next sample at which the target gain is not `level`."""
        changes = [t for t in (self._fade_end, *self._latest(self._ends)) if now < t < layout.NEVER // 2]
        return min((t for t in changes if self._level(t) != level), default=layout.NEVER)

    def _length(self, before: float, after: float) -> int:
        """Length of a ramp, samples; negative for the equal-power law."""
        if before == 0.0 or after == 0.0:
            return -self._crossfade
        return self._attack if after < before else self._release

    def _settle(self, now: int) -> None:
        """Promote a due ramp, as the kernels do."""
        if self._row.words[layout.NEXT_T0_I64] <= now:
            self._row.promote()

    def _rest(self) -> int:
        """The sample at which the current ramp ends or ended."""
        return int(self._row.words[layout.SPEECH_T0_I64]) + abs(int(self._row.ints[layout.SPEECH_N_I32]))

    def _ramp(self, now: int, level: float, n: int) -> None:
        """Start a ramp to `level` with the current value and slope, or after the current ramp.

        From a steep slope, a long ramp would leave 0 … 1, and a short one would bend too sharply. Steep ramps take
        20 ms, so the new one waits.
        """
        words, ints, floats = self._row.words, self._row.ints, self._row.floats
        value, slope = self._state(now)
        if slope and not self._turns_well(value, level, slope * abs(n), abs(n)):
            words[layout.NEXT_T0_I64] = self._rest()
            ints[layout.NEXT_N_I32] = n
            floats[layout.NEXT_G1_F32] = level
            return
        if slope:
            n = abs(n)  # the equal-power law cannot start with a slope
        words[layout.SPEECH_T0_I64] = now
        words[layout.NEXT_T0_I64] = layout.NEVER
        ints[layout.SPEECH_N_I32] = n
        floats[layout.SPEECH_G0_F32] = value
        floats[layout.SPEECH_G1_F32] = level
        floats[layout.SPEECH_SLOPE_F32] = slope * abs(n)

    def _turns_well(self, value: float, level: float, slope: float, n: int) -> bool:
        """Whether a ramp of initial `slope` (per ramp) stays within 0 … 1 and bends no more than a fade."""
        gains = value + (level - value) * _Q + slope * _H
        bend = np.abs((level - value) * _Q_BEND + slope * _H_BEND).max() / n**2
        return bool(gains.min() > -_SLACK and gains.max() < 1.0 + _SLACK and bend <= self._most_bend)

    def _state(self, now: int) -> tuple[float, float]:
        """Gain and slope (per sample) at `now`."""
        row = self._row
        n = int(row.ints[layout.SPEECH_N_I32])
        k = now - int(row.words[layout.SPEECH_T0_I64])
        g0, g1 = float(row.floats[layout.SPEECH_G0_F32]), float(row.floats[layout.SPEECH_G1_F32])
        if k >= abs(n):
            return g1, 0.0
        s = float(row.floats[layout.SPEECH_SLOPE_F32])
        u = k / abs(n)
        q = u**3 * (10 - 15 * u + 6 * u * u)
        dq = 30 * u * u * (1 - u) ** 2
        if n > 0:
            value = g0 + (g1 - g0) * q + s * (u - 6 * u**3 + 8 * u**4 - 3 * u**5)
            return value, ((g1 - g0) * dq + s * (1 - 18 * u**2 + 32 * u**3 - 15 * u**4)) / n
        angle = 0.5 * math.pi * q
        value = g0 * math.cos(angle) + g1 * math.sin(angle)
        return value, 0.5 * math.pi * dq / -n * (g1 * math.cos(angle) - g0 * math.sin(angle))
