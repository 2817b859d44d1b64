"""`cues live`: the assistant in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import cues
from cues.cli import _options
from cues.cli._terminal import harmless
from stream.local_requests import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cues.cli.live.browser.answers import Target
    from cues.cli.live.browser.conversation import Conversation, Setup
    from cues.cli.live.scripts import Script

__all__ = ["command"]

_FORWARD = (
    "browsers play sound from workers on secure pages alone: give --certfile and --keyfile, or leave out --host and "
    "forward the port: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE"
)


@click.command()
@click.option(
    "--base-url", type=_options.ServerUrl(), help="OpenAI-compatible server, such as http://localhost:11434/v1."
)
@click.option("--model", help="The model's name on the server.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Offer the model list_directory and read_file for this folder, and run them here.",
)
@click.option("--system", default="", help="A system prompt.")
@click.option(
    "--replay",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A recording that answers; give it again for the answer to a tool's result. Default: the demo's.",
)
@click.option(
    "--pipeline",
    type=click.Choice(["websocket", "fastrtc"]),
    default="websocket",
    show_default=True,
    help="How the sound gets to the page: fastrtc is WebRTC through FastRTC and its adapter.",
)
@_options.speaker
@_options.pack
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8486, show_default=True, help="Port to listen on; 0: a free one."
)
@click.option(
    "--buffer-ms",
    type=click.IntRange(20, 1000),
    default=120,
    show_default=True,
    help="Sound that the page holds back at least; more while frames come late.",
)
@click.option("--certfile", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Certificate for HTTPS.")
@click.option("--keyfile", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Key of the certificate.")
def command(
    *,
    base_url: str | None,
    model: str | None,
    folder: Path | None,
    system: str,
    recordings: tuple[Path, ...],
    pipeline: str,
    speaker: str,
    pack: Path | None,
    host: str,
    port: int,
    buffer_ms: int,
    certfile: Path | None,
    keyfile: Path | None,
) -> None:
    """Talk to the assistant in a browser: hear the answer with its cues as it streams, and interrupt it.

    Without --base-url, recordings of model servers answer: no model, no key, no loudspeakers on this machine. The page
    shows words, calls, cues and levels on one time axis. A pack given with --pack is loaded anew when its files change.
    """
    if (base_url is None) != (model is None):
        raise click.UsageError("give both --base-url and --model, or neither")
    if base_url and recordings:
        raise click.UsageError("--replay takes the answer from a file, --base-url from a server: give one of them")
    if folder and not base_url:
        raise click.UsageError("--folder offers tools to a live model; give --base-url and --model, too")
    if (certfile is None) != (keyfile is None):
        raise click.UsageError("give both --certfile and --keyfile, or neither")
    if not is_loopback(host) and certfile is None:
        raise click.UsageError(f"--host {harmless(host)} is not this machine alone, and {_FORWARD.format(port=port)}")
    click.echo("preparing the sounds …", err=True)
    scripts = [] if base_url else _scripts(recordings)
    model_asked = None if base_url is None or model is None else _model(base_url, model, folder)
    cues.warm_up()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            _serve(
                scripts,
                model_asked,
                pack=pack,
                speaker=speaker,
                system=system,
                pipeline=pipeline,
                buffer_ms=buffer_ms,
                address={"host": host, "port": port, "certfile": certfile, "keyfile": keyfile},
            )
        )


def _scripts(recordings: tuple[Path, ...]) -> list[Script]:
    from cues.cli.live.scripts import built_in_scripts, script_of

    return [script_of(recordings)] if recordings else built_in_scripts()


def _model(base_url: str, model: str, folder: Path | None) -> Target:
    from cues.cli.live.browser.answers import Target
    from stream.services import filesystem_tools

    key = os.environ.get("OPENAI_API_KEY")
    tools = filesystem_tools(folder) if folder else ()
    return Target(base_url=base_url, model=model, api_key=key, tools=tools)


async def _serve(
    scripts: Sequence[Script],
    model: Target | None,
    *,
    pack: Path | None,
    speaker: str,
    system: str,
    pipeline: str,
    buffer_ms: int,
    address: dict[str, Any],
) -> None:
    """Serve until Ctrl-C."""
    from cues.cli.live.browser.answers import served
    from cues.cli.live.browser.app import LivePages
    from cues.cli.live.browser.conversation import Setup
    from cues.cli.live.browser.rehearsal import rehearse
    from cues.cli.live.browser.server import LiveServer
    from cues.cli.live.browser.sounds import Sounds

    sounds = Sounds(pack)
    await rehearse(sounds.bank)
    voice = await _name_of(speaker)
    async with served(scripts) as recorded:
        setup = Setup(targets=[model] if model else recorded, bank=sounds.bank, speaker=speaker, system=system)
        answers = f"{model.model} at {model.base_url}" if model else "recordings of model servers"
        hello = {
            "answers": answers,
            "speaker": voice,
            "pipeline": pipeline,
            "buffer_ms": buffer_ms,
            "scripts": [{"title": script.title, "prompt": script.prompt} for script in scripts],
        }
        token = "" if is_loopback(address["host"]) else secrets.token_urlsafe(16)
        pages = LivePages(_conversations(pipeline, setup), sounds, hello)
        server = LiveServer(pages.app(), token=token, **address)
        watched = f", watching {harmless(str(pack))}" if pack else ""
        click.echo(f"open {server.url} in a browser: {harmless(answers)}{watched} (Ctrl-C ends)")
        await server.serve()


def _conversations(pipeline: str, setup: Setup) -> Callable[[], Conversation]:
    """The function that makes the conversation of a page."""
    from cues.cli.live.browser.app import MAX_PAGES
    from cues.cli.live.browser.conversation import Conversation

    if pipeline == "websocket":
        return partial(Conversation, setup)
    from cues.cli.live.browser.rtc import Peers, RtcConversation

    return partial(RtcConversation, Peers(setup.bank, MAX_PAGES), setup)


async def _name_of(speaker: str) -> str:
    """Name of the chosen speaker; its error appears here, before any page is open."""
    from stream.speech.choice import choose_speaker

    chosen = await choose_speaker(speaker)
    await chosen.aclose()
    return chosen.name
