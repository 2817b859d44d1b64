"""Compiled entries as methods: Python calls the mixing loop itself, with nothing in between.

A call through ctypes takes 0.2 µs, longer than mixing a frame. Two functions of `cues._kernels.entries`
have the signature of a C method; here they become built-in methods. They reach CPython by its stable ABI alone. Without
them (`available`) mixers call `mix_tuple` through ctypes.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import platform
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cues._kernels import entry_layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues.mixing.state import Row

__all__ = ["available", "method"]

_SCRATCH = np.zeros(entry_layout.SCRATCH_SAMPLES, dtype=np.float32)
_FASTCALL, _KEYWORDS = 0x80, 0x02
_TP_DESCR_GET = 54
# Each method's signature as `inspect.signature` reads it, and the type that its entry takes.
_METHODS = {"mix": ("$self, frame, out=None", np.ndarray), "mix_pcm16": ("$self, data", bytes)}


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def available() -> bool:
    """Whether this is CPython with a GIL on a 64-bit little-endian machine, and `CUES_NO_ENTRIES` is not set."""
    return (
        platform.python_implementation() == "CPython"
        and "t" not in sys.abiflags  # a build without a GIL
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little"
        and not os.environ.get("CUES_NO_ENTRIES")
    )


@cache
def _definition(name: str, doc: str | None, address: int) -> _MethodDef:
    """A method definition; `inspect.signature` reads what stands before the two dashes."""
    text = f"{name}({_METHODS[name][0]})\n--\n\n{inspect.cleandoc(doc or '')}"
    return _MethodDef(name.encode(), address, _FASTCALL | _KEYWORDS, text.encode())


@cache
def _getter() -> int:
    """The address of the C function that reads `numpy.ndarray.dtype`: 4 ns against 13 for `PyObject_GetAttr`."""
    slot_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", ctypes.pythonapi))
    address: int = slot_of(type(np.ndarray.dtype), _TP_DESCR_GET)
    return address


def method(kernels: Any, name: str, row: Row, slow: Callable[..., Any], doc: str | None) -> Any:
    """`Mixer.mix` or `Mixer.mix_pcm16` of one row as a built-in method; `slow` gets every call that needs Python.

    The method's `self` is a tuple of the words that the entry reads and of everything that they point to. CPython keeps
    a pointer to the definition: the tuple keeps that too until the method is gone, at the interpreter's end as well,
    when modules are emptied first.
    """
    definition = _definition(name, doc, getattr(kernels, f"{name}_entry"))
    objects = (slow, _METHODS[name][1], sys.intern("out"), np.ndarray.flatten, np.ndarray.dtype, np.dtype(np.float32))
    # As `entry_layout` has them.
    words = struct.pack("=9q", row.address, *map(id, objects), _getter(), _SCRATCH.ctypes.data)
    # A prototype of our own: attributes of `ctypes.pythonapi` are everybody's.
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    return make(ctypes.addressof(definition), (words, objects, _SCRATCH, row.words, definition), None)
