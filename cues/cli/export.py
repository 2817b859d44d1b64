"""`cues export`: every cue of the bank as an audio file with a JSON sidecar."""

from pathlib import Path

import click

from cues.cli import _options
from cues.cli._records import bank_of, print_json
from cues.cli._telephone import telephone_bank
from cues.cli._terminal import harmless
from cues.library.audiofile import FORMATS, default_subtype
from cues.library.export import PLAYERS, export_bank, export_for_player
from cues.meters.telephone import RATE_HZ
from cues.units import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE

__all__ = ["command"]

_SUBTYPES = sorted({subtype for subtypes in FORMATS.values() for subtype in subtypes})


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format", "file_format", type=click.Choice(list(FORMATS)), show_default="wav", help="Format of the audio files."
)
@click.option("--subtype", type=click.Choice(_SUBTYPES), help="Sample format; by default 24 bits, or Vorbis for OGG.")
@_options.pack
@click.option(
    "--sample-rate",
    type=click.IntRange(MIN_SAMPLE_RATE, MAX_SAMPLE_RATE),
    show_default="24000",
    help="Rate of the files, Hz.",
)
@click.option(
    "--for",
    "player",
    type=click.Choice(list(PLAYERS)),
    help="Write the files that a player looks for, under its names and in its formats.",
)
@_options.telephone
@click.option("--pictures", is_flag=True, help="Also draw each cue as a PNG (needs matplotlib).")
@_options.json_output
def command(
    *,
    folder: Path,
    file_format: str | None,
    subtype: str | None,
    pack: Path | None,
    sample_rate: int | None,
    player: str | None,
    telephone: bool,
    pictures: bool,
    as_json: bool,
) -> None:
    """Write every cue to DIR as an audio file, with its spec and levels as JSON.

    The folder is a pack: run `cues export DIR`, replace the files you like, and use it with `--pack DIR`. A new export
    replaces the files of an earlier one, in another format too, but never a sound of yours.
    """
    if player is not None:
        if file_format or subtype or sample_rate or telephone or pictures:
            raise click.UsageError(f"--for {player} prescribes the files: give no format, rate or pictures")
        export = export_for_player(lambda rate: bank_of(pack, rate), folder, player)
    else:
        file_format = file_format or "wav"
        subtype = subtype or default_subtype(file_format)
        if subtype not in FORMATS[file_format]:
            allowed = ", ".join(FORMATS[file_format])
            raise click.BadParameter(f"{subtype!r} is not one of {allowed} (for {file_format})", param_hint="--subtype")
        if telephone and sample_rate:
            raise click.UsageError(f"--telephone has a rate of its own, {RATE_HZ} Hz")
        bank = bank_of(pack, sample_rate or 24000)
        if telephone:
            bank = telephone_bank(bank)
        export = export_bank(bank, folder, file_format=file_format, subtype=subtype, pictures=pictures)
    if as_json:
        parts = {"files": export.written, "kept": export.kept, "removed": export.removed}
        print_json({"folder": str(folder), **{part: list(map(str, paths)) for part, paths in parts.items()}})
        return
    for path in export.written:
        click.echo(harmless(str(path)))
    for path in export.kept:
        click.echo(f"kept: {harmless(str(path))}; it is a sound of yours, or your pack.toml names it")
    for path in export.removed:
        click.echo(f"removed: {harmless(str(path))}, of an earlier export")
