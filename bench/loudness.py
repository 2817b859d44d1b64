"""L1: integrated loudness against pyloudnorm and libebur128, and the levels against theirs and ffmpeg's.

    python -m bench.loudness

Goals: 10 × pyloudnorm and 4.5 × libebur128 at 10 s, 60 s and 10 min of 24 kHz (stretch 14 × pyloudnorm); within
0.01 LU of ffmpeg at 48 kHz.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyloudnorm
import soundfile

import cues
from bench import ebur128
from bench.interleaved import best_s
from cues.meters.kweighting import REFERENCE, design, magnitude_db

GOALS = {"pyloudnorm": 10.0, "libebur128": 4.5}


def noise(seconds: float, sample_rate: int) -> np.ndarray:
    """Swelling pink-like noise: its blocks fall on both sides of the relative gate."""
    n = round(seconds * sample_rate)
    white = np.random.default_rng(1).standard_normal(n)
    swell = 0.1 * 10 ** (np.sin(np.arange(n) / sample_rate * 0.7) - 1)
    return (swell * white).astype(np.float32)


def syllables(seconds: float, sample_rate: int) -> np.ndarray:
    """Noise in steps of 100 ms of random level: as gated as speech is.

    Five minutes of it, because ffmpeg counts three blocks that are not yet full (0.01 LU in one minute), and no slow
    swell, because it takes its gate from a histogram of 0.01 LU and blocks right at the gate fall on the other side.
    """
    rng = np.random.default_rng(1)
    levels = np.repeat(rng.random(round(10 * seconds)) ** 2, sample_rate // 10)
    return (0.1 * levels * rng.standard_normal(len(levels))).astype(np.float32)


def speed() -> bool:
    """Print the times at 24 kHz, and say whether the goals hold."""
    held = True
    print(f"{'24 kHz':>8} {'cues':>9} {'pyloudnorm':>17} {'libebur128':>17}")
    for seconds, rounds in ((10, 40), (60, 15), (600, 5)):
        x = noise(seconds, 24000)
        meter = pyloudnorm.Meter(24000)
        contenders = {"cues": lambda x=x: cues.integrated_lufs(x)}
        contenders["pyloudnorm"] = lambda x=x, meter=meter: meter.integrated_loudness(x)
        if ebur128.available():
            contenders["libebur128"] = lambda x=x: ebur128.integrated_lufs(x, 24000)
        best = best_s(contenders, rounds)
        row = f"{seconds:>6} s {1e3 * best['cues']:>6.2f} ms"
        for peer, goal in GOALS.items():
            if peer in best:
                ratio = best[peer] / best["cues"]
                held &= ratio >= goal
                row += f" {1e3 * best[peer]:>7.2f} ms {ratio:>4.1f} ×"
        print(row)
    return held


def agreement() -> bool:
    """Print what each meter reads at 48 kHz, and say whether ffmpeg's figure is ours."""
    x = syllables(300, 48000)
    ours = cues.integrated_lufs(x, 48000)
    assert ours is not None
    print(f"48 kHz, 5 min: cues {ours:.4f} LUFS", end="")
    if ebur128.available():
        print(f", libebur128 {ebur128.integrated_lufs(x, 48000):.4f}", end="")
    print(f", pyloudnorm {pyloudnorm.Meter(48000).integrated_loudness(x):.4f}", end="")
    if shutil.which("ffmpeg") is None:
        print(", no ffmpeg here")
        return True
    theirs = ffmpeg_lufs(x, 48000)
    print(f", ffmpeg {theirs:.4f}")
    return abs(theirs - ours) <= 0.01


def ffmpeg_lufs(x: np.ndarray, sample_rate: int) -> float:
    """Integrated loudness by ffmpeg's ebur128 filter, from its per-frame metadata (three decimals)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.wav"
        soundfile.write(path, x, sample_rate, "FLOAT")
        command = f"ffmpeg -hide_banner -nostats -i {path} -af ebur128=metadata=1,ametadata=print:file=- -f null -"
        done = subprocess.run(command.split(), capture_output=True, text=True, check=True)
    return float(re.findall(r"lavfi\.r128\.I=(-?[\d.]+)", done.stdout)[-1])


def fit() -> None:
    """Print how far the refitted filters are from the 48 kHz reference."""
    for sample_rate in (8000, 11025, 16000, 22050, 24000, 32000, 44100, 88200, 96000, 192000):
        top = (0.4979 if sample_rate >= 20000 else 0.475) * min(sample_rate, 48000)
        hz = np.geomspace(20, top, 5000)
        error = magnitude_db(design(sample_rate), hz, sample_rate) - magnitude_db(REFERENCE, hz, 48000)
        print(f"K-weighting at {sample_rate:>6} Hz: ±{np.abs(error).max():.6f} dB from 20 Hz to {top:.0f} Hz")


if __name__ == "__main__":
    fit()
    agreed = agreement()
    sys.exit(0 if speed() and agreed else 1)
