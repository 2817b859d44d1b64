"""`cues speak`: speak the answer of a live model server or of a recording, with cues."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import stream
from cues.cli import _options
from cues.cli._terminal import harmless
from cues.cli.live.scripts import script_of
from cues.cli.live.turn import Target, speak_turn
from cues.errors import reason_of
from stream.clock import WallClock
from stream.replay.recording import DEFAULT_TOKENS_PER_S
from stream.services.addresses import default_model, local_address
from stream.services.tool import as_tools

__all__ = ["command"]


@click.command()
@click.argument("prompt", required=False, default="")
@_options.server
@click.option(
    "--tools",
    type=_options.EXISTING_FILE,
    help="JSON file with tool definitions (an array, in OpenAI's format); they are offered, but not run.",
)
@_options.question
@_options.spoken
@_options.json_output
def command(
    *,
    prompt: str,
    tools: Path | None,
    folder: Path | None,
    system: str,
    recordings: tuple[Path, ...],
    out: Path,
    speaker: str,
    pack: Path | None,
    fast: bool,
    as_json: bool,
    **server: Any,
) -> None:
    """Ask a model PROMPT and speak its answer, with cues for the tools that it calls.

    Without --base-url and --model, OLLAMA_LOCAL_BASE (else OLLAMA_HOST) and ACTOR_MODEL name the server and the model.

    Writes speak.wav, speak-speech.wav (without cues), speak.png and speak.json. With --fast, the waits for a
    live model are four times as long in these files. Ctrl-C interrupts the answer, like a barge-in.
    """
    if not (recordings or prompt):
        raise click.UsageError("give PROMPT, or --replay FILE")
    if tools and folder:
        raise click.UsageError("--tools offers tools without running them, --folder runs its own: give one of them")
    if recordings and server["base_url"]:
        raise click.UsageError("--replay takes the answer from a file, --base-url from a server: give one of them")
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt or "replay"})  # some APIs refuse an empty message
    clock = WallClock(_options.FAST_SPEED if fast else 1.0)
    if recordings:
        script = replace(script_of(recordings), tokens_per_s=DEFAULT_TOKENS_PER_S)
        title = ", ".join(file.name for file in recordings)
        target = replace(script.target(clock), base_url=title)
    else:
        server["base_url"] = server["base_url"] or local_address()
        server["model"] = server["model"] or default_model()
        target = Target(**server, tools=stream.services.filesystem_tools(folder) if folder else _tools(tools))
        title = f"{target.model} at {target.shown}"
    files: Any = {"out": out, "stem": "speak", "title": title, "as_json": as_json}
    asyncio.run(speak_turn(target, messages, clock=clock, speaker=speaker, pack=pack, **files))


def _tools(path: Path | None) -> list[stream.Tool]:
    """Tool definitions from a file: a JSON array in OpenAI's format."""
    if path is None:
        return []
    try:
        definitions = json.loads(path.read_text(encoding="utf-8"))
        # A dictionary's keys would be read as tools.
        return list(as_tools(definitions if isinstance(definitions, list) else [definitions]))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise click.UsageError(f"{str(path)!r} holds no tool definitions: {harmless(reason_of(error))}") from error
