"""Options shared by several commands."""

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from stream.speech import SPEAKERS

__all__ = ["Number", "OutFile", "checked_url", "one_standard_output", "together"]

EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
PORT = click.IntRange(0, 65535)
FAST_SPEED = 4.0
"""Stream seconds per second of `--fast`; the event loop keeps up at this speed."""


class OutFile(click.Path):
    """A file to write, with one of the extensions `endings`; with `standard`, also `-`, standard output."""

    def __init__(self, *endings: str, standard: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=False, allow_dash=standard)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(super().convert(value, param, ctx))  # type: ignore[arg-type]  # bytes only for another path_type
        if path.suffix.lower() not in self.endings and not (self.allow_dash and str(path) == "-"):
            allowed = " or ".join(", ".join(self.endings).rsplit(", ", 1))
            self.fail(f"{str(path)!r} must end in {allowed}", param, ctx)
        return path


class Number(click.FloatRange):
    """A number in a range; click lets NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def checked_url(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    """The address of a model server, unchanged."""
    from stream.errors import StreamValueError
    from stream.services.addresses import api_and_address
    from stream.urls import shown_url

    try:
        api_and_address(url or "http://localhost")
    except StreamValueError as error:
        raise click.BadParameter(f"{shown_url(url or '')!r} must be an http:// or https:// address") from error
    return url


def _key_in(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    """The key in an environment variable, which is set."""
    from stream.checks import header_value
    from stream.errors import StreamValueError

    if not name:
        return None
    try:
        key = header_value(name, os.environ.get(name, ""))
    except StreamValueError as error:
        raise click.BadParameter(str(error)) from error
    if not key:
        raise click.BadParameter(f"{name} is empty; set it to the server's key")
    return key


def one_standard_output(option: str, file: Path | None, *, as_json: bool) -> None:
    """Reject `--json` beside a file that goes to standard output."""
    if as_json and str(file) == "-":
        raise click.UsageError(f"standard output holds either the JSON or the file: give {option} a name")


def together(*options: Decorator) -> Decorator:
    """One decorator for several options, which `--help` shows in this order."""
    return lambda command: functools.reduce(lambda inner, option: option(inner), reversed(options), command)


pack = click.option("--pack", type=EXISTING_FOLDER, help="Folder with your own cues.")
json_output = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
telephone = click.option("--telephone", is_flag=True, help="As over a telephone: 300 to 3400 Hz, G.711, 8 kHz.")
speaker = click.option(
    "--speaker",
    type=click.Choice(SPEAKERS),
    default="auto",
    show_default=True,
    help="Speech from a server (CUES_SPEECH_URL), espeak-ng, or a voice-like generator; auto takes the best.",
)
server = together(
    click.option(
        "--base-url", metavar="URL", callback=checked_url, help="Model server, such as http://localhost:11434."
    ),
    click.option("--model", help="The model's name on the server."),
    click.option(
        "--api",
        type=click.Choice(["auto", "chat", "ollama"]),
        default="auto",
        show_default=True,
        help="Chat Completions, or Ollama's own endpoint; auto takes the latter for Ollama's cloud alone.",
    ),
    click.option(
        "--api-key-env",
        "api_key",
        metavar="NAME",
        callback=_key_in,
        help="Variable with the server's key. Without it, OPENAI_API_KEY goes to OpenAI's own host alone.",
    ),
)
"""Fields of a `Target`."""
question = together(
    click.option(
        "--folder",
        type=EXISTING_FOLDER,
        help="Offer list_directory and read_file for this folder, and run them here; files outside are not accessible.",
    ),
    click.option("--system", default="", help="A system prompt."),
    click.option(
        "--replay",
        "recordings",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A recording that answers in place of a server; give it again for the answer to a tool's result.",
    ),
)
spoken = together(
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(),
        show_default="the current folder",
        help="Folder for the files.",
    ),
    speaker,
    pack,
    click.option("--fast", is_flag=True, help=f"Run {FAST_SPEED:g} times faster than real time."),
)
