"""`cues replay`: serve a recording or a scenario, to test a voice pipeline without a model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cues.errors import did_you_mean
from stream.clock import WallClock
from stream.replay.recording import DEFAULT_TOKENS_PER_S, load_recording

if TYPE_CHECKING:
    from stream.replay.server import ReplayServer, Script

__all__ = ["command"]


def _complete_scenario(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names that begin with `incomplete`, for shell completion."""
    del ctx, param
    try:
        from stream.replay.scenarios import names
    except ImportError:  # the extra is not installed
        return []
    return [name for name in names() if name.startswith(incomplete)]


@click.command()
@click.argument("files", metavar="[FILE...]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--scenario",
    metavar="NAME",
    shell_complete=_complete_scenario,
    help="Serve a scenario instead; `list` prints the names.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8484, show_default=True, help="0 takes a free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--tokens-per-s",
    type=click.FloatRange(0.0, min_open=True),
    default=DEFAULT_TOKENS_PER_S,
    show_default=True,
    help="Pace of the events.",
)
@click.option("--as-recorded", is_flag=True, help="Play each read at its recorded time.")
def command(
    *, files: tuple[Path, ...], scenario: str | None, port: int, host: str, tokens_per_s: float, as_recorded: bool
) -> None:
    """Serve recordings or a scenario over HTTP, at the pace of a model.

    Each FILE is a recording (.sse or .ndjson) of one turn: the first answers a new conversation, the second follows the
    first tool results, and so on. Point any OpenAI or Ollama client at the printed address; the model and the messages
    of a request do not matter.

    A scenario is a server's behavior with tool calls, such as `fork-duplicate` or `vllm-fragments`, in the format of
    the endpoint: /v1/chat/completions or /api/chat.
    """
    if (scenario is None) == (not files):
        raise click.UsageError("give either recordings or --scenario")
    # Needs an extra, which `--help` does not.
    from stream.replay import scenarios
    from stream.replay.server import ReplayServer

    if scenario == "list":
        click.echo("\n".join(scenarios.names()))
        return
    script = [load_recording(file) for file in files] if scenario is None else _scenario(scenario)
    pace = None if as_recorded else tokens_per_s
    server = ReplayServer(script, tokens_per_s=pace, clock=WallClock(), host=host, port=port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))


def _scenario(name: str) -> Script:
    from stream.replay.scenarios import names, scenario

    if name not in names():
        raise click.BadParameter(
            f"there is no {name!r}; `--scenario list` prints the names{did_you_mean(name, names())}",
            param_hint="'--scenario'",
        )
    return scenario(name)


async def _serve(server: ReplayServer) -> None:
    async with server:
        click.echo(f"serving on {server.base_url} (Ctrl-C ends)")
        await server.serve_forever()
