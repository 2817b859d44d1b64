"""libebur128 through ctypes, if the machine has it (Debian: libebur128-1): the C peer of the meters."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["available", "integrated_lufs", "true_peak"]

_MODE_I, _MODE_TRUE_PEAK = 0b101, 0b110001
_NAME = ctypes.util.find_library("ebur128")


def available() -> bool:
    """Whether the library was found."""
    return _NAME is not None


@cache
def _library() -> ctypes.CDLL:
    assert _NAME is not None
    library = ctypes.CDLL(_NAME)
    library.ebur128_init.restype = ctypes.c_void_p
    return library


def _measured(samples: NDArray[np.float32], sample_rate: int, mode: int, read: str, *arguments: object) -> float:
    library = _library()
    state = ctypes.c_void_p(library.ebur128_init(ctypes.c_uint(1), ctypes.c_ulong(sample_rate), ctypes.c_int(mode)))
    library.ebur128_add_frames_float(state, ctypes.c_void_p(samples.ctypes.data), ctypes.c_size_t(len(samples)))
    value = ctypes.c_double()
    getattr(library, read)(state, *arguments, ctypes.byref(value))
    library.ebur128_destroy(ctypes.byref(state))
    return value.value


def integrated_lufs(samples: NDArray[np.float32], sample_rate: int) -> float:
    """Gated loudness of one channel, LUFS."""
    return _measured(samples, sample_rate, _MODE_I, "ebur128_loudness_global")


def true_peak(samples: NDArray[np.float32], sample_rate: int) -> float:
    """Largest magnitude at four times the rate, linear."""
    return _measured(samples, sample_rate, _MODE_TRUE_PEAK, "ebur128_true_peak", ctypes.c_uint(0))
