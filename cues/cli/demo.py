"""`cues demo`: from a model server's bytes to a WAV file, with this package alone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import stream
from cues.cli import _options
from cues.cli._report import report
from cues.cli.live.turn import Request, Setup, TurnReport, run_turn
from stream.clock import WallClock
from stream.replay.recording import load_recording, samples_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@click.command()
@_options.out
@_options.speaker
@_options.pack
@_options.fast
@click.option(
    "--speed", type=click.FloatRange(0.0, 100.0, min_open=True), help="Stream seconds per second; 1 is real time."
)
@_options.json_output
def command(*, out: Path, speaker: str, pack: Path | None, fast: bool, speed: float | None, as_json: bool) -> None:
    """Hear it: a recorded model stream becomes speech with cues.

    A local server replays a recorded stream of llama-server: a sentence, then a call of get_weather. The openai package
    reads the stream, the speech is synthesized, and the cue plays over it as soon as the call is known. Then the tool
    and the model answer (this part is scripted, not recorded).

    Writes demo.wav, demo-speech.wav (without cues), demo.png and demo.json. Ctrl-C ends the demo and keeps the files of
    an earlier one.
    """
    clock = WallClock(speed or (_options.FAST_SPEED if fast else 1.0))
    setup = Setup(clock=clock, out=out, stem="demo", speaker=speaker, pack=pack, keeps_interrupted=False)
    report(asyncio.run(_demo(setup)), as_json=as_json)


async def _demo(setup: Setup) -> TurnReport:
    from stream.replay.server import ReplayServer  # needs an extra, which `--help` does not

    folder = samples_folder()
    script = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    turns = [load_recording(folder / name) for name in script["turns"]]
    async with ReplayServer(turns, tokens_per_s=script["tokens_per_s"], clock=setup.clock) as server:
        request = Request(
            base_url=server.base_url,
            model="replay",
            messages=[{"role": "user", "content": script["prompt"]}],
            tools=[_scripted(tool, script, setup.clock) for tool in (turns[0].request or {})["tools"]],
        )
        title = f"{script['turns'][0]} at {script['tokens_per_s']} tokens/s, then {script['turns'][1]}"
        return await run_turn(request, setup, title=title)


def _scripted(definition: dict[str, Any], script: dict[str, Any], clock: WallClock) -> stream.Tool:
    """A tool of the recorded request, with the delay and the answer of the script."""
    tool = stream.Tool.of(definition)

    async def answer(**_: object) -> str:
        await clock.sleep(script["tool_s"])
        return str(script["tool_results"][tool.name])

    return replace(tool, function=answer)
