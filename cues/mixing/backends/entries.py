"""Compiled entries as methods: Python calls the mixing loop itself, with nothing in between.

A numba function costs 100 ns a call and 36 ns more for each array, several times what the loop costs. The compiled
callbacks of `cues._kernels.mixing` have the signature of a C method and read their arguments where CPython and numpy
keep them; here they become built-in methods. Whether this interpreter keeps things there is checked on real objects
first (`understood`); where it does not, mixers call the kernels through numba and nothing else changes.
"""

from __future__ import annotations

import ctypes
import inspect
import platform
import sys
import sysconfig
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues.mixing.state import Row

__all__ = ["mix_method", "mix_pcm16_method", "understood"]

_SCRATCH = np.zeros(1024, dtype=np.float32)  # as long as `cues._kernels.entries` takes it to be
_EXAMPLE = np.zeros(1, dtype=np.float32)
_FASTCALL, _KEYWORDS = 0x80, 0x02


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def _definition(name: str, signature: str, doc: str | None, address: int) -> _MethodDef:
    """A method definition; what stands before the two dashes is what `inspect.signature` reads."""
    text = f"{name}({signature})\n--\n\n{inspect.cleandoc(doc or '')}"
    return _MethodDef(name.encode(), address, _FASTCALL | _KEYWORDS, text.encode())


def _method(entry: Any, definition: _MethodDef, bound: tuple[Any, ...]) -> Any:
    """A built-in method of the tuple `bound` that calls a compiled entry.

    CPython keeps a pointer to the definition, which points to machine code: the tuple keeps both until the method is
    gone, at the interpreter's end too, when modules are emptied first.
    """
    # A prototype of our own: attributes of `ctypes.pythonapi` are everybody's.
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    return make(ctypes.addressof(definition), (*bound, definition, entry), None)


def mix_method(kernels: Any, row: Row, slow: Callable[..., Any], doc: str | None) -> Any:
    """`Mixer.mix` for one row; `slow` gets every call that needs Python."""
    entry = kernels.mix_entry
    definition = _definition("mix", "$self, frame, out=None", doc, entry.address)
    return _method(entry, definition, (row.words, slow, sys.intern("out"), _EXAMPLE, np.ndarray.flatten))


def mix_pcm16_method(kernels: Any, row: Row, slow: Callable[..., Any], doc: str | None) -> Any:
    """`Mixer.mix_pcm16` for one row; `slow` gets every call that needs Python."""
    entry = kernels.mix_pcm16_entry
    definition = _definition("mix_pcm16", "$self, data", doc, entry.address)
    return _method(entry, definition, (row.words, slow, _SCRATCH, b" "))


@cache
def understood() -> bool:
    """Whether this interpreter and this numpy keep objects where the compiled entries look for them."""
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little" or hasattr(sys, "gettotalrefcount"):
        return False
    return _tuples_are_understood() and _bytes_are_understood() and _arrays_are_understood()


def _word(thing: object, offset: int) -> int:
    return ctypes.c_int64.from_address(id(thing) + offset).value


def _tuples_are_understood() -> bool:
    pair = ("first", object())
    return (
        tuple.__basicsize__ == 24
        and _word(pair, 8) == id(tuple)
        and _word(pair, 16) == 2
        and [_word(pair, 24), _word(pair, 32)] == [id(item) for item in pair]
    )


def _bytes_are_understood() -> bool:
    data = b"12345678\0"
    return (
        bytes.__basicsize__ == 33
        and _word(data, 8) == id(bytes)
        and _word(data, 16) == len(data)
        and ctypes.string_at(id(data) + 32, len(data)) == data
    )


def _arrays_are_understood() -> bool:
    def seen(array: np.ndarray[Any, Any]) -> bool:
        shape = _word(array, 32)
        flags = _word(array, 64) & 0xFFFFFFFF
        return (
            _word(array, 8) == id(np.ndarray)
            and _word(array, 16) == array.ctypes.data
            and _word(array, 24) & 0xFFFFFFFF == array.ndim
            and (shape == 0 or ctypes.c_int64.from_address(shape).value == array.shape[0])
            and _word(array, 56) == id(array.dtype)
            and bool(flags & 0x1) == array.flags.c_contiguous
            and bool(flags & 0x100) == array.flags.aligned
            and bool(flags & 0x400) == array.flags.writeable
        )

    frozen = np.arange(6, dtype=np.float32)
    frozen.flags.writeable = False
    examples: list[np.ndarray[Any, Any]] = [np.zeros(7, dtype=np.float32), np.zeros((2, 3)), frozen, np.arange(8)[::2]]
    return (
        np.ndarray.__basicsize__ >= 72  # nothing below is read past an object's end
        and all(seen(array) for array in examples)
        and id(np.dtype(np.float32)) == _word(_EXAMPLE, 56)
    )
