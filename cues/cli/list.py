"""`cues list`: every cue of the bank, one per line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cues.cli import _options
from cues.cli._records import bank_of, cue_record, number, print_json, source_of
from cues.cli._terminal import NARROW, console, harmless, name_table
from cues.library.pack import read_pack

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]

_HEARD_LU = 0.5


@click.command()
@_options.pack
@_options.json_output
def command(*, pack: Path | None, as_json: bool) -> None:
    """List the cues (length, loudness of the loudest 100 ms, true peak, notes, source) and the rules of the pack."""
    bank = bank_of(pack)
    records = [cue_record(cue, source_of(bank, name)) for name, cue in bank.items()]
    if as_json:
        print_json(records)
        return
    out = console()
    _print(out, records)
    for file in read_pack(bank.pack_dir).unnamed if bank.pack_dir else ():
        out.print(f"! {harmless(file)} is not heard: pack.toml does not use it", style="yellow", overflow="fold")
    if bank.rules:
        rules = ", ".join(f"{pattern} → {name}" for pattern, name in bank.rules)
        out.print(f"rules: {harmless(rules)}", overflow="fold")


def _print(out: Console, records: list[dict[str, Any]]) -> None:
    here = f"{Path.cwd()}{os.sep}"  # a full path would fill a narrow terminal
    table = name_table("name", "ms", "LUFS", "dBTP")
    if out.width >= NARROW:
        table.add_column("notes", overflow="fold", min_width=8)
        table.add_column("from", overflow="fold", ratio=1)
    for record in records:
        cells = [
            harmless(record["name"]),
            number(record["length_ms"], digits=0) + ("↻" if record["loop"] else " "),
            number(record["m100_max_lufs"]) + ("!" if _misses(record) else " "),
            number(record["true_peak_dbtp"]),
            " ".join(record["notes"]),
            harmless(record["source"].removeprefix(here)),
        ]
        table.add_row(*cells[: len(table.columns)])
    out.print(table)
    if any(record["loop"] for record in records):
        out.print("↻ plays in a loop", style="dim")
    for record in filter(_misses, records):
        name, missed = harmless(record["name"]), -record["missed_lu"]
        out.print(f"! {name} is {missed:.1f} LU quieter than its target; cues check says why", style="yellow")


def _misses(record: dict[str, Any]) -> bool:
    return (record.get("missed_lu") or 0.0) < -_HEARD_LU
