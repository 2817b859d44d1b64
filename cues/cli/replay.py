"""`cues replay`: a recording or a scenario as a server, so that a voice pipeline can be tried without a model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click

from stream.clock import WallClock
from stream.replay import scenarios
from stream.replay.recording import load_recording
from stream.replay.server import DEFAULT_TOKENS_PER_S, ReplayServer

__all__ = ["command"]


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--scenario", metavar="NAME", help="Play a server's manners by name instead; `list` prints the names.")
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
def command(
    *, files: tuple[Path, ...], scenario: str | None, port: int, host: str, tokens_per_s: float, as_recorded: bool
) -> None:
    """Serve recordings or a scenario over HTTP, at the pace of a model.

    Each FILE is a recording (.sse or .ndjson) and one turn: the first answers a conversation, the second is given after
    the first tool results, and so on. Point any OpenAI or Ollama client at the printed address; every request is
    answered, whatever its model and messages are.

    A scenario is what a server does with tool calls, such as `fork-duplicate` or `vllm-fragments`: written for the
    endpoint that is asked, at /v1/chat/completions or /api/chat.
    """
    if (scenario is None) == (not files):
        raise click.UsageError("give recordings or --scenario, one of the two")
    if scenario == "list":
        click.echo("\n".join(scenarios.names()))
        return
    if scenario is not None and scenario not in scenarios.names():
        raise click.BadParameter(
            f"there is no {scenario!r}; `--scenario list` prints the names", param_hint="--scenario"
        )
    turns = [load_recording(file) for file in files] if scenario is None else scenarios.scenario(scenario)
    pace = None if as_recorded else tokens_per_s
    server = ReplayServer(turns, tokens_per_s=pace, clock=WallClock(), host=host, port=port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))


async def _serve(server: ReplayServer) -> None:
    async with server:
        click.echo(f"serving on {server.base_url} (Ctrl-C ends)")
        await server.serve_forever()
