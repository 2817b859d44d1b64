"""T1: true peak at four times the rate against scipy and libebur128, in speed and in error on the same tones.

    python -m bench.true_peak

Goals: 20 × scipy.signal.resample_poly and 15 × libebur128 on 60 s at 24 kHz, with an error no more than 0.05 dB larger.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.signal import resample_poly

import cues
from bench import ebur128
from bench.interleaved import best_s
from cues.meters import true_peak

GOALS = {"scipy": 20.0, "libebur128": 15.0}


def scipy_peak(x: np.ndarray) -> float:
    """Largest magnitude after `resample_poly`."""
    return float(np.abs(resample_poly(x, 4, 1)).max())


def peers(x: np.ndarray) -> dict[str, object]:
    """The contenders on one signal."""
    calls = {"cues": lambda: 10 ** (cues.true_peak_dbtp(x) / 20), "scipy": lambda: scipy_peak(x)}
    if ebur128.available():
        calls["libebur128"] = lambda: ebur128.true_peak(x, 24000)
    return calls


def speed() -> bool:
    """Print the times, and say whether the goals hold."""
    x = (0.1 * np.random.default_rng(1).standard_normal(60 * 24000)).astype(np.float32)
    best = best_s(peers(x), 12)
    held = True
    print(f"60 s at 24 kHz: cues {1e3 * best['cues']:.2f} ms", end="")
    for peer, goal in GOALS.items():
        if peer in best:
            ratio = best[peer] / best["cues"]
            held &= ratio >= goal
            print(f", {peer} {1e3 * best[peer]:.1f} ms = {ratio:.1f} × (goal {goal:.0f})", end="")
    print()
    return held


def errors() -> bool:
    """Print the largest error over the phases at each frequency, and say whether ours is no more than 0.05 dB worse."""
    true_peak._LONG_SAMPLES = 0  # the compiled loop, also for these short tones
    held = True
    n, edge = 2400, 480
    window = np.ones(n)
    window[:edge] = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    window[-edge:] = window[:edge][::-1]
    for fraction in (0.02, 0.1, 0.2, 0.25, 0.3, 0.35, 0.38, 0.4, 0.42, 0.45, 0.47, 0.49):
        worst: dict[str, float] = {}
        for phase in np.linspace(0, 2 * np.pi, 16, endpoint=False):
            x = (window * np.sin(2 * np.pi * (fraction + 1.37e-5) * np.arange(n) + phase)).astype(np.float32)
            truth = np.abs(np.fft.irfft(np.fft.rfft(x, 4096), 4096 * 64) * 64).max()
            for name, call in peers(x).items():
                worst[name] = max(worst.get(name, 0.0), abs(20 * np.log10(call() / truth)))
        print(f"{fraction:.2f} fs: " + ", ".join(f"{name} {error:.3f} dB" for name, error in worst.items()))
        held &= all(worst["cues"] <= error + 0.05 for error in worst.values())
    return held


if __name__ == "__main__":
    fast = speed()
    sys.exit(0 if errors() and fast else 1)
