"""The words that a compiled entry finds at its method's `self`; `cues.mixing.backends.entries` writes them."""

from __future__ import annotations

ROW_I64 = 0  # address of the session's row
# Objects.
SLOW_I64 = 1  # Python's own method
TYPE_I64 = 2  # of what the entry takes: numpy.ndarray or bytes
OUT_I64 = 3  # the keyword "out"
FLATTEN_I64 = 4  # numpy.ndarray.flatten
DTYPE_I64 = 5  # the descriptor numpy.ndarray.dtype
FLOAT32_I64 = 6  # numpy.dtype("float32")
# Addresses.
GET_I64 = 7  # of the C function that reads DTYPE
SCRATCH_I64 = 8  # of float32 samples to work with, under the GIL
SCRATCH_SAMPLES = 1024
