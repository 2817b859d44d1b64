"""Every goal with its peers, as one table: `python -m bench [--rounds 3] [--only mixer --only loudness] [--write]`.

Each bench runs in a process of its own, once a round, one after the other, so that a noisy minute affects every bench.
A figure is the median of the rounds; a goal holds if it held in every round. `--write` renews the table, the picture
and the data in `bench/`. The extra `bench` brings peers; Debian has two more, `libebur128-1` and `ffmpeg`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.goals import Figure

HERE = Path(__file__).resolve().parent
PAGE, DATA, PICTURE = HERE / "README.md", HERE / "figures.json", HERE / "figures.png"
START, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
BENCHES = (
    *("mixer", "cold_start", "loudness", "true_peak", "stream_readers", "stream_formats", "stream_repair"),
    *("growth", "felt_latency", "silence"),
)
PACKAGES = (
    *("numpy", "numba", "llvmlite", "scipy", "pipecat-ai", "livekit", "pydub", "pedalboard", "pyloudnorm"),
    *("openai", "ollama", "anthropic", "google-genai"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure over all rounds."""

    figure: Figure
    values: tuple[float, ...]
    held: int

    @property
    def verdict(self) -> str:
        """The verdict of the table on the goal."""
        if not self.values:
            return f"not measured: {self.figure.note}"
        return (
            "holds"
            if self.held == len(self.values)
            else f"missed in {len(self.values) - self.held} of {len(self.values)}"
        )


def measured(bench: str) -> list[Figure]:
    """The rows of one bench; one that fails is a row without a figure."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{bench}", "--json"], capture_output=True, text=True, check=False
    )
    try:
        return [Figure(**row) for row in json.loads(done.stdout)]
    except ValueError:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [Figure(goal="–", what=f"bench.{bench}", measured=None, sign="≤", limit=0.0, note=why)]


def rows_of(rounds: list[list[Figure]]) -> list[Row]:
    """One row a figure, in the order of the first round."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for figure in (figure for one in rounds for figure in one):
        found.setdefault((figure.goal, figure.what), []).append(figure)
    return [
        Row(
            figure=figures[0],
            values=tuple(figure.measured for figure in figures if figure.measured is not None),
            held=sum(figure.holds is True for figure in figures),
        )
        for figures in found.values()
    ]


def surroundings() -> dict[str, Any]:
    """Date, command, machine and versions, without which two tables cannot be compared."""
    import llvmlite.binding

    features = llvmlite.binding.get_host_cpu_features()
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": f"python -m bench {' '.join(sys.argv[1:])}".strip(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "cores": os.cpu_count(),
        "features": [f for f in ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve") if features.get(f)],
        "python": sys.version.split()[0],
        "versions": versions,
    }


def table(rows: list[Row], around: dict[str, Any]) -> str:
    """The Markdown table, with what it was measured on."""
    versions = ", ".join(f"{name} {number}" for name, number in around["versions"].items())
    machine = f"{around['cores']} cores, {around['processor']} ({' '.join(around['features'])})"
    load = ", ".join(f"{load:.1f}" for load in around["load"])
    lines = [
        f"{around['date']}, `{around['command']}`, {machine}. Load before each round: {load}.",
        "",
        f"Python {around['python']}, {versions}.",
        "",
        "| goal | what | limit | median | spread | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        one, spread, unit = "–", "–", f" {row.figure.unit}".rstrip()
        if row.values:
            one = f"{statistics.median(row.values):.3g}{unit}"
            spread = f"{min(row.values):.3g} … {max(row.values):.3g}"
        limit = f"{row.figure.sign} {row.figure.limit:g}{unit}"
        lines.append(f"| {row.figure.goal} | {row.figure.what} | {limit} | {one} | {spread} | {row.verdict} |")
    return "\n".join(lines) + "\n"


_FURTHEST = 20.0  # the picture's scale ends there


def picture(rows: list[Row], path: Path) -> None:
    """Draw how far each figure is from its limit, as a factor; to the right of the line a goal holds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = [row for row in rows if row.values and row.figure.limit > 0.0 and min(row.values) > 0.0]
    figure, axes = plt.subplots(figsize=(10, 0.28 * len(shown) + 1.2), layout="constrained")
    for place, row in enumerate(shown):
        limit = row.figure.limit
        factors = [limit / value if row.figure.sign == "≤" else value / limit for value in row.values]
        factors = sorted(min(factor, _FURTHEST) for factor in factors)
        color = "#0072b2" if factors[0] >= 1.0 else "#d55e00"
        axes.plot([factors[0], factors[-1]], [place, place], color=color, linewidth=3, solid_capstyle="round")
        axes.plot(statistics.median(factors), place, "o", color=color)
    axes.set_yticks(range(len(shown)), [f"{row.figure.goal}  {row.figure.what}" for row in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.grid(axis="x", which="both", alpha=0.2)
    axes.margins(y=0.01)
    axes.set_title(
        f"Better than its limit by this factor, {_FURTHEST:g} or more (right of the line: it holds)", fontsize=10
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Measure, print and, if asked, write; 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=BENCHES, help="one bench; may be given several times")
    parser.add_argument("--write", action="store_true", help="renew README.md, figures.json and figures.png")
    options = parser.parse_args()
    rounds, load = [], []
    for _ in range(options.rounds):
        load.append(os.getloadavg()[0])
        rounds.append([figure for bench in options.only or BENCHES for figure in measured(bench)])
    rows, around = rows_of(rounds), {**surroundings(), "load": load}
    text = table(rows, around)
    print(text, end="")
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.partition(START)[0], page.partition(END)[2]
        shown = f"![How far each figure is from its limit]({PICTURE.name})\n\nAs data: [{DATA.name}]({DATA.name})."
        PAGE.write_text(f"{before}{START}\n{text}\n{shown}\n\n{END}{after}", encoding="utf-8")
        data = [
            {"goal": row.figure.goal, "what": row.figure.what, "limit": f"{row.figure.sign} {row.figure.limit:g}"}
            | {"unit": row.figure.unit, "values": row.values, "verdict": row.verdict}
            for row in rows
        ]
        DATA.write_text(json.dumps({**around, "figures": data}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        picture(rows, PICTURE)
    return int(any(row.values and row.held < len(row.values) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
