"""Checks of samples, shared by all public functions."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cues.errors import CueTypeError, CueValueError

__all__ = ["Samples", "channels_float32", "mono_float32"]

Samples: TypeAlias = NDArray[np.float32]
"""Samples of one or more channels."""
_MAX_CHANNELS = 8


def mono_float32(samples: object, *, allow_empty: bool = False, finite: bool = True) -> NDArray[np.float32]:
    """`samples`, floating point and 1-D, as a contiguous float32 array, not copied if it is one.

    Raises unless they are floating point (divide int16 by 32768 first), 1-D, not empty, and without NaN and infinity.
    """
    given = _array(samples)
    if given.dtype.kind != "f":
        raise CueTypeError(f"samples have dtype {given.dtype}; they must be floating point, full scale ±1.0")
    if given.ndim != 1 or not (given.size or allow_empty):
        raise CueValueError(f"samples have shape {given.shape}; they must be 1-D and not empty")
    with np.errstate(over="ignore", invalid="ignore"):
        mono = np.require(given, dtype=np.float32, requirements=("C", "A"))
    # A sum of squares needs no temporary, but would start the threads of BLAS.
    if finite and not np.isfinite(mono).all():
        raise CueValueError("samples hold NaN or infinity; they must be finite")
    return mono


def channels_float32(samples: object) -> list[NDArray[np.float32]]:
    """The channels of `samples`, 1 … 8 columns or one dimension, each as by `mono_float32`."""
    columns = _array(samples)
    if columns.ndim != 2:
        return [mono_float32(samples)]
    if not 1 <= columns.shape[1] <= _MAX_CHANNELS:
        raise CueValueError(
            f"samples have shape {columns.shape}; they must be (n_samples, n_channels), 1 … {_MAX_CHANNELS} channels"
        )
    return [mono_float32(columns[:, number]) for number in range(columns.shape[1])]


def _array(samples: object) -> NDArray[np.generic]:
    """`samples` as an array of any type and shape."""
    try:
        return np.asarray(samples)
    except ValueError as error:
        raise CueValueError("samples are lists of unequal lengths; they must be 1-D and not empty") from error
