"""How kernels are compiled: one set of options for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kernel"]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled at its first call for the types it gets, and kept on disk.

    `error_model="numpy"` leaves out the zero-division branch, which alone keeps loops from being vectorized. The cache's
    key does not know these options: nothing may be compiled with others.
    """
    compiled: Callable[..., Any] = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    return compiled
