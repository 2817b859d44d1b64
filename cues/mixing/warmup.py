"""Warm-up: loads or compiles the mixing loops ahead of live sessions."""

from __future__ import annotations

import importlib
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from cues.mixing.backends import entries, selection
from cues.mixing.mixer import Mixer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["are_cached", "warm_up"]

_lock = Lock()


def warm_up() -> None:
    """Load the compiled mixing loops, and compile those not in the cache; call it once, before serving.

    The first call on a machine compiles for some seconds and caches the result in `$CUES_CACHE_DIR`, or else in the
    user's cache folder. Later calls do nothing. Existing mixers switch at their next command. Without this call, or
    with `NUMBA_DISABLE_JIT=1`, numpy mixes: the same sound, at tens of microseconds a frame instead of less than one.

    On CPython with a GIL, `Mixer.mix` and `Mixer.mix_pcm16` become compiled methods, which use only the stable ABI.
    `CUES_NO_ENTRIES=1` in the environment disables them: frames then call numba, for 0.6 µs more and the same bits.
    """
    with _lock:
        if selection.kernels() is None and not importlib.import_module("numba").config.DISABLE_JIT:
            kernels = "cues._kernels.entries" if entries.available() else "cues._kernels.mixing"
            selection.install(importlib.import_module(kernels))
            # numba takes 0.2 ms more for the first array of each type; read-only is a type of its own.
            for frame in (np.zeros(1, dtype=np.float32), np.frombuffer(bytes(4), dtype=np.float32)):
                Mixer.mix(Mixer(), frame)


def are_cached(kernels: Sequence[str]) -> bool:
    """Whether all of these compiled loops are in the cache; imports numba (0.2 s)."""
    if not kernels:
        return True
    from cues._kernels import compiling

    return compiling.are_cached(kernels)
