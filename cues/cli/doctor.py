"""`cues doctor`: what is installed, what would be used, and how to install the rest."""

import asyncio
import contextlib
import os
import platform
import shlex
from importlib import metadata, util
from pathlib import Path
from typing import Any

import click

import cues
from cues.cli import _options
from cues.cli._records import counted, print_json
from cues.cli._terminal import console, harmless
from cues.extras import PIPELINES, pip_install, require

__all__ = ["command"]

# extra → (purpose, modules)
EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "openai": ("OpenAI's client, and cues replay", ("openai", "h11")),
    "services": ("model servers, speech servers and tools: cues check-model", ("httpx2", "jsonschema", "pydantic")),
    "plots": ("pictures", ("matplotlib",)),
    "espeak": ("a real voice without a server", ("espeakng_loader",)),
    "play": ("loudspeakers: cues play", ("miniaudio",)),
    "page": ("the sound board: cues page", ("jinja2", "starlette", "uvicorn", "websockets")),
    "live": (
        "the assistant in a browser, and a repairing server: cues live, cues proxy",
        ("starlette", "uvicorn", "websockets"),
    ),
    "batch": ("remote folders and Dask: cues batch", ("fsspec", "distributed")),
}


# pipeline → what keeps calls and thoughts out of its speech
GUARDS = {
    "pipecat": "cues.adapters.pipecat.create(llm=…)",
    "livekit": "cues.adapters.livekit.guarded(llm)",
    "fastrtc": "stream.services.repairing_client()",
    "agents": "stream.services.repairing_client()",
}


@click.command()
@_options.pack
@_options.json_output
def command(*, pack: Path | None, as_json: bool) -> None:
    """Show what is installed, which voice, sound device, compile cache and pack would be used, and what is missing."""
    extras = [*map(_extra, EXTRAS), *map(_pipeline, PIPELINES)]
    findings = [_version(), *extras, _speaker(), _device(), _compile_cache(), _pack(pack)]
    if as_json:
        print_json({"findings": findings})
    else:
        _print(findings)


def _finding(topic: str, text: str, fix: str = "") -> dict[str, str]:
    return {"topic": topic, "state": "hint" if fix else "ok", "text": text, "fix": fix}


def _version() -> dict[str, str]:
    where = Path(cues.__file__).parent.parent
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return _finding("version", f"cue-engine {cues.__version__} in {where}, {python}")


def _extra(name: str) -> dict[str, str]:
    purpose, modules = EXTRAS[name]
    missing = [module for module in modules if util.find_spec(module) is None]
    if missing:
        return _finding(f"extra {name}", f"not installed ({', '.join(missing)}): {purpose}", pip_install(name))
    there = ", ".join(f"{module} {metadata.version(module.replace('_', '-'))}" for module in modules)
    return _finding(f"extra {name}", f"{purpose}: {there}")


def _pipeline(name: str) -> dict[str, str]:
    """The package of a pipeline. Nobody needs all of them, so a missing one is no problem."""
    distribution = PIPELINES[name][0]
    if not any(metadata.distributions(name=distribution)):
        return _finding(name, f"pipeline: {distribution} is not installed; if you use it, {pip_install(name)}")
    try:
        guard = f"; calls and thoughts in a model's text stay unspoken with {GUARDS[name]}"
        return _finding(name, f"pipeline: {distribution} {require(name)}{guard}")
    except cues.MissingFeatureError as error:
        return _finding(name, f"pipeline: {str(error).rpartition(': ')[0]}", pip_install(name))


def _speaker() -> dict[str, str]:
    from stream.errors import StreamError
    from stream.speech import choose_speaker

    async def name() -> str:
        async with contextlib.aclosing(await choose_speaker("auto")) as speaker:
            return speaker.name

    try:
        chosen = asyncio.run(name())
    except (StreamError, cues.CueError) as error:
        return _finding("voice", str(error), "see the extras above, or unset CUES_SPEECH_URL")
    if chosen.startswith("voice-like"):
        fix = f"{pip_install('espeak')}, or set CUES_SPEECH_URL to a speech server"
        return _finding("voice", "no real voice: the voice-like generator would speak", fix)
    return _finding("voice", chosen)


def _device() -> dict[str, str]:
    from cues.cli._loudspeakers import device_names, installed_players

    try:
        names = device_names()
    except cues.MissingFeatureError:
        return _finding("sound device", "unknown without the extra play", pip_install("play"))
    if names:
        return _finding("sound device", ", ".join(names))
    if programs := installed_players():
        return _finding("sound device", f"none for miniaudio; cues play tries {', '.join(programs)}")
    return _finding("sound device", "none: cues play cannot play here", "use cues live, page, export or mix instead")


def _compile_cache() -> dict[str, str]:
    from cues.library.cache import cache_dir
    from cues.mixing.warmup import has_object_file

    folder = cache_dir()
    if folder is None:
        return _finding("cache", "none: CUES_CACHE_DIR is empty", "unset it, or set it to a writable folder")
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    text = f"{folder}: {len(list(folder.glob('*.cue')))} finished cues"
    if not os.access(nearest, os.W_OK):
        return _finding("cache", f"{text}; not writable", "set CUES_CACHE_DIR to a writable folder")
    if not has_object_file():
        return _finding("cache", f"{text}, no mixing loops: warm_up() compiles them once, for 10 s", "cues warm-up")
    return _finding("cache", f"{text}, and the mixing loops")


def _pack(named: Path | None) -> dict[str, str]:
    from cues.library.lint import check_pack
    from cues.library.pack import find_pack_dir

    folder = find_pack_dir(named)
    if folder is None:
        return _finding("pack", "none: the built-in sounds")
    if problems := check_pack(folder):
        fix = f"cues check {shlex.quote(str(folder))}"
        return _finding("pack", f"{folder}: {counted(len(problems), 'problem')}", fix)
    return _finding("pack", f"{folder}: no problem")


def _print(findings: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(style="bold", overflow="fold", max_width=14)
    table.add_column(overflow="fold")
    for finding in findings:
        fine = finding["state"] == "ok"
        cell = Text(harmless(finding["text"]))
        if finding["fix"]:
            cell.append(f"\n→ {harmless(finding['fix'])}", style="yellow")
        table.add_row(Text("ok" if fine else "!", style="green" if fine else "yellow"), finding["topic"], cell)
    console().print(table)
