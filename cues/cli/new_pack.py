"""`cues new-pack`: a pack to begin with."""

from __future__ import annotations

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

_HEADER = """\
# A pack: sounds of your own for the assistant, and which tool sounds which.
#
# Replace the WAV files beside this file by your own (WAV, FLAC or OGG; any rate, any number of channels, at most
# 10 s), or change what is said about them here. Then:
#
#   cues check .                    tells what is wrong, with the fix for each
#   cues page board.html --pack .   lets you hear your sounds beside the built-in ones
#   cues demo --pack .              lets you hear them in a conversation
#
# Use it: cues.load_bank("this folder"), or set the environment variable CUES_PACK to it.
# Whatever you delete here keeps its built-in sound. The bank brings every sound to its loudness and softens its edges.

[cues]
"""

_FOOTER = """
# A cue may say more than its file:
#
#   tool_call = { file = "tool_call.wav", gain_db = -2.0 }    quieter than usual, dB, -40 to 20
#   error     = { file = "error.wav", target_lu = -4.0 }      its loudness against the speech, LU
#   agent     = { file = "agent.wav", trim = true }           silence at both ends is cut off
#   success   = { file = "success.wav", normalize = false }   keeps the file's own loudness
#   working   = { file = "working.wav", loop = { period_ms = 2000 } }   comes again every 2 s
#   attention = { spec = "listening" }                        another built-in sound
#
# A cue of your own has any other name, and a rule below that uses it:
#
#   shutter = "shutter.wav"

[rules]
# Tool-name pattern = cue; the first that fits is taken. "motif" gives every tool that fits a small sound of its own.
#
#   "take_photo" = "shutter"
#   "read_*" = "motif"
#   "delegate_*" = "agent"
"""


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(*, folder: Path) -> None:
    """Make a pack in DIR: a commented pack.toml, and the built-in sounds as WAV files to replace.

    DIR must not exist, or be empty.
    """
    with explained(folder, kind=PackError):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise PackError(f"{folder}: is there already; name a new or an empty folder")
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
    (folder / "pack.toml").write_text(_HEADER + "".join(lines) + _FOOTER, encoding="utf-8")
