"""`cues demo`: from a model server's bytes to a WAV file, with this package alone."""

import asyncio
from pathlib import Path

import click

from cues.cli import _options
from cues.cli.live.scripts import demo_script
from cues.cli.live.turn import speak_turn
from cues.extras import needed
from stream.clock import WallClock

__all__ = ["command"]


@click.command()
@_options.spoken
@_options.json_output
def command(*, out: Path, speaker: str, pack: Path | None, fast: bool, as_json: bool) -> None:
    """Hear it: a recorded model stream becomes speech with cues.

    The recorded stream of a llama-server comes in at the pace of a model: a sentence, then a call of get_weather. Its
    bytes are read, the speech is synthesized, and the cue plays over it as soon as the call is known. Then the tool and
    the model answer (this part is scripted, not recorded).

    Writes demo.wav, demo-speech.wav (without cues), demo.png and demo.json. Ctrl-C ends the demo and keeps the files of
    an earlier one.
    """
    for module in ("httpx2", "matplotlib"):  # said before the turn, not after it
        needed(module, "demo", f"the demo needs {module}")
    clock, script = WallClock(_options.FAST_SPEED if fast else 1.0), demo_script()
    first, second = (turn.name for turn in script.turns)
    turn = speak_turn(
        script.target(clock),
        [{"role": "user", "content": script.prompt}],
        title=f"{first} at {script.tokens_per_s} tokens/s, then {second}",
        clock=clock,
        out=out,
        stem="demo",
        speaker=speaker,
        pack=pack,
        as_json=as_json,
        keeps_interrupted=False,
    )
    asyncio.run(turn)
