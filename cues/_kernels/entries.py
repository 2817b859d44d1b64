"""C functions that CPython calls as methods: the way of a frame that needs nothing from Python.

They get (self, arguments, count, keyword names), by CPython's calling convention METH_FASTCALL | METH_KEYWORDS. `self`
is a tuple that `cues.mixing.backends.compiled` makes. They reach objects by functions of CPython's stable ABI alone;
`PyObject_Vectorcall`, public for longer, is part of it since 3.12.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from cues._kernels import layout
from cues._kernels.listening import SPEECH_BITS
from cues._kernels.loops import float_of_pcm16, pcm16_of_float, pcm16_peak
from cues._kernels.mixing import (
    channels_of,
    is_due,
    let_pass,
    mix_or_pass,
    mix_row,
    mix_rows,
    must_plan,
    passes,
    try_to_mix,
    yields,
)
from cues._kernels.tools import call_at, carray, float_of_bits, int32_at, int64_at, kernel, peek, stack

_types: Any = numba.types
_WORD, _INT, _VOID = _types.int64, _types.int32, _types.void


def _c_api(name: str, result: Any, *arguments: Any) -> Callable[..., int]:
    """A function of CPython; a pointer is an int64, and 0 is NULL."""
    function: Callable[..., int] = _types.ExternalFunction(name, result(*arguments))
    return function


object_type = _c_api("PyObject_Type", _WORD, _WORD)
vectorcall = _c_api("PyObject_Vectorcall", _WORD, _WORD, _WORD, _WORD, _WORD)
get_buffer = _c_api("PyObject_GetBuffer", _INT, _WORD, _WORD, _INT)
release_buffer = _c_api("PyBuffer_Release", _VOID, _WORD)
long_value = _c_api("PyLong_AsLongLong", _WORD, _WORD)
tuple_size = _c_api("PyTuple_Size", _WORD, _WORD)
tuple_item = _c_api("PyTuple_GetItem", _WORD, _WORD, _WORD)
bytes_size = _c_api("PyBytes_Size", _WORD, _WORD)
bytes_data = _c_api("PyBytes_AsString", _WORD, _WORD)
new_bytes = _c_api("PyBytes_FromStringAndSize", _WORD, _WORD, _WORD)
incref = _c_api("Py_IncRef", _VOID, _WORD)
decref = _c_api("Py_DecRef", _VOID, _WORD)
clear_error = _c_api("PyErr_Clear", _VOID)

LEAVE = -1
"""In place of a result: Python's own method has to do it. (0 is an exception.)"""

# Fields of a Py_buffer, and the flags that ask for one: writable; with its shape, and contiguous or an error.
_DATA, _LEN, _NDIM, _SHAPE_AT, _BUFFER_BYTES = 0, 16, 36, 48, 80
_WRITABLE, _SHAPE = 0x1, 0x8


@kernel
def word(state: int, number: int) -> int:
    """One of the words of `layout`."""
    return peek(state + 8 * number)


@kernel
def is_a(thing: int, kind: int) -> bool:
    """Whether an object is of this type, and of no subclass."""
    found = object_type(thing)
    decref(found)
    return found == kind


@kernel
def is_float32(thing: int, state: int) -> bool:
    """Whether an object is a numpy array of float32, and of no subclass."""
    array_type = word(state, layout.ENTRY_TYPE_I64)
    if not is_a(thing, array_type):
        return False
    dtype = call_at(word(state, layout.ENTRY_GET_I64), word(state, layout.ENTRY_DTYPE_I64), thing, array_type)
    decref(dtype)
    return dtype == word(state, layout.ENTRY_FLOAT32_I64)


@kernel
def borrow(thing: int, flags: int, buffer: int, channels: int) -> int:
    """Fill `buffer` and count its samples; 0, and nothing to release, unless `thing` is a contiguous frame."""
    if get_buffer(thing, buffer, np.int32(_SHAPE | flags)) != 0:
        clear_error()
        return 0
    n_dimensions = carray(int32_at(buffer + _NDIM), 1)[0]
    fits = n_dimensions == 1 if channels == 1 else n_dimensions == 2 and peek(peek(buffer + _SHAPE_AT) + 8) == channels
    if fits and peek(buffer + _LEN) > 0:
        n = peek(buffer + _LEN) // 4
        return n if channels == 1 else n // channels  # without a division for one channel
    release_buffer(buffer)
    return 0


@kernel
def mix_objects(row: int, frame: int, out: int, planned: int) -> int:
    """Mix or copy a frame of float32 into `out`; `layout.REFUSED` if the two do not fit, or the scheduler has to run.

    With `planned`, it has run.
    """
    source, target, channels = stack(_BUFFER_BYTES), stack(_BUFFER_BYTES), channels_of(row)
    n = borrow(frame, 0, source, channels)
    n_out = borrow(out, _WRITABLE, target, channels) if n > 0 else 0
    done = layout.REFUSED
    if n > 0 and n == n_out:
        if planned:
            done = mix_or_pass(row, peek(source + _DATA), peek(target + _DATA), n)
        else:
            done = try_to_mix(row, peek(source + _DATA), peek(target + _DATA), n)
    if n_out > 0:
        release_buffer(target)
    if n > 0:
        release_buffer(source)
    return done


