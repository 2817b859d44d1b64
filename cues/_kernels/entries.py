"""C functions that CPython calls as methods: the way of a frame that needs nothing from Python.

They get (self, arguments, count, keyword names). `self` is the tuple that `cues.mixing.backends.entries` makes. Offsets
are those of PyTupleObject, PyArrayObject and PyBytesObject; that module refuses an interpreter with others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cues._kernels import layout
from cues._kernels.compiling import callback, kernel
from cues._kernels.listening import hear
from cues._kernels.loops import FINITE_BITS, copy, float_of_pcm16, pcm16_of_float, peak_bits
from cues._kernels.memory import call_python, carray, int32_at, int64_at, new_bytes, new_reference, peek
from cues._kernels.mixing import mix_row, mix_rows

__all__ = ["mix_entry", "mix_pcm16_entry", "mix_row", "mix_rows"]

_ROW, _SLOW, _OUT, _EXAMPLE, _FLATTEN = 24, 32, 40, 48, 56
_TYPE, _SIZE = 8, 16
_DATA, _NDIM, _SHAPE, _DESCRIPTOR, _ARRAY_FLAGS = 16, 24, 32, 56, 64
_BYTES = 32
_CONTIGUOUS_ALIGNED = 0x101
_WRITEABLE = 0x400
_SCRATCH_SAMPLES = 1024


@kernel
def is_frame(thing: int, example: int, flags: int) -> bool:
    """Whether a Python object is a float32 array of one dimension, contiguous, with the given flags."""
    return (
        peek(thing + _TYPE) == peek(example + _TYPE)
        and peek(thing + _DESCRIPTOR) == peek(example + _DESCRIPTOR)
        and (peek(thing + _NDIM) & 0xFFFFFFFF) == 1
        and (peek(thing + _ARRAY_FLAGS) & flags) == flags
    )


@kernel
def passes(row: int, samples: int, n: int) -> bool:
    """Whether samples pass as they are: nothing sounds, and a guard finds nothing to silence."""
    flags = carray(int32_at(row), 22)[layout.FLAGS_I32]
    if flags == 0:
        return True
    if flags & ~(layout.FLAG_GUARD | layout.FLAG_FOLLOW):
        return False
    clean: bool = flags & layout.FLAG_GUARD == 0 or peak_bits(samples, n) <= FINITE_BITS
    return clean


@kernel
def let_pass(row: int, samples: int, n: int) -> None:
    """Move a session on over samples that pass as they are."""
    words = carray(int64_at(row), 11)
    if carray(int32_at(row), 22)[layout.FLAGS_I32] & layout.FLAG_FOLLOW:
        hear(words[layout.LEVEL_I64], samples, n, words[layout.POSITION_I64])
    words[layout.POSITION_I64] += n


@callback("int64(int64, int64, int64, int64)")
def mix_entry(self: int, arguments: int, n_arguments: int, names: int) -> int:
    """`Mixer.mix` for a frame and a buffer that need no conversion; everything else goes the slow way."""
    example = peek(self + _EXAMPLE)
    n_names = np.int64(0) if names == 0 else peek(names + _SIZE)
    if n_arguments >= 1 and n_arguments + n_names <= 2 and (n_names == 0 or peek(names + 24) == peek(self + _OUT)):
        frame = peek(arguments)
        row = peek(peek(self + _ROW) + _DATA)
        if is_frame(frame, example, _CONTIGUOUS_ALIGNED):
            words = carray(int64_at(row), 11)
            n = peek(peek(frame + _SHAPE))
            idle = passes(row, peek(frame + _DATA), n)
            if words[layout.POSITION_I64] + n <= words[layout.WAKE_I64]:
                if n_arguments + n_names == 1 and n > 0:
                    if idle:
                        let_pass(row, peek(frame + _DATA), n)
                        return new_reference(frame)
                    # The quickest way to a new array of this length is a copy of the frame.
                    copied = call_python(peek(self + _FLATTEN), arguments, 1, 0)
                    if copied != 0:
                        mix_row(row, peek(copied + _DATA), peek(copied + _DATA), n)
                    return copied
                if n > 0:
                    out = peek(arguments + 8)
                    if is_frame(out, example, _CONTIGUOUS_ALIGNED | _WRITEABLE) and peek(peek(out + _SHAPE)) == n:
                        source, target = peek(frame + _DATA), peek(out + _DATA)
                        apart = source == target or source + 4 * n <= target or target + 4 * n <= source
                        if apart:
                            if not idle:
                                mix_row(row, source, target, n)
                            else:
                                let_pass(row, source, n)
                                if source != target:
                                    copy(source, target, n)
                            return new_reference(out)
    return call_python(peek(self + _SLOW), arguments, n_arguments, names)


@callback("int64(int64, int64, int64, int64)")
def mix_pcm16_entry(self: int, arguments: int, n_arguments: int, names: int) -> int:
    """`Mixer.mix_pcm16` for `bytes` that hold whole samples; everything else goes the slow way.

    `self` holds an example of `bytes` and a float32 array of `_SCRATCH_SAMPLES` to work in (used under the GIL).
    """
    if n_arguments == 1 and names == 0:
        data = peek(arguments)
        row = peek(peek(self + _ROW) + _DATA)
        # The type first: an object of another type may end before its size would stand.
        size: Any = peek(data + _SIZE) if peek(data + _TYPE) == peek(peek(self + _EXAMPLE) + _TYPE) else np.int64(0)
        if size > 0 and size % 2 == 0:
            words = carray(int64_at(row), 11)
            n = size // 2
            if words[layout.POSITION_I64] + n <= words[layout.WAKE_I64]:
                flags = carray(int32_at(row), 22)[layout.FLAGS_I32]
                idle = flags & ~(layout.FLAG_GUARD | layout.FLAG_FOLLOW) == 0
                if idle and not flags & layout.FLAG_FOLLOW:
                    words[layout.POSITION_I64] += n
                    return new_reference(data)
                result = new_reference(data) if idle else new_bytes(size)
                scratch = peek(peek(self + _OUT) + _DATA)
                done: Any = np.int64(0)
                while done < n and result != 0:
                    step = min(n - done, _SCRATCH_SAMPLES)
                    float_of_pcm16(data + _BYTES + 2 * done, scratch, step)
                    if idle:
                        let_pass(row, scratch, step)
                    else:
                        mix_row(row, scratch, scratch, step)
                        pcm16_of_float(scratch, result + _BYTES + 2 * done, step)
                    done += step
                return result
    return call_python(peek(self + _SLOW), arguments, n_arguments, names)
