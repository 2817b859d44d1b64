"""`cues warm-up`: fill the caches, so that a process starts without compiling or rendering."""

import os
from pathlib import Path

import click

from cues.cli import _options
from cues.cli._records import bank_of, print_json
from cues.cli._terminal import harmless
from cues.errors import CueError, CueValueError, MissingFeatureError, reason_of
from cues.mixing.warmup import write_object_file

__all__ = ["command"]


@click.command()
@click.option(
    "--into",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the files, as in a container image; set CUES_CACHE_DIR=DIR where sessions run.",
)
@click.option(
    "--level",
    metavar="LEVEL",
    help="Processors that have to run the loops, such as x86-64-v3; by default those like this one. A processor also "
    "runs the loops of lower levels.",
)
@_options.pack
@_options.json_output
def command(*, into: Path | None, level: str | None, pack: Path | None, as_json: bool) -> None:
    """Compile the mixing loops and render the cues, so that no session has to wait for them.

    The files go to the user's cache or to DIR. They are used only if nobody but their owner may write to them.
    """
    try:
        path, level = write_object_file(into, level)
    except CueValueError as error:
        raise click.BadParameter(str(error), param_hint="'--level'") from error
    except ImportError as error:
        raise MissingFeatureError(f"compiling needs numba: pip install numba ({error})") from error
    except (OSError, RuntimeError) as error:
        raise CueError(f"{into or 'the cache'}: the mixing loops cannot be kept: {reason_of(error)}") from error
    if into is not None:
        os.environ["CUES_CACHE_DIR"] = str(into)
    n_cues = len(bank_of(pack))
    if as_json:
        print_json({"object_file": str(path), "level": level, "cues": n_cues})
    else:
        click.echo(f"{harmless(str(path))}: the mixing loops, for {level}; and {n_cues} cues")
