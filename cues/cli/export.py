"""`cues export`: every cue of the bank as an audio file with a JSON sidecar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cues.cli import _options
from cues.cli._records import bank_of, number, print_json
from cues.cli._terminal import console, harmless, name_table
from cues.library.audiofile import FORMATS, default_subtype
from cues.library.export import PLAYERS, export_bank, export_for_player
from cues.units import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cues.library.bank import Bank
    from cues.library.export import Export

__all__ = ["command"]

_OF_OTHER_FILES = ("file_format", "subtype", "sample_rate", "pictures")
_SUBTYPES = sorted({subtype for subtypes in FORMATS.values() for subtype in subtypes})


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format",
    "file_format",
    type=click.Choice(list(FORMATS)),
    default="wav",
    show_default=True,
    help="Format of the audio files.",
)
@click.option("--subtype", type=click.Choice(_SUBTYPES), help="Sample format; by default 24 bits, or Vorbis for OGG.")
@_options.pack
@click.option(
    "--sample-rate",
    type=click.IntRange(MIN_SAMPLE_RATE, MAX_SAMPLE_RATE),
    default=24000,
    show_default=True,
    help="Rate of the files, Hz.",
)
@click.option(
    "--for",
    "player",
    type=click.Choice(list(PLAYERS)),
    help="Write the files that a player looks for, under its names and in its formats.",
)
@click.option("--pictures", is_flag=True, help="Also draw each cue as a PNG (needs matplotlib).")
@_options.json_output
def command(
    *,
    folder: Path,
    file_format: str,
    subtype: str | None,
    pack: Path | None,
    sample_rate: int,
    player: str | None,
    pictures: bool,
    as_json: bool,
) -> None:
    """Write every cue to DIR as an audio file, with its spec and levels as JSON.

    The folder is a pack: run `cues export DIR`, replace the files you like, and use it with `--pack DIR`. A new export
    replaces the files of an earlier one, in another format too, but never a sound of yours.
    """
    if player is not None:
        _export_for(player, folder, pack, as_json=as_json)
        return
    subtype = subtype or default_subtype(file_format)
    if subtype not in FORMATS[file_format]:
        allowed = ", ".join(FORMATS[file_format])
        raise click.BadParameter(f"{subtype!r} is not one of {allowed} (for {file_format})", param_hint="'--subtype'")
    bank = bank_of(pack, sample_rate)
    export = export_bank(bank, folder, file_format=file_format, subtype=subtype, pictures=pictures)
    if as_json:
        print_json(_record(folder, export))
        return
    _print(export.written, bank)
    for path in export.kept:
        click.echo(f"kept: {harmless(str(path))}; it is a sound of yours, or your pack.toml names it")
    for path in export.removed:
        click.echo(f"removed: {harmless(str(path))}, of an earlier export")


def _export_for(player: str, folder: Path, pack: Path | None, *, as_json: bool) -> None:
    """Write the files of a player; it prescribes their formats."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        if name in _OF_OTHER_FILES and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(f"not with --for: {player} prescribes it", context, option)
    export = export_for_player(lambda rate: bank_of(pack, rate), folder, player)
    if as_json:
        print_json(_record(folder, export))
        return
    for path in export.written:
        click.echo(harmless(str(path)))
    for path in export.kept:
        click.echo(f"kept: {harmless(str(path))}; it is not of an earlier export")


def _record(folder: Path, export: Export) -> dict[str, Any]:
    parts = {"files": export.written, "kept": export.kept, "removed": export.removed}
    return {"folder": str(folder), **{part: list(map(str, paths)) for part, paths in parts.items()}}


def _print(written: Sequence[Path], bank: Bank) -> None:
    table = name_table("file", "ms", "LUFS", "dBTP")
    for path in written:
        cue = bank[path.stem]
        assert cue.measured is not None  # the bank measures what it makes
        levels = number(cue.measured.m100_max_lufs), number(cue.measured.true_peak_dbtp)
        table.add_row(harmless(str(path)), number(1000 * cue.duration_s, digits=0), *levels)
    console().print(table)
