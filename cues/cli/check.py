"""`cues check`: every problem of a pack."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from cues.cli import _options
from cues.cli._records import counted, print_json
from cues.cli._terminal import console, harmless
from cues.errors import PackError
from cues.library.lint import check_pack
from cues.library.lint_rules import Problem

__all__ = ["command"]


@click.command()
@click.argument("folder", metavar="DIR", type=_options.EXISTING_FOLDER)
@_options.json_output
def command(*, folder: Path, as_json: bool) -> None:
    """Check the pack in DIR: its pack.toml, each sound, and sounds that are hard to tell apart.

    Each problem is one line, usually with its fix below. The exit code is 1 if there is any.
    """
    problems = check_pack(folder)
    if as_json:
        print_json({"pack": str(folder), "problems": [asdict(problem) for problem in problems]})
    else:
        _print(folder, problems)
    sys.exit(1 if problems else 0)


def _print(folder: Path, problems: list[Problem]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    for problem in problems:
        # Messages about the pack itself already begin with their place.
        place = Text() if problem.code == PackError.code else Text(f"{harmless(problem.where)}: ", style="cyan")
        out.print(place + Text(harmless(problem.message)), overflow="fold")
        if problem.fix:
            out.print(Padding(Text(f"→ {problem.fix}", style="dim", overflow="fold"), (0, 0, 0, 2), expand=False))
    count = counted(len(problems), "problem") if problems else "no problem"
    out.print(f"{harmless(str(folder))}: {count}", style="bold green" if not problems else "bold", overflow="fold")
