"""The check that every public function applies to the samples it is handed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues.errors import CueTypeError, CueValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["channels_float32", "mono_float32", "read_only"]

_MAX_CHANNELS = 8


def read_only(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """A view that cannot be written: a compiled loop takes it for a type of its own, and one type is compiled once."""
    view = samples.view()
    view.flags.writeable = False
    return view


def mono_float32(samples: object, *, allow_empty: bool = False, finite: bool = True) -> NDArray[np.float32]:
    """`samples` as a contiguous float32 array, itself where it is one already.

    Parameters
    ----------
    samples : what the caller was handed.
    allow_empty : whether no samples at all are in order.
    finite : whether to look for NaN and infinity; a caller that sees them in its result can save the pass.

    Raises
    ------
    CueTypeError : if they are not floating point (int16 must be divided by 32768 first).
    CueValueError : if they are not 1-D, are empty, or hold NaN or infinity.
    """
    try:
        given = np.asarray(samples)
    except ValueError as error:  # lists of unequal lengths
        raise CueValueError("samples are lists of unequal lengths; they must be 1-D and not empty") from error
    if given.dtype.kind != "f":
        raise CueTypeError(f"samples have dtype {given.dtype}; they must be floating point, full scale ±1.0")
    if given.ndim != 1 or not (given.size or allow_empty):
        raise CueValueError(f"samples have shape {given.shape}; they must be 1-D and not empty")
    with np.errstate(over="ignore", invalid="ignore"):
        mono = np.require(given, dtype=np.float32, requirements=("C", "A"))
    # Not by a sum of squares, although that needs no temporary: BLAS would wake its threads for it.
    if finite and not np.isfinite(mono).all():
        raise CueValueError("samples hold NaN or infinity; they must be finite")
    return mono


def channels_float32(samples: object) -> list[NDArray[np.float32]]:
    """The channels of `samples`, each as `mono_float32` gives it.

    Parameters
    ----------
    samples : float, shape `(n_samples,)` or `(n_samples, n_channels)` with 1 … 8 channels.

    Raises
    ------
    CueTypeError, CueValueError : as `mono_float32`, and if there are more than 8 channels.
    """
    if np.ndim(samples) != 2:  # type: ignore[arg-type]  # whatever the caller was handed
        return [mono_float32(samples)]
    columns = np.asarray(samples)
    if not 1 <= columns.shape[1] <= _MAX_CHANNELS:
        raise CueValueError(
            f"samples have shape {columns.shape}; they must be (n_samples, n_channels), 1 … {_MAX_CHANNELS} channels"
        )
    return [mono_float32(columns[:, number]) for number in range(columns.shape[1])]
