"""Frames in which a cue starts, stops or ends, and `play` itself (M7); what a session takes of memory (E1).

Single calls, as a live session makes them: each is timed alone, with `np.add` of two such frames timed the same way
between them. `python -m bench.mixer` prints these rows, too.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np

import cues
from bench.goals import at_most, run
from cues._kernels import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.goals import Figure

N = 480
TURNS = 2000


class Times:
    """Durations of single calls by name, ns."""

    def __init__(self) -> None:
        self._taken: dict[str, list[int]] = {}

    def take(self, name: str, call: Callable[[], Any]) -> Any:
        """Time one call."""
        start = time.perf_counter_ns()
        result = call()
        self._taken.setdefault(name, []).append(time.perf_counter_ns() - start)
        return result

    def median(self, name: str) -> float:
        """Median, ns."""
        return float(np.median(self._taken[name]))

    def p99(self, name: str) -> float:
        """The 99th percentile, ns."""
        return float(np.percentile(self._taken[name], 99))

    def names(self) -> list[str]:
        """The timed operation."""
        return list(self._taken)


def turn(times: Times, mixer: cues.Mixer, cue: cues.Cue, frame: np.ndarray, out: np.ndarray, *, stop: bool) -> None:
    """One cue, played to its end or stopped, then frames until the mixer is idle.

    The frames of its end are those in which the mixer plans: where the duck is lifted or goes on because of speech.
    """
    kind = "speech" if frame.any() else "silence"
    voice = times.take("play", lambda: mixer.play(cue))
    times.take(f"starts over {kind}", lambda: mixer.mix(frame, out=out))
    times.take("np.add", lambda: np.add(frame, frame, out=out))
    if stop:
        mixer.mix(frame, out=out)
        voice.stop()
        times.take(f"stops over {kind}", lambda: mixer.mix(frame, out=out))
    words = mixer._row.words
    for _ in range(40):  # the rest of it, the hold and the way back
        plans = words[layout.WAKE_I64] < mixer.position + N
        times.take(f"ends over {kind}" if plans else "goes on", lambda: mixer.mix(frame, out=out))


def events() -> Times:
    """Times of single calls, over speech and over silence."""
    cue = cues.load_bank()["success"]
    speech = np.random.default_rng(0).uniform(-0.1, 0.1, N).astype(np.float32)
    out, times, mixer = np.empty_like(speech), Times(), cues.Mixer()
    for number in range(TURNS):
        frame = speech if number % 2 else np.zeros_like(speech)
        turn(times, mixer, cue, frame, out, stop=number % 4 < 2)
    return times


def bytes_of(make: Callable[[], object], n: int = 300) -> float:
    """Bytes of all Python objects of what `make` returns, on average."""
    kept = [make() for _ in range(4)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept += [make() for _ in range(n)]
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / n


def figures() -> Iterable[Figure]:
    """The rows of M7 and E1."""
    cues.warm_up()
    gc.collect()
    gc.freeze()
    times = events()
    add = times.median("np.add")
    yield at_most("M7", "play() / np.add, single calls", times.median("play") / add, 10)
    for name in times.names():
        if name.startswith(("starts", "stops", "ends")):
            yield at_most("M7", f"a frame in which a cue {name} / np.add", times.median(name) / add, 15)
            yield at_most("M7", f"the same, 99th percentile: {name}", times.p99(name) / add, 40)
    yield at_most("E1", "state of a session with 8 voices", cues.Mixer().state_bytes, 384, unit="B")
    yield at_most("E1", "the same with a limiter", cues.Mixer(limiter=True).state_bytes, 1024, unit="B")
    yield at_most("E1", "all Python objects of a Mixer, its state with them", bytes_of(cues.Mixer), 2048, unit="B")


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
