"""`cues new-pack`: a pack to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

import cues
from cues.cli._terminal import harmless
from cues.errors import PackError
from cues.files import explained
from cues.library.audiofile import default_subtype, write_audio
from cues.synthesis.catalog import CATALOG

if TYPE_CHECKING:
    from cues.library.bank import Bank

__all__ = ["command"]

_RATE_HZ = 48000


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(*, folder: Path) -> None:
    """Make a pack in DIR: a commented pack.toml, and the built-in sounds as WAV files to replace.

    DIR must be new or empty.
    """
    with explained(folder, kind=PackError):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise PackError(f"{folder}: exists and is not empty; name a new or an empty folder")
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, cues.load_bank("", sample_rate=_RATE_HZ))
    shown = harmless(str(folder))
    click.echo(f"{shown}: pack.toml and {len(CATALOG)} sounds. Replace some, then: cues check {shown}")


def _write(folder: Path, bank: Bank) -> None:
    lines = []
    for name, built_in in CATALOG.items():
        write_audio(folder / f"{name}.wav", bank[name].samples, _RATE_HZ, "wav", default_subtype("wav"))
        entry = f'"{name}.wav"'
        if built_in.spec.loop:
            entry = f'{{ file = "{name}.wav", loop = true }}'
        lines.append(f"{name} = {entry}".ljust(56) + f"# {built_in.meaning}\n")
    template = resources.files(__package__).joinpath("new_pack.toml").read_text(encoding="utf-8")
    (folder / "pack.toml").write_text(template.replace("{cues}", "".join(lines)), encoding="utf-8")
