"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from stream.speech.choice import SPEAKERS

__all__ = ["FAST_SPEED", "fast", "json_output", "out", "pack", "speaker"]

FAST_SPEED = 4.0
"""Stream seconds per second of `--fast`: as fast as leaves the loop time to be punctual."""

out = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="the current folder",
    help="Folder for the files.",
)
speaker = click.option(
    "--speaker",
    type=click.Choice(SPEAKERS),
    default="auto",
    show_default=True,
    help="What speaks: a speech server (CUES_SPEECH_URL), espeak-ng, or a voice-like generator; auto takes the best.",
)
pack = click.option(
    "--pack", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Folder with cues of your own."
)
fast = click.option("--fast", is_flag=True, help=f"Run {FAST_SPEED:g} times faster than real time.")
json_output = click.option("--json", "as_json", is_flag=True, help="Print the record as JSON instead of a table.")
