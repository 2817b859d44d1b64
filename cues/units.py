"""Conversions between the units that the engine speaks at its edges and the ones it computes in."""

from __future__ import annotations

import math

__all__ = ["db_to_gain", "gain_to_db", "ms_to_samples", "s_to_samples"]


def db_to_gain(db: float) -> float:
    """Linear gain of a level in decibels.

    Examples
    --------
    >>> round(db_to_gain(-6.0), 4)
    0.5012
    """
    return float(10.0 ** (db / 20.0))


def gain_to_db(gain: float) -> float:
    """Level in decibels of a linear gain; zero is minus infinity.

    Examples
    --------
    >>> gain_to_db(1.0), gain_to_db(0.0)
    (0.0, -inf)
    """
    return 20.0 * math.log10(gain) if gain > 0.0 else -math.inf


def ms_to_samples(ms: float, sample_rate: int) -> int:
    """Nearest whole number of samples in `ms` milliseconds at `sample_rate` Hz.

    Examples
    --------
    >>> ms_to_samples(10, 24000)
    240
    """
    return s_to_samples(ms / 1000.0, sample_rate)


def s_to_samples(s: float, sample_rate: int) -> int:
    """Nearest whole number of samples in `s` seconds at `sample_rate` Hz.

    Examples
    --------
    >>> s_to_samples(0.15, 24000)
    3600
    """
    return round(s * sample_rate)
