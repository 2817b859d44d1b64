"""`cues list`: every cue of the bank, one per line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cues.cli import _options
from cues.cli._records import bank_of, cue_record, number, print_json, source_of
from cues.cli._terminal import NARROW, console, harmless, name_table

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
    (_print_list if out.width < NARROW else _print_table)(out, records)
    if bank.rules:
        rules = ", ".join(f"{pattern} → {name}" for pattern, name in bank.rules)
        out.print(f"rules: {harmless(rules)}", overflow="fold")


def _print_table(out: Console, records: list[dict[str, Any]]) -> None:
    table = name_table("name", "ms", "LUFS", "dBTP")
    table.add_column("notes", overflow="fold", min_width=8)
    table.add_column("from", overflow="fold", ratio=1)
    for record in records:
        table.add_row(
            harmless(record["name"]),
            number(record["length_ms"], digits=0) + ("↻" if record["loop"] else " "),
            number(record["m100_max_lufs"]) + ("!" if _misses(record) else " "),
            number(record["true_peak_dbtp"]),
            " ".join(record["notes"]),
            harmless(_nearby(record["source"])),
        )
    out.print(table)
    if any(record["loop"] for record in records):
        out.print("↻ plays in a loop", style="dim")
    for record in filter(_misses, records):
        out.print(_missed(record), style="yellow", overflow="fold")


def _misses(record: dict[str, Any]) -> bool:
    return (record.get("missed_lu") or 0.0) < -_HEARD_LU


def _missed(record: dict[str, Any]) -> str:
    return f"! {harmless(record['name'])} is {-record['missed_lu']:.1f} LU quieter than its target; cues check says why"


def _nearby(source: str) -> str:
    """Path relative to the current folder if it is inside; a full path would fill a narrow terminal."""
    here = f"{Path.cwd()}{os.sep}"
    return source.removeprefix(here)


def _print_list(out: Console, records: list[dict[str, Any]]) -> None:
    for record in records:
        out.print(harmless(record["name"]), style="cyan", overflow="fold")
        loop = ", loops" if record["loop"] else ""
        out.print(f"  {number(record['length_ms'], 'ms', 0)}{loop}, {' '.join(record['notes'])}", overflow="fold")
        out.print(f"  {number(record['m100_max_lufs'], 'LUFS')}, {number(record['true_peak_dbtp'], 'dBTP')}")
        out.print(f"  {harmless(_nearby(record['source']))}", style="dim", overflow="fold")
        if _misses(record):
            out.print(f"  {_missed(record)}", style="yellow", overflow="fold")
