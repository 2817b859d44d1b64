"""How cost grows with size: `python -m bench.growth [--json]`; `CUES_GROWTH_PNG=PATH` draws the curves too.

Voices, sessions, length of a stream, size of arguments, tools that are offered, files of a batch. A curve bends upward
if a further unit costs more at the large end than in the middle; the goal allows a fifth for what two runs differ by.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import cues
import stream
from bench.goals import Figure, at_most, run
from bench.interleaved import best_s
from cues.batch.measuring import Measure
from cues.batch.recordings import find_sources
from cues.batch.run import run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Curve = list[tuple[int, float]]
FRAME = np.zeros(480, dtype=np.float32)


def tone() -> cues.Cue:
    return cues.Cue(name="tone", samples=0.02 * np.sin(np.arange(24_000) * 0.2))


def voices(count: int) -> Callable[[], object]:
    mixer, cue, out = cues.Mixer(voices=64), tone(), np.empty_like(FRAME)
    for _ in range(count):
        mixer.play(cue, loop=True)
    for _ in range(30):
        mixer.mix(FRAME)
    return lambda: [mixer.mix(FRAME, out=out) for _ in range(200)]


def sessions(count: int) -> Callable[[], object]:
    pool, cue = cues.MixerPool(sessions=count, frame_samples=480), tone()
    frames = np.zeros((count, 480), dtype=np.float32)
    for number in range(count):
        pool[number].play(cue, loop=True)
    for _ in range(20):
        pool.mix(frames, out=frames)
    return lambda: pool.mix(frames, out=frames)


def stream_length(count: int) -> Callable[[], object]:
    line = b'{"message":{"content":"word and "},"done":false}\n'

    def read() -> None:
        reader = stream.OllamaReader()
        for _ in range(count):
            reader.feed(line)
        reader.close()

    return read


def argument_characters(count: int) -> Callable[[], object]:
    head = '<tool_call>{"name": "note", "arguments": {"text": "'

    def read() -> None:
        reader = stream.TextReader()
        reader.feed(head)
        for _ in range(count // 8):
            reader.feed("abcd fgh")
        reader.feed('"}}</tool_call>')
        reader.close()

    return read


def tools(count: int) -> Callable[[], object]:
    names = [f"tool_number_{number}" for number in range(count)]
    text = "The weather is fine today, and tool_number_7 is not called by anyone in this sentence. " * 40

    def read() -> None:
        reader = stream.TextReader(names)
        reader.feed(text)
        reader.close()

    return read


CURVES: dict[str, tuple[Callable[[int], Callable[[], object]], tuple[int, ...]]] = {
    "voices of a mixer": (voices, (1, 8, 16, 32, 64)),
    "sessions of a pool": (sessions, (50, 250, 500, 1000, 2000)),
    "lines of a stream": (stream_length, (1000, 10_000, 20_000, 40_000, 80_000)),
    "characters of arguments": (argument_characters, (8000, 80_000, 160_000, 320_000, 640_000)),
    "tools that are offered": (tools, (1, 100, 200, 400, 800)),
}


def curve(make: Callable[[int], Callable[[], object]], sizes: tuple[int, ...]) -> Curve:
    """Least time of each size, in turns."""
    best = best_s({str(size): make(size) for size in sizes}, rounds=25)
    return [(size, best[str(size)]) for size in sizes]


def batch_files() -> Curve:
    """Time of `cues batch measure` in this process, by files."""
    import soundfile

    sizes = (25, 50, 100, 200)
    with tempfile.TemporaryDirectory() as work:
        paths = [Path(work) / f"{number}.wav" for number in range(sizes[-1])]
        for path in paths:
            soundfile.write(path, tone().samples, 24_000)
        tasks = [Measure(source) for source in find_sources(work)]
        return curve(lambda count: lambda: [run_task(task) for task in tasks[:count]], sizes)


def bend(points: Curve) -> float:
    """Cost of a further unit over the last step, against that over the step before."""
    (a, cost_a), (b, cost_b), (c, cost_c) = points[-3:]
    return ((cost_c - cost_b) / (c - b)) / ((cost_b - cost_a) / (b - a))


def draw(curves: dict[str, Curve], path: str) -> None:
    """All curves, each by its own largest size and cost."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    for panel, (name, points) in zip(panels.flat, curves.items(), strict=True):
        sizes, costs = zip(*points, strict=True)
        panel.plot(sizes, [1e3 * cost for cost in costs], "o-", color="#0072b2")
        panel.set(xlabel=name, ylabel="ms", xlim=(0, None), ylim=(0, None))
        panel.grid(alpha=0.2)
    figure.savefig(path, dpi=110)


def figures() -> Iterator[Figure]:
    """A row for each curve."""
    cues.warm_up()
    curves = {name: curve(*how) for name, how in CURVES.items()}
    curves["files of a batch"] = batch_files()
    for name, points in curves.items():
        yield at_most("G1", f"a further unit at the end / in the middle: {name}", bend(points), 1.2)
    if path := os.environ.get("CUES_GROWTH_PNG"):
        draw(curves, path)


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
