"""The look-ahead limiter's numbers and where its state keeps what; see `cues.mixing.limiter`."""

from __future__ import annotations

TAPS = 16
PHASES = 8
CEILING = 10 ** (-1.3 / 20)
"""Aimed at −1.3 dBTP: 0.12 dB are the interpolator's error and 0.12 dB peaks between its phases, both at 0.42 fs."""
LOUD = CEILING / 2.2
"""Below, no interpolated value can exceed the ceiling: 2.19 is the largest sum of a phase's absolute taps."""
LARGEST_SAMPLE = 1e4
AT_REST = 0.9999

TIME_I64 = 0
LOUD_UNTIL_I64 = 1
DIP_UNTIL_I64 = 2
TURN_UNTIL_I64 = 3
TABLE_I64 = 4
ATTACK_I32 = 10
MASK_I32 = 11
GAIN_MASK_I32 = 12
GAIN_F32 = 13
RELEASE_F32 = 14
HEADER_WORDS = 8
