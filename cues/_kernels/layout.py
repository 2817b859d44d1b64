"""Where everything lies in a session's row of memory: the one table that kernels, numpy path and planner agree on.

A row is 96 bytes of bus and 32 bytes for each voice, filled up to whole cache lines: eight voices and the slot for
stolen tails are 384 bytes. Indices count items of the row seen as int64 (`_I64`), int32 (`_I32`) or float32 (`_F32`).

A speech ramp goes from `g0` to `g1` over `n` samples from absolute sample `t0`: `g0 + (g1 − g0)·q(u) + s·h(u)`, where
`q` is the quintic smoothstep and `h` the quintic that starts with slope 1 and ends flat, so a ramp can take over from
another in mid-course. A negative `n` marks the equal-power law.
"""

from __future__ import annotations

NEVER = 1 << 62
"""A position that no session reaches."""

POSITION_I64 = 0
WAKE_I64 = 1  # the planner must run before this sample is mixed; −1: at once
SPEECH_T0_I64 = 2
NEXT_T0_I64 = 3
SPEECH_N_I32 = 8
NEXT_N_I32 = 9
SPEECH_G0_F32 = 10
SPEECH_G1_F32 = 11
SPEECH_SLOPE_F32 = 12  # per ramp, not per sample
NEXT_G1_F32 = 13
FLAGS_I32 = 14
SLOTS_I32 = 15
LIMITED_I32 = 16  # the two counters share a word; the planner takes them over
NONFINITE_I32 = 17
LIMITER_I64 = 9  # address of the limiter's state, or 0
LEVEL_I64 = 10  # address of the speech level's state, or 0
HEARD_I64 = 11  # the sample after the last one above `QUIET_BITS`; speech is read while the session is busy
BUS_BYTES = 96
COUNTED = 1 << 30
"""A counter that has reached this wakes the planner, long before 32 bits are full."""
LINE_BYTES = 64
"""Of a cache line: a row begins with one, so that what an idle session needs is in one."""

FLAG_BUSY = 1  # a voice sounds, or the speech's gain is not at rest at 1
FLAG_GUARD = 2
FLAG_LIMITER = 4
FLAG_FOLLOW = 8  # the speech is listened to
FLAG_LISTEN = 16  # a cue waits for a pause: `HEARD_I64` is kept up while idle too

QUIET_BITS = 0x3BB8449C
"""Bits of float32 10^(−45/20): a pause is below −45 dBFS, under speech and above a synthetic voice's noise."""

# Within one voice; add 8 (or 4 for int32 and float32) times its number, and the bus in front.
VOICE_START_I64 = 0
VOICE_SOUND_I64 = 1  # address of its sound's header; 0: the slot is free
VOICE_T0_I32 = 4  # relative to the start
VOICE_N_I32 = 5  # length of the ramp and two flags
VOICE_G0_F32 = 6
VOICE_G1_F32 = 7
VOICE_BYTES = 32
VOICE_ENDS = 1 << 28  # the voice ends with its ramp
VOICE_LOOPS = 1 << 29
RAMP_MASK = VOICE_ENDS - 1

REFUSED, PASSED, MIXED = 0, 1, 2
"""Result of a kernel call: nothing done because the scheduler must run first, position advanced, or frame mixed."""

HEADER_FLOATS = 4
"""A sound in memory: its length (int64), its peak (float32), padding, then its samples (float32)."""
