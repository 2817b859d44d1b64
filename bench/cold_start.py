"""C1: what importing costs in a fresh process; and what `warm_up()` does, also on a machine's first run.

    python -m bench.cold_start

Goals: `import cues, stream` ≤ 2 × `import numpy` and ≤ 120 ms; no numba, scipy, soundfile, soxr, openai in
`sys.modules`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

HEAVY = ("numba", "scipy", "soundfile", "soxr", "openai", "matplotlib")
CASES = {
    "numpy": "import numpy",
    "cues, stream": "import cues, stream",
    "cues, stream, and the names that a pipeline needs first": (
        "import cues, stream; cues.load_bank, cues.Cue, stream.TextReader, stream.CueRouter"
    ),
    "cues.load_bank(), warm cache": "import cues; cues.load_bank()",
    "numba": "import numba",
    "cues.warm_up(), kernels in the cache": "import cues; cues.warm_up()",
}


def import_ms(code: str, **environment: str) -> float:
    """Time of `code` in a new interpreter, the interpreter's own start left out."""
    timed = f"import time; start = time.perf_counter()\n{code}\nprint(1000 * (time.perf_counter() - start))"
    everything = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True, env=everything)
    return float(done.stdout)


def heavy_after(code: str) -> list[str]:
    """Heavy packages that `code` imported."""
    listing = f"{code}\nimport sys; print(' '.join(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return done.stdout.split()


def main() -> bool:
    """Print the times, and say whether the goal holds."""
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(11):
        for name, code in CASES.items():
            times[name].append(import_ms(code))
    best = {name: min(values) for name, values in times.items()}
    for name, ms in best.items():
        print(f"{name}: {ms:.1f} ms ({ms / best['numpy']:.2f} × numpy)")
    with tempfile.TemporaryDirectory() as empty:
        compiling_ms = import_ms(CASES["cues.warm_up(), kernels in the cache"], CUES_CACHE_DIR=empty)
    print(f"cues.warm_up(), first on a machine: {compiling_ms / 1000:.1f} s")
    heavy = heavy_after(CASES["cues, stream"])
    print(f"heavy packages after import cues, stream: {', '.join(heavy) or 'none'}")
    ours = best["cues, stream"]
    return ours <= 2 * best["numpy"] and ours <= 120 and not heavy


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
