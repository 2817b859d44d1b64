"""`cues replay`: serve a recording or a scenario, to test a voice pipeline without a model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cues.cli import _options
from cues.cli._terminal import harmless
from cues.errors import did_you_mean
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
@click.option("--port", type=_options.PORT, default=8484, show_default=True, help="0 takes a free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--tokens-per-s",
    type=_options.Number(0.0, min_open=True),
    default=DEFAULT_TOKENS_PER_S,
    show_default=True,
    help="Pace of the events.",
)
@click.option("--as-recorded", is_flag=True, help="Play each read at its recorded time.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each request.")
def command(
    *,
    files: tuple[Path, ...],
    scenario: str | None,
    port: int,
    host: str,
    tokens_per_s: float,
    as_recorded: bool,
    verbose: bool,
) -> None:
    """Serve recordings or a scenario over HTTP, at the pace of a model.

    Each FILE is a recording of one turn, of Chat Completions or Ollama's /api/chat: the first answers a new
    conversation, the second follows the first tool results, and so on. Point a client of that API at the printed
    address. The model and the words of a request do not matter.

    A scenario is a server's behavior with tool calls, such as `fork-duplicate`.
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
    server = ReplayServer(script, tokens_per_s=pace, host=host, port=port, on_answer=_print_answer if verbose else None)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))


def _print_answer(method: str, path: str, status: int) -> None:
    click.echo(f"{method} {harmless(path)} {status}")


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
