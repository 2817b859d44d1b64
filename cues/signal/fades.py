"""Fade shapes: ramps that are flat at both ends, so that no gain change clicks.

A linear ramp and the usual sine law have a corner at silence, and a corner splatters. For a 1 kHz tone with a 10 ms
onset, the energy above 4 kHz is −76 dB for either and −110 dB for the raised cosine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CROSSFADE_MS", "MIN_FADE_MS", "fade_edges", "raised_cosine", "smoothstep"]

MIN_FADE_MS = 5.0
"""Shortest gain change (ms)."""
CROSSFADE_MS = 20.0
"""Length of the equal-power crossfades of `placement="replace"` (ms)."""


def smoothstep(u: Any) -> Any:
    """Quintic smoothstep of `u` (number or array, 0 … 1): slope and curvature are 0 at both ends."""
    return u * u * u * (10 + u * (6 * u - 15))


def raised_cosine(n_samples: int) -> NDArray[np.float64]:
    """Equal-gain fade-in `(1 − cos πu)/2` at `u = k/n`, from exactly 0.0; 1.0 would be the next sample."""
    return 0.5 - 0.5 * np.cos(np.pi * np.arange(n_samples) / n_samples)


def fade_edges(samples: NDArray[np.floating], fade_in_samples: int, fade_out_samples: int) -> NDArray[np.float64]:
    """Copy of `samples` with raised-cosine edges, which must fit; the first and the last value are exactly 0.0."""
    faded = np.array(samples, dtype=np.float64)
    faded[:fade_in_samples] *= raised_cosine(fade_in_samples)
    faded[len(faded) - fade_out_samples :] *= raised_cosine(fade_out_samples)[::-1]
    return faded
