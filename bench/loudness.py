"""L1: integrated loudness against pyloudnorm and libebur128, and the levels against theirs and ffmpeg's.

L2: all meters in digital silence.

python -m bench.loudness
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyloudnorm
import soundfile

import cues
from bench import ebur128
from bench.goals import Figure, at_least, at_most, run
from bench.interleaved import best_s
from cues.meters.clicks import find_clicks
from cues.meters.kweighting import REFERENCE, design, magnitude_db
from cues.meters.loudness import Meter
from cues.signal.fades import raised_cosine
from cues.synthesis.voicelike import speak_voice_like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOALS = {"pyloudnorm": 14.0, "libebur128": 5.0}


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


def speed() -> Iterator[Figure]:
    """A row for each length and peer, at 24 kHz."""
    for seconds, rounds in ((10, 40), (60, 15), (600, 5)):
        x = noise(seconds, 24000)
        meter = pyloudnorm.Meter(24000)
        contenders: dict[str, Callable[[], object]] = {"cues": lambda x=x: cues.integrated_lufs(x)}
        contenders["pyloudnorm"] = lambda x=x, meter=meter: meter.integrated_loudness(x)
        if ebur128.available():
            contenders["libebur128"] = lambda x=x: ebur128.integrated_lufs(x, 24000)
        best = best_s(contenders, rounds)
        for peer, goal in GOALS.items():
            ratio = best[peer] / best["cues"] if peer in best else None
            yield at_least("L1", f"{peer} / integrated_lufs, {seconds} s", ratio, goal, note="not installed")


def spoken(seconds: float, sample_rate: int) -> np.ndarray:
    """Speech with two seconds of digital silence in every four."""
    n = round(seconds * sample_rate)
    speech = speak_voice_like("One moment please, the forecast says rain. " * 4, sample_rate=sample_rate)
    x = np.resize(speech, n).astype(np.float32)
    for start in range(0, n, 4 * sample_rate):
        fade = round(0.02 * sample_rate)
        pause = x[start + 2 * sample_rate - fade : start + 4 * sample_rate]
        pause[:fade] *= 1.0 - raised_cosine(fade)[: len(pause)]
        pause[fade:] = 0.0
    return x


def silence() -> Iterator[Figure]:
    """Every meter on speech with digital silence in it, against noise of that length, at 24 kHz."""
    sounds = {"noise": noise(60, 24000), "speech": spoken(60, 24000)}

    def streamed(x: np.ndarray) -> None:
        meter = Meter(24000)
        for part in np.array_split(x, 600):
            meter.feed(part)
        meter.result()

    meters: dict[str, Callable[[np.ndarray], object]] = {
        "integrated_lufs": cues.integrated_lufs,
        "measure": cues.measure,
        "Meter": streamed,
        "true_peak_dbtp": cues.true_peak_dbtp,
        "true_peak_dbtp, 16 times": lambda x: cues.true_peak_dbtp(x, oversampling=16),
    }
    for name, meter in meters.items():
        best = best_s({sound: lambda x=x, meter=meter: meter(x) for sound, x in sounds.items()}, 10)
        yield at_most("L2", f"{name}, speech with zeros / noise, 60 s", best["speech"] / best["noise"], 1.2)
    # Its time depends on how many candidates a sound has, so it is compared on the same speech.
    dithered = sounds["speech"] + np.random.default_rng(1).normal(0.0, 1e-5, len(sounds["speech"])).astype(np.float32)
    best = best_s({"zeros": lambda: find_clicks(sounds["speech"]), "dither": lambda: find_clicks(dithered)}, 10)
    yield at_most("L2", "find_clicks, speech with zeros / with dither, 60 s", best["zeros"] / best["dither"], 1.2)


def agreement() -> Iterator[Figure]:
    """Distance to other meters at 48 kHz. pyloudnorm's filter is its own, 0.04 LU off; it has no goal."""
    x = syllables(300, 48000)
    ours = cues.integrated_lufs(x, 48000)
    assert ours is not None
    ffmpeg = abs(ffmpeg_lufs(x, 48000) - ours) if shutil.which("ffmpeg") else None
    library = abs(ebur128.integrated_lufs(x, 48000) - ours) if ebur128.available() else None
    for peer, off in (("ffmpeg", ffmpeg), ("libebur128", library)):
        yield at_most("L1", f"distance to {peer}, 48 kHz, 5 min", off, 0.01, unit="LU", note="not installed")


def ffmpeg_lufs(x: np.ndarray, sample_rate: int) -> float:
    """Integrated loudness by ffmpeg's ebur128 filter, from its per-frame metadata (three decimals)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.wav"
        soundfile.write(path, x, sample_rate, "FLOAT")
        command = f"ffmpeg -hide_banner -nostats -i {path} -af ebur128=metadata=1,ametadata=print:file=- -f null -"
        done = subprocess.run(command.split(), capture_output=True, text=True, check=True)
    return float(re.findall(r"lavfi\.r128\.I=(-?[\d.]+)", done.stdout)[-1])


def fit() -> Iterator[Figure]:
    """How far the refitted filters are from the 48 kHz reference."""
    for sample_rate in (8000, 11025, 16000, 22050, 24000, 32000, 44100, 88200, 96000, 192000):
        top = (0.4979 if sample_rate >= 20000 else 0.475) * min(sample_rate, 48000)
        hz = np.geomspace(20, top, 5000)
        error = magnitude_db(design(sample_rate), hz, sample_rate) - magnitude_db(REFERENCE, hz, 48000)
        yield at_most("L1", f"K-weighting at {sample_rate} Hz", float(np.abs(error).max()), 0.01, unit="dB")


def figures() -> Iterator[Figure]:
    """All rows."""
    yield from fit()
    yield from agreement()
    yield from speed()
    yield from silence()


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
