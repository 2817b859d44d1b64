"""Compiled entries as methods: Python calls the mixing loop itself, with nothing in between.

A call through ctypes takes 0.2 µs, longer than mixing a frame. Two functions of `cues._kernels.entries`
have the signature of a C method; here they become built-in methods. They reach CPython by its stable ABI alone. Without
them (`available`) mixers call `mix_tuple` through ctypes.
"""

import ctypes
import inspect
import os
import platform
import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from cues._kernels import layout
from cues.mixing.state import Row

__all__ = ["available", "methods"]

_SCRATCH = np.zeros(layout.SCRATCH_SAMPLES, dtype=np.float32)
_FASTCALL, _KEYWORDS = 0x80, 0x02
_TP_DESCR_GET = 54
# Each method's signature as `inspect.signature` reads it.
_SIGNATURES = {"mix": "$self, frame, out=None", "mix_pcm16": "$self, data"}
_WORDS = struct.Struct("=11q")
_SHARED = (np.ndarray, sys.intern("out"), np.ndarray.flatten, np.ndarray.dtype, np.dtype(np.float32))
_SHARED_BY_CHANNELS = (*_SHARED[:2], np.ndarray.copy, *_SHARED[3:])  # it keeps the shape, and is slower


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
    text = f"{name}({_SIGNATURES[name]})\n--\n\n{inspect.cleandoc(doc or '')}"
    return _MethodDef(name.encode(), address, _FASTCALL | _KEYWORDS, text.encode())


@cache
def _getter() -> int:
    """The address of the C function that reads `numpy.ndarray.dtype`: 4 ns against 13 for `PyObject_GetAttr`."""
    slot_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", ctypes.pythonapi))
    address: int = slot_of(type(np.ndarray.dtype), _TP_DESCR_GET)
    return address


def methods(
    kernels: Any, row: Row, channels: int, slow: Mapping[str, Callable[..., Any]], docs: Mapping[str, str | None]
) -> list[Any]:
    """`Mixer.mix` and `Mixer.mix_pcm16` of one row as built-in methods; `slow` gets every call that needs Python."""
    # Their common `self` is a tuple of the words that the entries read and of what they point to; what all mixers share
    # is in `_SHARED`. CPython keeps a pointer to a definition; `_definition` keeps the definitions alive until the end.
    mix, mix_pcm16 = slow["mix"], slow["mix_pcm16"]
    shared = _SHARED if channels == 1 else _SHARED_BY_CHANNELS
    words = _WORDS.pack(  # as `layout` has them
        row.address, id(mix), *map(id, shared), _getter(), _SCRATCH.ctypes.data, id(mix_pcm16), id(bytes)
    )
    state = words, mix, mix_pcm16, row.words
    return [
        _make()(ctypes.addressof(_definition(name, docs[name], getattr(kernels, f"{name}_entry"))), state, None)
        for name in slow
    ]


@cache
def _make() -> Callable[..., Any]:
    """`PyCFunction_NewEx` by a prototype of our own: attributes of `ctypes.pythonapi` are everybody's."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))
