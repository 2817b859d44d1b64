"""`cues new-pack`: a pack to start from."""

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
# A pack: your own sounds for the assistant, and rules from tools to sounds.
#
# Replace the WAV files in this folder with your own (WAV, FLAC, OGG or MP3; any rate, any number of channels, at most
# 10 s), or change their settings here. Then:
#
#   cues check .                    lists every problem with its fix
#   cues page board.html --pack .   plays your sounds beside the built-in ones
#   cues demo --pack .              plays them in a conversation
#
# To use it: cues.load_bank("this folder"), or set the environment variable CUES_PACK to the folder.
# A cue that you delete here keeps its built-in sound. The bank levels every sound and softens its edges.

[cues]
"""

_FOOTER = """
# A cue can have settings:
#
#   tool_call = { file = "tool_call.wav", gain_db = -2.0 }    quieter than usual, dB, -40 to 20
#   error     = { file = "error.wav", target_lu = -4.0 }      its loudness against speech, LU
#   agent     = { file = "agent.wav", trim = true }           silence at both ends is trimmed
#   success   = { file = "success.wav", normalize = false }   keeps the file's own loudness
#   working   = { file = "working.wav", loop = { period_ms = 2000 } }   repeats every 2 s
#   attention = { spec = "listening" }                        another built-in sound
#   listening = { spec = { notes = [{ note = "C5", length_ms = 120 }] } }     a sound from notes
#
# A new cue has any other name, and a rule below that uses it:
#
#   shutter = "shutter.wav"

[rules]
# Tool-name pattern = cue; the first match wins. "motif" gives each matching tool its own short sound.
#
#   "take_photo" = "shutter"
#   "read_*" = "motif"
#   "delegate_*" = "agent"
"""


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
    (folder / "pack.toml").write_text(_HEADER + "".join(lines) + _FOOTER, encoding="utf-8")
