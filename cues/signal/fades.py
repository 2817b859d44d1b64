"""Fade shapes: ramps that are flat at both ends, so that no change of gain clicks.

The linear ramp and the usual sine law have a corner where they meet silence, and a corner splatters: for a 1 kHz
tone with a 10 ms onset the energy above 4 kHz is −76 dB for either, −110 dB for the raised cosine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cues.errors import CueValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CROSSFADE_MS", "MIN_FADE_MS", "fade_edges", "raised_cosine", "smoothstep"]

MIN_FADE_MS = 5.0
"""No change of gain is faster than this (ms)."""
CROSSFADE_MS = 20.0
"""Length of the equal-power crossfades of `placement="replace"` (ms)."""


def smoothstep(u: Any) -> Any:
    """Quintic smoothstep of `u` (a number or an array, 0 … 1): slope and curvature are 0 at both ends."""
    return u * u * u * (10 + u * (6 * u - 15))


def raised_cosine(n_samples: int) -> NDArray[np.float64]:
    """Equal-gain fade in: `w(u) = (1 − cos πu)/2` at `u = k/n`, so that it starts at exactly 0.0.

    The value 1.0 belongs to the sample after the last one; `1 − raised_cosine(n)` is the fade out.

    Parameters
    ----------
    n_samples : length of the fade, samples, ≥ 1.

    Returns
    -------
    float64, shape `(n_samples,)`, range 0.0 … 1.0 (1.0 not reached).
    """
    if n_samples < 1:
        raise CueValueError(f"n_samples is {n_samples}; a fade needs at least 1 sample")
    return 0.5 - 0.5 * np.cos(np.pi * np.arange(n_samples) / n_samples)


def fade_edges(samples: NDArray[np.floating], fade_in_samples: int, fade_out_samples: int) -> NDArray[np.float64]:
    """`samples` with raised-cosine edges: first and last value are exactly 0.0.

    Parameters
    ----------
    samples : float, shape `(n_samples,)`.
    fade_in_samples, fade_out_samples : lengths of the edges, samples, each ≥ 1, together ≤ `n_samples`.

    Returns
    -------
    float64, shape `(n_samples,)`; the input is left alone.
    """
    if fade_in_samples + fade_out_samples > len(samples):
        raise CueValueError(
            f"fades of {fade_in_samples} + {fade_out_samples} samples do not fit into {len(samples)} samples"
        )
    faded = np.array(samples, dtype=np.float64)
    faded[:fade_in_samples] *= raised_cosine(fade_in_samples)
    faded[len(faded) - fade_out_samples :] *= raised_cosine(fade_out_samples)[::-1]
    return faded
