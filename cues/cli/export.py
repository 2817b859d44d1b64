"""`cues export`: every cue of the bank as an audio file with a JSON sidecar."""

from __future__ import annotations

from pathlib import Path

import click

import cues
from cues.audiofile import FORMATS, default_subtype
from cues.cli import _options
from cues.cli._records import print_json
from cues.cli._terminal import harmless
from cues.export import export_bank
from cues.units import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE

__all__ = ["command"]

_SUBTYPES = sorted({subtype for subtypes in FORMATS.values() for subtype in subtypes})


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "file_format", type=click.Choice(list(FORMATS)), default="wav", show_default=True)
@click.option(
    "--subtype", type=click.Choice(_SUBTYPES), help="Sample format: 24 bits, or Vorbis for OGG, if not given."
)
@_options.pack
@click.option(
    "--sample-rate",
    type=click.IntRange(MIN_SAMPLE_RATE, MAX_SAMPLE_RATE),
    default=24000,
    show_default=True,
    help="Of the files, Hz.",
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
    pictures: bool,
    as_json: bool,
) -> None:
    """Write every cue to DIR as an audio file, with its spec and levels beside it as JSON.

    The folder is a pack as it stands: `cues export DIR`, replace the files you like, and use it with `--pack DIR`.
    """
    subtype = subtype or default_subtype(file_format)
    if subtype not in FORMATS[file_format]:
        allowed = ", ".join(FORMATS[file_format])
        raise click.BadParameter(f"{subtype!r} is not one of {allowed} (for {file_format})", param_hint="'--subtype'")
    bank = cues.load_bank(pack, sample_rate=sample_rate)
    written = export_bank(bank, folder, file_format=file_format, subtype=subtype, pictures=pictures)
    if as_json:
        print_json({"folder": str(folder), "files": [str(path) for path in written]})
        return
    for path, cue in zip(written, bank.values(), strict=True):
        click.echo(f"{harmless(str(path))}  {1000 * cue.duration_s:.0f} ms{_levels(cue)}")


def _levels(cue: cues.Cue) -> str:
    if cue.measured is None:
        return ""
    return f"  {cue.measured.m100_max_lufs:.1f} LUFS  {cue.measured.true_peak_dbtp:.1f} dBTP"
