"""The layout in memory: the one table that kernels, numpy path and scheduler agree on.

A session's row is 96 bytes of bus and 32 bytes for each voice, filled up to whole cache lines: eight voices and the
slot for stolen tails are 384 bytes. Indices count items of the memory seen as int64 (`_I64`), int32 (`_I32`), int16
(`_I16`), float32 (`_F32`) or float64 (`_F64`). The scheduler alone writes to a voice; a kernel changes the bus.

A speech ramp goes from `g0` to `g1` over `n` samples from absolute sample `t0`: `g0 + (g1 − g0)·q(u) + s·h(u)`, where
`q` is the quintic smoothstep and `h` the quintic that starts with slope 1 and ends flat, so a ramp can take over from
another in mid-course. A negative `n` marks the equal-power law.
"""

import math
import struct

NEVER = 1 << 62
"""A position that no session reaches."""

# The bus of a row.
POSITION_I64 = 0
WAKE_I64 = 1  # the scheduler must run before this sample is mixed; −1: at once
SPEECH_T0_I64 = 2
NEXT_T0_I64 = 3
SPEECH_N_I32 = 8
NEXT_N_I32 = 9
SPEECH_G0_F32 = 10
SPEECH_G1_F32 = 11
SPEECH_SLOPE_F32 = 12  # per ramp, not per sample
NEXT_G1_F32 = 13
FLAGS_I32 = 14
SLOTS_I16 = 30
CHANNELS_I16 = 31  # of a frame, interleaved
LIMITED_I32 = 16  # the two counters share a word; the scheduler takes them over
NONFINITE_I32 = 17
LIMITER_I64 = 9  # address of the first channel's limiter, or 0
LEVEL_I64 = 10  # address of the speech level's state, or 0
HEARD_I64 = 11  # the sample after the last one above `SPEECH_BITS` that was read
BUS_BYTES = 96
COUNTED = 1 << 30
"""A counter that has reached this wakes the scheduler, long before 32 bits are full."""
LINE_BYTES = 64
"""Of a cache line: a row begins with one, so that what an idle session needs is in one."""

FLAG_BUSY = 1  # a voice sounds, or the speech's gain is not at rest at 1
FLAG_GUARD = 2
FLAG_LIMITER = 4
FLAG_FOLLOW = 8  # the speech's level is measured
FLAG_LISTEN = 16  # `HEARD_I64` is kept up while idle, too
FLAG_YIELD = 32  # a waiting sound is heard: the scheduler must run before the first sample of speech
FLAG_APART = 64  # the speech comes by `Mixer.hear`: frames are something else
IDLE_FLAGS = FLAG_GUARD | FLAG_FOLLOW | FLAG_LISTEN | FLAG_APART
"""Flags of a session whose frames pass."""

SPEECH_DBFS = -50.0
"""Sample peak above which speech is heard: over breath and a synthetic voice's noise."""
SPEECH_BITS = struct.unpack("=i", struct.pack("=f", 10.0 ** (SPEECH_DBFS / 20.0)))[0]

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

SCRATCH_SAMPLES = 1024
"""Items of a frame of several channels, or of int16, that are worked on at once; no more channels than that."""

# The words that a mixer's compiled entries find at `self`; `cues.mixing.backends.compiled` writes them.
ENTRY_ROW_I64 = 0  # address of the session's row
# Objects.
ENTRY_SLOW_MIX_I64 = 1  # Python's own method
ENTRY_TYPE_I64 = 2  # numpy.ndarray
ENTRY_OUT_I64 = 3  # the keyword "out"
ENTRY_COPY_I64 = 4  # the method of numpy.ndarray that copies a frame
ENTRY_DTYPE_I64 = 5  # the descriptor numpy.ndarray.dtype
ENTRY_FLOAT32_I64 = 6  # numpy.dtype("float32")
# Addresses.
ENTRY_GET_I64 = 7  # of the C function that reads ENTRY_DTYPE
ENTRY_SCRATCH_I64 = 8  # of float32 samples to work with, under the GIL
ENTRY_SLOW_MIX_PCM16_I64 = 9  # Python's own method
ENTRY_BYTES_I64 = 10  # the type

# The speech level (`cues.mixing.level`).
FULL_SCALE = 32768.0
"""Magnitudes are squared as whole numbers of this many steps, those of int16."""
STEP_BITS = struct.unpack("=i", struct.pack("=f", 1.0 / FULL_SCALE))[0]
BLOCK_MS = 100.0
MEMORY_S = 3.0
KEEP = math.exp(-BLOCK_MS / 1000.0 / MEMORY_S)
"""Factor by which a block reduces the weight of earlier ones."""
GATE = 10.0 ** (SPEECH_DBFS / 10.0)
"""Mean square under which a block is a pause."""
LEVEL_BLOCK_I64 = 0  # samples
LEVEL_SUM_I64 = 1  # of squares, of the block that is passing
LEVEL_MEAN_SQUARE_F64 = 2
LEVEL_WEIGHT_F64 = 3
LEVEL_WORDS = 4

# The look-ahead limiter (`cues.mixing.limiter`).
TAPS = 16
PHASES = 8
CEILING = 10 ** (-1.3 / 20)
"""Aimed at −1.3 dBTP: 0.12 dB are the interpolator's error and 0.12 dB peaks between its phases, both at 0.42 fs."""
LOUD = CEILING / 2.2
"""Below, no interpolated value can exceed the ceiling: 2.19 is the largest sum of a phase's absolute taps."""
BEND = 0.41
"""An interpolated value exceeds the largest sample by at most this much of the largest second difference."""
LARGEST_SAMPLE = 1e4
AT_REST = 0.9999
LIMITER_TIME_I64 = 0
LIMITER_BUSY_UNTIL_I64 = 1  # from here on, gains and needed gains are 1 until a loud sample comes
LIMITER_TABLE_I64 = 2
LIMITER_ATTACK_I32 = 6
LIMITER_MASK_I32 = 7
LIMITER_GAIN_MASK_I32 = 8
LIMITER_GAIN_F32 = 9
LIMITER_RELEASE_F32 = 10
LIMITER_HEADER_WORDS = 6