@kernel
def mix_into(state: int, frame: int, out: int) -> int:
    """A new reference to `out`, with the frame and its cues in it."""
    fit = is_float32(frame, state) and is_float32(out, state)
    if not fit or mix_objects(word(state, layout.ENTRY_ROW_I64), frame, out, 0) == layout.REFUSED:
        return LEAVE
    incref(out)
    return out


@kernel
def mix_new(state: int, arguments: int) -> int:
    """A new array with the frame and its cues, or a new reference to the frame where that passes."""
    row, frame, buffer = word(state, layout.ENTRY_ROW_I64), peek(arguments), stack(_BUFFER_BYTES)
    n = borrow(frame, 0, buffer, channels_of(row)) if is_float32(frame, state) else 0
    if n == 0:
        return LEAVE
    samples = peek(buffer + _DATA)
    due = must_plan(row, samples, n)
    idle = not due and passes(row, samples, n)
    if idle:
        let_pass(row, samples, n)
        incref(frame)
    release_buffer(buffer)
    if due or idle:
        return LEAVE if due else frame
    # The quickest way to a new array of this shape is a copy of the frame.
    copied = vectorcall(word(state, layout.ENTRY_COPY_I64), arguments, 1, 0)
    if copied != 0 and get_buffer(copied, buffer, np.int32(_WRITABLE)) != 0:
        decref(copied)
        return 0
    if copied != 0:
        mix_row(row, peek(buffer + _DATA), peek(buffer + _DATA), n)
        release_buffer(buffer)
    return copied


@kernel
def mix_entry(self: int, arguments: int, n_arguments: int, names: int) -> int:
    """`Mixer.mix` for arrays that need no conversion; everything else goes the slow way."""
    state = bytes_data(tuple_item(self, 0))
    n_names = 0 if names == 0 else tuple_size(names)
    out_by_name = n_names == 1 and tuple_item(names, 0) == word(state, layout.ENTRY_OUT_I64)
    result = LEAVE
    if n_arguments == 1 and n_names == 0:
        result = mix_new(state, arguments)
    elif (n_arguments == 2 and n_names == 0) or (n_arguments == 1 and out_by_name):
        result = mix_into(state, peek(arguments), peek(arguments + 8))
    if result == LEAVE:
        result = vectorcall(word(state, layout.ENTRY_SLOW_MIX_I64), arguments, n_arguments, names)
    return result


@kernel
def mix_bytes(row: int, data: int, scratch: int) -> int:
    """New bytes with the samples and their cues, or a new reference to `data` where that passes."""
    size, channels = bytes_size(data), channels_of(row)
    n = size // 2 if channels == 1 else size // (2 * channels)
    if n == 0 or size != 2 * channels * n or is_due(row, n):
        return LEAVE
    if yields(row) and pcm16_peak(bytes_data(data), n * channels) > float_of_bits(SPEECH_BITS):
        return LEAVE
    flags = carray(int32_at(row), 24)[layout.FLAGS_I32]
    idle = flags & ~layout.IDLE_FLAGS == 0
    if idle:
        incref(data)
        if flags & (layout.FLAG_FOLLOW | layout.FLAG_LISTEN) == 0:
            carray(int64_at(row), 12)[layout.POSITION_I64] += n
            return data
    result = data if idle else new_bytes(0, size)
    done: Any = np.int64(0)
    while done < n and result != 0:
        step = min(n - done, layout.SCRATCH_SAMPLES if channels == 1 else layout.SCRATCH_SAMPLES // channels)
        here = 2 * channels * done
        float_of_pcm16(bytes_data(data) + here, scratch, step * channels)
        if idle:
            let_pass(row, scratch, step)
        else:
            mix_row(row, scratch, scratch, step)
            pcm16_of_float(scratch, bytes_data(result) + here, step * channels)
        done += step
    return result


@kernel
def mix_pcm16_entry(self: int, arguments: int, n_arguments: int, names: int) -> int:
    """`Mixer.mix_pcm16` for `bytes` that hold whole samples; everything else goes the slow way."""
    state = bytes_data(tuple_item(self, 0))
    result = LEAVE
    if n_arguments == 1 and names == 0 and is_a(peek(arguments), word(state, layout.ENTRY_BYTES_I64)):
        result = mix_bytes(word(state, layout.ENTRY_ROW_I64), peek(arguments), word(state, layout.ENTRY_SCRATCH_I64))
    if result == LEAVE:
        result = vectorcall(word(state, layout.ENTRY_SLOW_MIX_PCM16_I64), arguments, n_arguments, names)
    return result


@kernel
def mix_tuple(arguments: int) -> int:
    """`mix_objects` of a tuple (row, frame, out, planned); ctypes takes 0.1 µs for each argument."""
    row, planned = long_value(tuple_item(arguments, 0)), long_value(tuple_item(arguments, 3))
    return mix_objects(row, tuple_item(arguments, 1), tuple_item(arguments, 2), planned)


EXPORTED: Any = (mix_entry, mix_pcm16_entry, mix_tuple, mix_rows)
"""The functions of the object file; all their arguments and results are words."""
