"""The words that a mixer's compiled entries find at `self`; `cues.mixing.backends.entries` writes them."""

from __future__ import annotations

ROW_I64 = 0  # address of the session's row
# Objects.
SLOW_MIX_I64 = 1  # Python's own method
TYPE_I64 = 2  # numpy.ndarray
OUT_I64 = 3  # the keyword "out"
FLATTEN_I64 = 4  # numpy.ndarray.flatten
DTYPE_I64 = 5  # the descriptor numpy.ndarray.dtype
FLOAT32_I64 = 6  # numpy.dtype("float32")
# Addresses.
GET_I64 = 7  # of the C function that reads DTYPE
SCRATCH_I64 = 8  # of float32 samples to work with, under the GIL
SLOW_MIX_PCM16_I64 = 9  # Python's own method
BYTES_I64 = 10  # the type
SCRATCH_SAMPLES = 1024
