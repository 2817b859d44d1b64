"""`cues live`: the assistant in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import cues
from cues.cli import _options
from cues.cli._terminal import harmless
from stream.replay.local_requests import is_loopback

if TYPE_CHECKING:
    from pathlib import Path

    from cues.cli._page_server import Watched
    from cues.cli.live.browser.conversation import ConversationOptions
    from cues.library.bank import Bank

__all__ = ["command", "rehearse"]

_REHEARSAL_SPEED = 100.0

_FORWARD = (
    "browsers play sound from workers on secure pages alone: give --certfile and --keyfile, or leave out --host and "
    "forward the port: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE"
)


@click.command()
@_options.server
@_options.question
@_options.speaker
@_options.pack
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=_options.PORT, default=8486, show_default=True, help="Port to listen on; 0: a free one.")
@click.option(
    "--buffer-ms",
    type=click.IntRange(20, 1000),
    default=120,
    show_default=True,
    help="Sound that the page holds back at least; more while frames come late.",
)
@click.option("--certfile", type=_options.EXISTING_FILE, help="Certificate for HTTPS.")
@click.option("--keyfile", type=_options.EXISTING_FILE, help="Key of the certificate.")
def command(
    *,
    folder: Path | None,
    system: str,
    recordings: tuple[Path, ...],
    speaker: str,
    pack: Path | None,
    host: str,
    port: int,
    buffer_ms: int,
    certfile: Path | None,
    keyfile: Path | None,
    **server: Any,
) -> None:
    """Talk to the assistant in a browser: hear the answer with its cues as it streams, and interrupt it.

    Without --base-url, recordings of model servers answer: no model, no key, no loudspeakers on this machine. The page
    shows words, calls, cues and levels on one time axis. A pack given with --pack is loaded anew when its files change.
    """
    base_url, model = server["base_url"], server["model"]
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
    from cues.cli._page_server import watched_bank
    from cues.cli.live.browser.conversation import ConversationOptions
    from cues.cli.live.scripts import built_in_scripts, script_of
    from cues.cli.live.turn import Target
    from stream.services import filesystem_tools

    scripts = [] if base_url else [script_of(recordings)] if recordings else built_in_scripts()
    targets = [script.target() for script in scripts]
    if base_url:
        targets.append(Target(**server, tools=filesystem_tools(folder) if folder else ()))
    cues.warm_up()
    options = ConversationOptions(targets=targets, bank=watched_bank(pack), speaker=speaker, system=system)
    hello = {
        "answers": f"{model} at {targets[0].shown}" if base_url else "recordings of model servers",
        "buffer_ms": buffer_ms,
        "scripts": [{"title": script.title, "prompt": script.prompt} for script in scripts],
    }
    watching = f", watching {harmless(str(pack))}" if pack else ""
    address = {"host": host, "port": port, "certfile": certfile, "keyfile": keyfile}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options, hello, address, watching))


async def _serve(options: ConversationOptions, hello: dict[str, Any], address: dict[str, Any], watching: str) -> None:
    """Serve until Ctrl-C."""
    from cues.cli._page_server import PageServer
    from cues.cli.live.browser.app import LivePages
    from stream.speech import choose_speaker

    await rehearse(options.bank)
    async with contextlib.aclosing(await choose_speaker(options.speaker)) as speaker:
        hello["speaker"] = speaker.name  # An error appears here, before any page is open.
    token = "" if is_loopback(address["host"]) else secrets.token_urlsafe(16)
    server = PageServer(LivePages(options, hello).app(), token=token, **address)
    click.echo(f"open {server.url} in a browser: {harmless(hello['answers'])}{watching} (Ctrl-C ends)")
    await server.serve()


async def rehearse(bank: Watched[Bank]) -> None:
    """Answer one question fast and unheard, before the first page opens.

    The first turn of a process imports modules and compiles patterns, 0.1 s at a time; so does a collection of all that
    was imported. The event loop of all pages would stand still for as long.
    """
    from cues.cli.live.browser.conversation import Conversation, ConversationOptions
    from cues.cli.live.scripts import demo_script
    from stream.clock import WallClock

    script = replace(demo_script(), tool_s=0.0, tokens_per_s=10.0 * _REHEARSAL_SPEED)
    options = ConversationOptions(targets=[script.target()], bank=bank, speaker="voice-like")
    async with Conversation(options, WallClock(_REHEARSAL_SPEED)) as conversation:
        conversation.ask(script.prompt)
        await conversation.answered()
    gc.collect()
    gc.freeze()
