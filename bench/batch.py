"""Measuring many recordings: `cues batch measure` against decoding alone, and against pyloudnorm with scipy.

    python -m bench.batch                     500 files of 10 s
    python -m bench.batch --files 10000       the goal's number: 4.8 GB of WAV files, removed afterwards

Goal: loudness, true peak (4×) and clicks in a fifth of the time that pyloudnorm and scipy take for loudness and true
peak alone, on the same files, decoding included in both. The files are read before (the disk is not what is measured).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyloudnorm
import scipy.signal
import soundfile

import cues
from bench.interleaved import best_s
from cues.batch.measuring import COLUMNS, Measure
from cues.batch.recordings import find_sources
from cues.batch.run import run_batch, run_task
from cues.synthesis.voicelike import speak_voice_like

GOAL = 5.0
RATE, LENGTH_S = 24000, 10
N_COMPARED = 24
TEXT = (
    "Let me look that up for you, one moment please. The forecast says rain, so take an umbrella, or stay at home. " * 2
)


def make_files(folder: Path, n_files: int) -> None:
    """Write recordings that differ in level, in what is said, and in their noise."""
    speech = speak_voice_like(TEXT, sample_rate=RATE)
    n_samples = RATE * LENGTH_S
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(4 * n_samples).astype(np.float32)
    for k in range(n_files):
        start, at = rng.integers(0, len(speech)), rng.integers(0, len(noise) - n_samples)
        said = np.resize(np.roll(speech, -start), n_samples)
        soundfile.write(folder / f"{k:05}.wav", rng.uniform(0.3, 0.9) * said + 1e-3 * noise[at : at + n_samples], RATE)


def theirs(files: list[Path]) -> list[tuple[float, float]]:
    """Integrated loudness and true peak by pyloudnorm and scipy."""
    meter = pyloudnorm.Meter(RATE)
    figures = []
    for file in files:
        samples, _ = soundfile.read(file)
        peak = np.abs(scipy.signal.resample_poly(samples, 4, 1)).max()
        figures.append((meter.integrated_loudness(samples), 20 * np.log10(peak)))
    return figures


def decoding(files: list[Path]) -> None:
    """Decode and do nothing else."""
    for file in files:
        soundfile.read(file, dtype="float32")


def main() -> None:
    """Print the table; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cues.true_peak_dbtp(np.zeros(RATE * LENGTH_S, dtype=np.float32))  # loads the kernels
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, options.files)
        files = sorted(folder.glob("*.wav"))[:N_COMPARED]
        sources = find_sources(name)
        quick, exact = ([Measure(source, exact) for source in sources[:N_COMPARED]] for exact in (False, True))
        contenders = {
            "decoding alone": lambda: decoding(files),
            "cues: loudness, true peak 4×, clicks": lambda: [run_task(task) for task in quick],
            "the same with --exact (16×)": lambda: [run_task(task) for task in exact],
            "pyloudnorm + scipy: loudness, true peak 4×": lambda: theirs(files),
        }
        best = best_s(contenders, rounds=15)
        for label, seconds in best.items():
            print(f"{label:46}{1000 * seconds / len(files):8.2f} ms a file")
        ours, their = best["cues: loudness, true peak 4×, clicks"], best["pyloudnorm + scipy: loudness, true peak 4×"]
        print(f"one process: {their / ours:.1f} × faster (goal {GOAL:g} ×)")
        differences = [
            (abs(row["integrated_lufs"] - lufs), abs(row["true_peak_dbtp"] - dbtp))
            for row, (lufs, dbtp) in zip(map(run_task, quick), theirs(files), strict=True)
        ]
        print("largest differences: {:.3f} LU, {:.3f} dB".format(*np.max(differences, axis=0)))
        start = time.perf_counter()
        run = run_batch([*map(Measure, sources)], folder / "t.csv", COLUMNS, workers=options.workers)
        seconds = time.perf_counter() - start
        print(
            f"cues batch measure, {len(run.rows)} files on {options.workers} processes: {seconds:.1f} s with start-up, "
            f"{len(run.rows) / seconds:.0f} files/s"
        )
        assert not run.failed
    sys.exit(0 if their / ours >= GOAL else 1)


if __name__ == "__main__":
    main()
