"""`cues show`: one cue in the terminal, or as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from cues.cli import _options
from cues.cli._files import save_picture
from cues.cli._records import (
    STANDARD,
    bank_of,
    complete_cue,
    counted,
    cue_record,
    number,
    override_of,
    print_json,
    sound_of,
    source_of,
)
from cues.cli._terminal import console, harmless
from cues.library.audiofile import rate_and_channels
from cues.library.lint import check_cue, check_override
from cues.units import db_to_gain, gain_to_db

if TYPE_CHECKING:
    from rich.console import Console

    from cues.cue import Cue

__all__ = ["command"]

_MAX_COLUMNS, _MARGIN = 100, 7
_WAVE_ROWS, _ENVELOPE_ROWS, _ENVELOPE_DB = 8, 3, 48.0
# Bits of a braille cell (U+2800 + bits), left and right column, from top to bottom.
_BRAILLE = np.array(((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)))
_NO_DC_DBFS = -120.0


@click.command()
@click.argument("name", shell_complete=complete_cue)
@_options.pack
@click.option(
    "--png", type=_options.OutFile(".png", standard=True), help="Write a picture: waveform, spectrogram, loudness."
)
@_options.json_output
def command(*, name: str, pack: Path | None, png: Path | None, as_json: bool) -> None:
    """Show the cue NAME: its waveform and envelope, its measures and its problems.

    `motif:TOOL` is the sound derived from the name of a tool, - an audio file on standard input, and x.wav a file.
    """
    _options.one_standard_output("--png", png, as_json=as_json)
    bank = bank_of(pack)
    cue = sound_of(bank, name)
    record = cue_record(cue, source_of(bank, name) if name in bank else cue.name)
    override = override_of(bank, name)
    stem = name if name in bank else Path(name).stem
    problems = check_cue(cue) if override is None else check_override(stem, override, Path())[0]
    record["warnings"] = [problem.message for problem in problems]
    record["file"] = rate_and_channels(override.file) if override and override.file else None
    record["spec"] = cue.spec.to_table() if cue.spec else None
    if png:
        from cues.show.plots import picture

        save_picture(picture(cue), png)
    if as_json:
        print_json(record)
        return
    if str(png) == STANDARD:
        return
    out = console()
    if "⣿".encode(getattr(sys.stdout, "encoding", None) or "ascii", "ignore"):
        _print_pictures(out, cue)
    _print_measures(out, record)
    if png:
        out.print(f"\npicture: {harmless(str(png))}", overflow="fold")


def _print_pictures(out: Console, cue: Cue) -> None:
    """The waveform, and its envelope in dB below the peak."""
    width = max(10, min(out.width, _MAX_COLUMNS) - _MARGIN)
    low, high = _extremes(cue.samples, 2 * width)
    peak = float(max(-low.min(), high.max())) or 1.0
    labels = (f"+{peak:.2f}", *[""] * (_WAVE_ROWS - 2), f"−{peak:.2f}")
    for label, row in zip(labels, _dots(low / peak, high / peak, _WAVE_ROWS), strict=True):
        _print_row(out, label, row, "cyan")
    level_db = 20.0 * np.log10(np.maximum(np.maximum(-low, high) / peak, db_to_gain(-_ENVELOPE_DB)))
    labels = ("0 dB", *[""] * (_ENVELOPE_ROWS - 2), f"−{_ENVELOPE_DB:.0f} dB")
    rows = _dots(np.full(2 * width, -1.0), 1.0 + 2.0 * level_db / _ENVELOPE_DB, _ENVELOPE_ROWS)
    for label, row in zip(labels, rows, strict=True):
        _print_row(out, label, row, "yellow")
    _print_row(out, "", _time_axis(1000.0 * cue.duration_s, width), "dim")


def _extremes(samples: NDArray[np.float32], n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The lowest and the highest sample in each of `n` equal spans."""
    starts = np.minimum(np.linspace(0, len(samples), n + 1).astype(int)[:-1], len(samples) - 1)
    return np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts)


def _dots(low: NDArray[np.floating], high: NDArray[np.floating], n_rows: int) -> list[str]:
    """Rows of braille characters: in each column of dots a bar from `low` to `high`, within ±1."""
    top, bottom = (np.rint((1.0 - value) / 2.0 * (4 * n_rows - 1)) for value in (high, low))
    dots = np.arange(4 * n_rows)[:, None]
    cells = ((dots >= top) & (dots <= bottom)).reshape(n_rows, 4, -1, 2).astype(int) * _BRAILLE[None, :, None, :]
    return ["".join(chr(0x2800 + bits) for bits in row) for row in cells.sum(axis=(1, 3))]


def _print_row(out: Console, label: str, row: str, style: str) -> None:
    from rich.text import Text

    out.print(Text(f"{label:>6} ", style="dim") + Text(row, style=style), no_wrap=True, crop=True)


def _time_axis(length_ms: float, width: int) -> str:
    middle = f"{length_ms / 2:.0f}"
    end = f"{length_ms:.0f} ms"
    left = "0" + middle.rjust(width // 2 - 1 + len(middle) // 2)
    return left + end.rjust(width - len(left))


def _dc(mean: float) -> str:
    """The mean as a level; "none" below the resolution of 20 bits."""
    return number(gain_to_db(abs(mean)), "dBFS") if abs(mean) > db_to_gain(_NO_DC_DBFS) else "none"


def _converted(record: dict[str, Any]) -> str:
    """The file's own value, if it is not the same."""
    file = record["file"]
    if file is None or (file["sample_rate"], file["channels"]) == (record["sample_rate"], 1):
        return ""
    return f", from {file['sample_rate']} Hz, {counted(file['channels'], 'channel')}"


def _print_measures(out: Console, record: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    loop = ", plays in a loop" if record["loop"] else ""
    rows = {
        "name": harmless(record["name"]),
        "meaning": record["meaning"],
        "from": harmless(record["source"]),
        "length": f"{number(record['length_ms'], 'ms')}{loop}",
        "samples": f"{record['n_samples']} at {record['sample_rate']} Hz{_converted(record)}",
        "notes": " ".join(record["notes"]) or "none",
        "loudness": f"{number(record['m100_max_lufs'], 'LUFS')} in the loudest 100 ms",
        "integrated": record["integrated_lufs"] and number(record["integrated_lufs"], "LUFS"),
        "true peak": number(record["true_peak_dbtp"], "dBTP"),
        "DC": _dc(record["dc"]),
    }
    for title, text in rows.items():
        if text:
            table.add_row(title, text)
    out.print()
    out.print(table)
    out.print()
    for warning in record["warnings"]:
        out.print(f"! {harmless(warning)}", style="yellow", overflow="fold")
    if not record["warnings"]:
        out.print("nothing is wrong with it", style="green")
