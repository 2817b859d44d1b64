"""`cues replay`: a recording as a server, so that a voice pipeline can be tried without a model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click

from stream.clock import WallClock
from stream.replay.recording import load_recording
from stream.replay.server import DEFAULT_TOKENS_PER_S, ReplayServer

__all__ = ["command"]


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=8484, show_default=True, help="0 takes a free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--tokens-per-s",
    type=click.FloatRange(0.0, min_open=True),
    default=DEFAULT_TOKENS_PER_S,
    show_default=True,
    help="Pace of the events.",
)
@click.option("--as-recorded", is_flag=True, help="Play each read at the time at which it was recorded.")
def command(*, files: tuple[Path, ...], port: int, host: str, tokens_per_s: float, as_recorded: bool) -> None:
    """Serve recordings over HTTP, at the pace of a model.

    Each FILE is a recording (.sse or .ndjson) and one turn: the first answers a conversation, the second is given after
    the first tool results, and so on. Point any OpenAI or Ollama client at the printed address; every request is
    answered, whatever its model and messages are.
    """
    turns = [load_recording(file) for file in files]
    pace = None if as_recorded else tokens_per_s
    server = ReplayServer(turns, tokens_per_s=pace, clock=WallClock(), host=host, port=port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))


async def _serve(server: ReplayServer) -> None:
    async with server:
        click.echo(f"serving on {server.base_url} (Ctrl-C ends)")
        await server.serve_forever()
