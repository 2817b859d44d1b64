"""`cues diff`: what is different between two packs, or between two cues."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

import cues
from cues.cli import _options
from cues.cli._files import save_picture
from cues.cli._records import bank_of, complete_cue, number, print_json, sound_of
from cues.cli._terminal import NARROW, console, harmless, name_table
from cues.cue import Cue
from cues.meters.similarity import similarity
from cues.show.plots import draw_spectrogram, new_figure
from cues.signal.spectra import CENTERS_HZ, octave_levels_db

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["command"]

Pair: TypeAlias = tuple[Cue, Cue]
_BUILT_IN = "built-in"
_HEARD_DB = -40.0
"""A band with less is not heard."""


@click.command()
@click.argument("first", metavar="A", shell_complete=complete_cue)
@click.argument("second", metavar="B", shell_complete=complete_cue)
@_options.pack
@click.option("--png", type=_options.OutFile(".png", standard=True), help="Write a picture: A and B side by side.")
@_options.json_output
def command(*, first: str, second: str, pack: Path | None, png: Path | None, as_json: bool) -> None:
    """Compare A and B: two packs (folders, or built-in), or two sounds (cues, or audio files; - is standard input).

    For each pair: differences of loudness, true peak and length from A to B, the octave band that differs most, and how
    similar rhythm and melody are. From 90 % on, people confuse them.
    """
    _options.one_standard_output("--png", png, as_json=as_json)
    folders = [name == _BUILT_IN or Path(name).is_dir() for name in (first, second)]
    if any(folders) and not all(folders):
        folder, other = (first, second) if folders[0] else (second, first)
        raise click.UsageError(f"{folder!r} is a folder and {other!r} is not; give two packs, or two sounds")
    if first == second == "-":
        raise click.UsageError("standard input holds one sound: give - once")
    only: dict[str, list[str]] = {}
    if all(folders):
        a, b = (cues.load_bank("") if name == _BUILT_IN else bank_of(Path(name)) for name in (first, second))
        pairs = [(a[name], b[name]) for name in a if name in b]
        only = {first: [name for name in a if name not in b], second: [name for name in b if name not in a]}
    else:
        bank = bank_of(pack)
        pairs = [(sound_of(bank, first), sound_of(bank, second))]
    records = [_record(pair) for pair in pairs]
    if png:
        different = [pair for pair, record in zip(pairs, records, strict=True) if not record["same"]]
        save_picture(_picture(different or pairs, (first, second)), png)
    if as_json:
        print_json(
            {"a": first, "b": second, "pairs": records, "only_a": only.get(first, []), "only_b": only.get(second, [])}
        )
    elif str(png) != "-":
        _print(records, (first, second), {side: names for side, names in only.items() if names})


def _picture(pairs: Sequence[Pair], titles: tuple[str, str]) -> Figure:
    """Spectrograms of pairs of cues side by side, a pair a row, each row on a time scale of its own."""
    figure = new_figure(9.0, 2.2 * len(pairs) + 0.6)
    grid = figure.subplots(len(pairs), 2, sharex="row", squeeze=False)
    for row, pair in zip(grid, pairs, strict=True):
        for axes, cue in zip(row, pair, strict=True):
            draw_spectrogram(axes, cue.samples, cue.sample_rate)
            axes.set(xlim=(0.0, max(_heard_s(cue) for cue in pair)), ylim=(80.0, 6000.0), title=cue.name)
            axes.set_facecolor("black")
            if row is not grid[-1]:
                axes.set_xlabel("")
        row[1].set_ylabel("")
    figure.suptitle("   |   ".join(titles))
    return figure


def _heard_s(cue: Cue) -> float:
    """Time of the last sample within 60 dB of the peak, seconds: the pause of a loop shows nothing."""
    magnitude = np.abs(cue.samples)
    return float(np.flatnonzero(magnitude >= 1e-3 * magnitude.max())[-1] + 1) / cue.sample_rate


def _record(pair: Pair) -> dict[str, Any]:
    a, b = pair
    assert a.measured is not None
    assert b.measured is not None
    bands = [octave_levels_db(cue.samples, cue.sample_rate) for cue in pair]
    same = a.sample_rate == b.sample_rate and np.array_equal(a.samples, b.samples)
    return {
        "a": a.name,
        "b": b.name,
        "same": same,
        "m100_lu": _difference(a.measured.m100_max_lufs, b.measured.m100_max_lufs),
        "true_peak_db": _difference(a.measured.true_peak_dbtp, b.measured.true_peak_dbtp),
        "length_ms": round(1000.0 * (b.duration_s - a.duration_s), 3),
        "bands_db": {
            str(hz): round(max(level_b, _HEARD_DB) - max(level_a, _HEARD_DB), 2)
            for hz, level_a, level_b in zip(CENTERS_HZ, *bands, strict=True)
            if max(level_a, level_b) > _HEARD_DB
        },
        "similarity": 1.0 if same else round(similarity(a, b), 4),
    }


def _difference(a: float, b: float) -> float | None:
    """From A to B; None if one of them is silent."""
    return round(b - a, 3) if math.isfinite(a) and math.isfinite(b) else None


def _signed(value: float | None, digits: int = 1) -> str:
    if value is None:
        return "–"
    return f"{value:+.{digits}f}".replace("-", "−") if abs(value) >= 0.5 * 10.0**-digits else "0"


def _cells(record: dict[str, Any]) -> list[str]:
    bands = record["bands_db"]
    most = max(bands, key=lambda hz: abs(bands[hz]), default=None)
    return [
        number(100 * record["similarity"], digits=0),
        _signed(record["m100_lu"]),
        _signed(record["true_peak_db"]),
        _signed(record["length_ms"], 0),
        f"{_signed(bands[most])} dB at {most} Hz" if most and abs(bands[most]) >= 0.05 else "",
    ]


def _print(records: Sequence[dict[str, Any]], sides: tuple[str, str], only: dict[str, list[str]]) -> None:
    out = console()
    table = name_table("name", "similar %", "LU", "dBTP", "ms")
    if out.width >= NARROW:
        table.add_column("spectrum", overflow="fold")
    for record in records:
        title = harmless(" → ".join(dict.fromkeys((record["a"], record["b"]))))
        table.add_row(title, *(["same"] if record["same"] else _cells(record)[: len(table.columns) - 1]))
    out.print(table)
    out.print(harmless(f"{sides[0]} → {sides[1]}: with +, {sides[1]} has more"), style="dim", overflow="fold")
    for side, names in only.items():
        out.print(f"only in {harmless(side)}: {harmless(', '.join(names))}", overflow="fold")
