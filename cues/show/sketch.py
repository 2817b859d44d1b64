"""Sounds of the project's first sketch, for comparison with the cues of today.

Three mistakes are kept on purpose. The glide's phase is frequency times time, not the integral of the frequency, so it
falls to 154 Hz instead of 280 Hz. Envelopes are cut off before they reach zero: the arpeggio ends at 0.15 of full
scale. The time base includes its end point, which stretches every note by one sample.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = ["SKETCH", "SKETCH_RATE_HZ"]

SKETCH_RATE_HZ = 24000
_PEAK, _ERROR_PEAK = 0.4, 0.35


def _closed_time(n_samples: int) -> NDArray[np.float64]:
    """Times from 0 to the end, inclusive (s): one sample interval too long."""
    return np.linspace(0.0, n_samples / SKETCH_RATE_HZ, n_samples)


def _decaying(t_s: NDArray[np.float64], per_s: float) -> NDArray[np.float64]:
    """Linear attack of 10 ms, then a decay that does not reach zero."""
    attack = np.minimum(np.arange(len(t_s)) / (0.010 * SKETCH_RATE_HZ - 1.0), 1.0)
    return attack * np.exp(-per_s * t_s)


def _two_tones() -> NDArray[np.float64]:
    n_samples, half = 3600, 1800
    t_s = _closed_time(n_samples)
    sound = np.sin(2 * np.pi * 660.0 * t_s) * _decaying(t_s, 15.0)
    sound[half:] += (np.sin(2 * np.pi * 880.0 * t_s) * _decaying(t_s, 15.0))[:half]
    return _PEAK * sound


def _arpeggio() -> NDArray[np.float64]:
    t_s = _closed_time(2000)
    return _PEAK * np.concatenate([np.sin(2 * np.pi * hz * t_s) * _decaying(t_s, 10.0) for hz in (523.0, 659.0, 784.0)])


def _glide() -> NDArray[np.float64]:
    t_s = _closed_time(3600)
    hz = 440.0 * np.exp(-3.0 * t_s)
    return _ERROR_PEAK * np.sin(2 * np.pi * hz * t_s) * _decaying(t_s, 12.0)


SKETCH: Mapping[str, Callable[[], NDArray[np.float64]]] = MappingProxyType(
    {"tool_call": _two_tones, "agent": _arpeggio, "error": _glide}
)
"""Name of today's cue → samples of the sketch at `SKETCH_RATE_HZ`: float64, shape `(n_samples,)`."""
