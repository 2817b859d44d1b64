"""The speech level's numbers and where its state keeps what; see `cues.mixing.level`."""

from __future__ import annotations

import math

FULL_SCALE = 32768.0
"""Magnitudes are squared as whole numbers of this many steps, those of int16."""
BLOCK_MS = 100.0
MEMORY_S = 3.0
KEEP = math.exp(-BLOCK_MS / 1000.0 / MEMORY_S)
"""Factor by which a block reduces the weight of earlier ones."""
GATE = 10.0 ** (-50.0 / 10.0)
"""Mean square under which a block is a pause (−50 dBFS)."""

BLOCK_I64 = 0  # samples
SUM_I64 = 1  # of squares, of the block that is passing
MEAN_SQUARE_F64 = 2
WEIGHT_F64 = 3
WORDS = 4
