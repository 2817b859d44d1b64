"""A fresh process until its first mixed frame, against the import of numpy in the same process (C1, C2, C3).

    python -m bench.cold_start [--json]

Each round starts two processes, one for imports alone and one for a whole start. A figure is the median of the ratios
inside one round. The last row compiles in an empty cache, as the first process on a machine does.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.goals import Figure, at_most, run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 15
HEAVY = ("numba", "llvmlite", "scipy", "soundfile", "soxr", "openai", "matplotlib")
COMMON = """
import json, sys, time
took, clock = {}, time.perf_counter
def stage(name, work):
    start = clock()
    value = work()
    took[name] = clock() - start
    return value
def private_mb():
    # Pages of this process alone; those of llvmlite's library are a file's, if touched.
    total, skipped = 0, False
    for line in open("/proc/self/smaps"):
        key, *rest = line.split()
        if not key.endswith(":"):
            skipped = "libllvmlite" in line
        elif key.startswith("Private_") and not skipped:
            total += int(rest[0])
    return total / 1024
"""
IMPORTS = f"""{COMMON}
stage("import", lambda: __import__("cues") and __import__("stream"))
took["heavy"] = [name for name in {HEAVY} if name in sys.modules]
print(json.dumps(took))
"""
START = f"""{COMMON}
np = stage("numpy", lambda: __import__("numpy"))
before = private_mb()
cues = stage("cues", lambda: __import__("cues"))
bank = stage("bank", lambda: cues.load_bank())
stage("warm_up", lambda: cues.warm_up())
took["private_mb"] = private_mb() - before
frame = np.zeros(480, dtype=np.float32)
def first():
    mixer = cues.Mixer()
    mixer.play(bank["tool_call"])
    return mixer.mix(frame)
stage("session and first frame", first)
mixer = cues.Mixer()
mixer.play(bank["agent"])
stage("first frame", lambda: mixer.mix(frame))
for _ in range(5000):
    stage("one", lambda: np.add(frame, frame, out=frame))
    took["add"] = min(took.get("add", 1.0), took["one"])
took["heavy"] = [name for name in {HEAVY} if name in sys.modules and name != "llvmlite"]
print(json.dumps(took))
"""
COMPILE = f"""{COMMON}
import cues
clock = time.process_time
stage("compile", lambda: cues.warm_up())
print(json.dumps(took))
"""


def process(program: str, cache: Path) -> dict[str, float]:
    """Seconds of each stage of a fresh interpreter, its own start left out; bytecode is kept, as after an install."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables |= dict.fromkeys(("CUES_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX"), str(cache))
    variables["CUES_PACK"] = ""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=variables)
    return json.loads(done.stdout)


def ratio(runs: list[dict[str, float]], unit: str, *stages: str) -> float:
    """Time of some stages together by that of another one of the same process, the median of all processes."""
    return statistics.median(sum(taken[stage] for stage in stages) / taken[unit] for taken in runs)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        compiling_s = process(COMPILE, Path(folder))["compile"]
        for program in (IMPORTS, START):  # fills the caches
            process(program, Path(folder))
        imports, starts = zip(
            *((process(IMPORTS, Path(folder)), process(START, Path(folder))) for _ in range(ROUNDS)), strict=True
        )
    whole = ("numpy", "cues", "bank", "warm_up", "session and first frame")
    for taken, alone in zip(starts, imports, strict=True):
        alone["numpy"] = taken["numpy"]
    yield at_most("C1", "import cues, stream / import numpy", ratio(imports, "numpy", "import"), 0.2)
    yield at_most("C1", "heavy packages after import cues, stream", len(imports[0]["heavy"]), 0, unit="")
    yield at_most("C2", "first frame with a cue / np.add(480)", ratio(starts, "add", "first frame"), 200)
    yield at_most("C3", "warm_up(), full cache / import numpy", ratio(starts, "numpy", "warm_up"), 1.0)
    private_mb = max(taken["private_mb"] for taken in starts)
    yield at_most("C3", "its private memory beside llvmlite's library", private_mb, 15, unit="MB")
    yield at_most("C3", "numpy … load_bank(), warm_up(), frame / import numpy", ratio(starts, "numpy", *whole), 2.5)
    yield at_most("C3", "heavy packages after that but llvmlite", len(starts[0]["heavy"]), 0, unit="")
    yield at_most("–", "warm_up(), empty cache: processor time to compile", compiling_s, 20, unit="s")


if __name__ == "__main__":
    sys.exit(run(__doc__, figures))
