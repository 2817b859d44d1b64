"""Warm-up: loads or compiles everything that a live session would otherwise meet in mid-call."""

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
    """Load the compiled mixing loops, compiling what is not in the cache yet; call it before serving.

    The first call on a machine compiles (some seconds) and keeps the result in `$CUES_CACHE_DIR`, or else in the user's
    cache folder, where every later process finds it. After it returns, nothing is compiled or loaded any more. A
    process that never calls it mixes with numpy: the same sound, tens of microseconds a frame instead of less than one.
    Mixers that exist already change over with their next command. Calling it again costs nothing. Where numba is told
    to compile nothing (`NUMBA_DISABLE_JIT=1`), numpy goes on mixing.

    On CPython with a GIL, `Mixer.mix` and `Mixer.mix_pcm16` become compiled methods, which reach Python through its
    stable ABI alone. `CUES_NO_ENTRIES=1` in the environment switches them off: a frame then goes to the compiled loops
    by a call through numba. It takes 0.6 µs more and gives the same bits.
    """
    with _lock:
        if selection.kernels() is None and not importlib.import_module("numba").config.DISABLE_JIT:
            kernels = "cues._kernels.entries" if entries.available() else "cues._kernels.mixing"
            selection.install(importlib.import_module(kernels))
            # numba takes 0.2 ms more for the first array of a kind; one that is read-only is another kind.
            for frame in (np.zeros(1, dtype=np.float32), np.frombuffer(bytes(4), dtype=np.float32)):
                Mixer.mix(Mixer(), frame)


def are_cached(kernels: Sequence[str]) -> bool:
    """Whether a new process finds all of these compiled loops in the cache; imports numba (0.2 s) to know."""
    if not kernels:
        return True
    from cues._kernels import compiling

    return compiling.are_cached(kernels)
