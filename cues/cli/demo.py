"""`cues demo`: from a model server's bytes to a WAV file, with this package alone."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cues.cli import _options
from cues.cli.live.scripts import demo_script
from cues.cli.live.turn import run_turn
from stream.clock import WallClock

if TYPE_CHECKING:
    from pathlib import Path

    from stream.replay.recording import Recording

__all__ = ["command"]


@click.command()
@_options.spoken
@click.option("--text", help="What the assistant says instead; the tool is called after the first sentence.")
@click.option("--lang", "language", help="Language of TEXT, as espeak-ng names its voices: de, fr, es, …")
@_options.json_output
def command(
    *,
    out: Path,
    speaker: str,
    pack: Path | None,
    fast: bool,
    text: str | None,
    language: str | None,
    as_json: bool,
) -> None:
    """Hear it: a recorded model stream becomes speech with cues.

    The recorded stream of a llama-server comes in at the pace of a model: a sentence, then a call of get_weather. Its
    bytes are read, the speech is synthesized, and the cue plays over it as soon as the call is known. Then the tool and
    the model answer (this part is scripted, not recorded).

    Writes demo.wav, demo-speech.wav (without cues), demo.png and demo.json. Ctrl-C ends the demo and keeps the files of
    an earlier one.
    """
    if language and not text:
        raise click.UsageError("--lang is the language of --text: give both")
    if text is not None and not text.strip():
        raise click.BadParameter("is empty; give at least one word", param_hint="'--text'")
    clock, script = WallClock(_options.FAST_SPEED if fast else 1.0), demo_script()
    turns = list(script.turns)
    if text is not None:
        turns = [_saying(turn, words) for turn, words in zip(turns, _before_and_after(text), strict=True)]
    first, second = (turn.name for turn in turns)
    turn = run_turn(
        replace(script, turns=turns).target(clock),
        [{"role": "user", "content": script.prompt}],
        title=f"{first} at {script.tokens_per_s} tokens/s, then {second}",
        clock=clock,
        out=out,
        stem="demo",
        speaker=speaker,
        language=language,
        pack=pack,
        keeps_interrupted=False,
    )
    asyncio.run(turn).show(as_json=as_json)


def _before_and_after(text: str) -> tuple[str, str]:
    """The first sentence of a text, and the rest."""
    first, *rest = re.split(r"(?<=[.!?…])\s+|(?<=[。！？])", text.strip(), maxsplit=1)
    return first, "".join(rest)


def _saying(recording: Recording, text: str) -> Recording:
    """The recording with `text` in place of its own, a word a chunk."""
    pieces: list[bytes] = []
    words = re.findall(r"\S+\s*", text)
    for piece in recording.pieces():
        chunk = json.loads(piece[6:]) if piece.startswith(b"data: {") else {}
        choices = chunk.get("choices")
        if choices and choices[0]["delta"].get("content"):
            for word in words:
                choices[0]["delta"]["content"] = word
                pieces.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            words = []
        else:
            pieces.append(piece)
    return replace(recording, body=b"".join(pieces), reads=())
