"""T1: true peak at four times the rate against scipy and libebur128, in speed and in error on the same tones.

python -m bench.true_peak
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import resample_poly

import cues
from bench import ebur128
from bench.goals import Figure, at_least, at_most, run
from bench.interleaved import best_s
from cues.meters import true_peak

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOALS = {"scipy": 20.0, "libebur128": 15.0}
FRACTIONS = (0.02, 0.1, 0.2, 0.25, 0.3, 0.35, 0.38, 0.4, 0.42, 0.45, 0.47, 0.49)


def scipy_peak(x: np.ndarray) -> float:
    """Largest magnitude after `resample_poly`."""
    return float(np.abs(resample_poly(x, 4, 1)).max())


def peers(x: np.ndarray) -> dict[str, Callable[[], float]]:
    """The contenders on one signal."""
    calls = {"cues": lambda: 10 ** (cues.true_peak_dbtp(x) / 20), "scipy": lambda: scipy_peak(x)}
    if ebur128.available():
        calls["libebur128"] = lambda: ebur128.true_peak(x, 24000)
    return calls


def speed() -> Iterator[Figure]:
    """A row for each peer."""
    x = (0.1 * np.random.default_rng(1).standard_normal(60 * 24000)).astype(np.float32)
    best = best_s(peers(x), 12)
    for peer, goal in GOALS.items():
        ratio = best[peer] / best["cues"] if peer in best else None
        yield at_least("T1", f"{peer} / true_peak_dbtp, 60 s", ratio, goal, note=f"{peer} is not installed")


def largest_errors(fraction: float) -> dict[str, float]:
    """Error of each contender at a frequency, dB, the largest of 16 phases."""
    n, edge = 2400, 480
    window = np.ones(n)
    window[:edge] = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    window[-edge:] = window[:edge][::-1]
    worst: dict[str, float] = {}
    for phase in np.linspace(0, 2 * np.pi, 16, endpoint=False):
        x = (window * np.sin(2 * np.pi * (fraction + 1.37e-5) * np.arange(n) + phase)).astype(np.float32)
        truth = np.abs(np.fft.irfft(np.fft.rfft(x, 4096), 4096 * 64) * 64).max()
        for name, call in peers(x).items():
            worst[name] = max(worst.get(name, 0.0), abs(20 * np.log10(call() / truth)))
    return worst


def errors() -> Iterator[Figure]:
    """How much worse than each peer's the error gets, over all frequencies."""
    true_peak._LONG_SAMPLES = 0  # the compiled loop, also for these short tones
    table = [largest_errors(fraction) for fraction in FRACTIONS]
    for peer in GOALS:
        worse = max((row["cues"] - row[peer] for row in table), default=0.0) if peer in table[0] else None
        yield at_most("T1", f"error beyond {peer}'s, 0.02 … 0.49 fs", worse, 0.05, unit="dB", note="not installed")


def figures() -> Iterator[Figure]:
    """All rows."""
    yield from speed()
    yield from errors()


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
