"""The `cues` command. It may import both packages, and nothing imports it.

Each command is a file, imported only when it is called, so `cues --help` is instant.
"""

import importlib
import io
import logging
import signal
import sys
from typing import NoReturn

import click

import cues
from cues.errors import CueError, UnknownCueError, did_you_mean, reason_of
from cues.extras import pip_install

__all__ = ["main"]

# command → (module, summary in the overview)
COMMANDS = {
    "demo": ("cues.cli.demo", "Hear it: a recorded model stream becomes speech with cues, in one WAV."),
    "live": ("cues.cli.live.browser.command", "Talk to the assistant in a browser; no loudspeakers or model needed."),
    "speak": ("cues.cli.speak", "Speak the answer of a live model server, or of a recording, with cues."),
    "proxy": (
        "cues.cli.proxy",
        "Serve a model server's answers repaired: text that may be spoken, calls that may be run.",
    ),
    "replay": ("cues.cli.replay", "Serve a recording or a scenario over HTTP, at the pace of a model."),
    "record": ("cues.cli.record", "Record what a model server streams."),
    "check-model": ("cues.cli.check_model", "Ask a live model to call a tool, and report the result."),
    "mix": ("cues.cli.mix", "Mix cues into a speech file."),
    "diff": ("cues.cli.diff", "Compare two packs or two cues: levels, spectrum, similarity; a picture."),
    "export": ("cues.cli.export", "Write the cues as audio files."),
    "list": ("cues.cli.list", "List the cues: length, loudness, peak, notes, source."),
    "show": ("cues.cli.show", "Show one cue: waveform, envelope, measures, warnings; or a picture of it."),
    "play": ("cues.cli.play", "Play cues, alone or over speech."),
    "page": ("cues.cli.page", "Make a page that plays and shows every cue, or serve it while you edit a pack."),
    "new-pack": ("cues.cli.new_pack", "Make a pack to start from: a commented pack.toml and the sounds to replace."),
    "check": ("cues.cli.check", "List every problem of a pack, with its fix."),
    "warm-up": ("cues.cli.warm_up", "Compile and render what sessions need, for this machine or a container image."),
    "batch": ("cues.cli.batch", "Measure thousands of recordings, or mix cues into them."),
    "doctor": ("cues.cli.doctor", "Show what is installed, what would be used, and what is missing."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called, and names the extra for a package that is missing."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:  # click would print "Aborted!" and exit with 1
            _tell("; ".join(["interrupted", *map(str, interrupt.args)]))
            sys.exit(130)
        except ModuleNotFoundError as error:
            name = ctx.invoked_subcommand or ""
            extra = _extra_with(name, error.name)
            if extra is None:
                raise
            raise cues.MissingFeatureError(f"`cues {name}` needs {error.name}: {pip_install(extra)}") from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS:
            ctx.fail(f"No such command {name!r}{did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _extra_with(cmd_name: str, package: str | None) -> str | None:
    """The extra that installs `package`, or None if no extra does."""
    from cues.cli.doctor import EXTRAS

    found = next((extra for extra, (_, packages) in EXTRAS.items() if package in packages), None)
    # These commands need several extras: name one that has them all.
    whole = {"demo": "demo", "speak": "demo", "live": "live", "proxy": "live"}
    return whole.get(cmd_name, found) if found else None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(cues.__version__, prog_name="cues")
def group() -> None:
    """Short, well-made sounds in a voice assistant's live speech when its language model calls a tool."""


def _tell(message: str) -> None:
    """Print an error, with control characters escaped except line breaks: it may quote files and servers."""
    from cues.cli._terminal import harmless

    click.echo("\n".join(map(harmless, f"cues: {message}".split("\n"))), err=True)


def _end_terminated(*_: object) -> NoReturn:
    """Unwind, so that files are whole or gone and child processes end; 143 is what shells report for SIGTERM."""
    sys.exit(143)


def main() -> None:
    """Run the command line.

    Exit codes: 0, 1 for failures, 2 for wrong arguments and unknown names, 130 for Ctrl-C, 143 for SIGTERM.
    """
    from stream.errors import StreamError

    signal.signal(signal.SIGTERM, _end_terminated)

    # Without a handler, warnings of libraries would be printed beside our line.
    logging.getLogger().addHandler(logging.NullHandler())
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="backslashreplace")  # A missing character must not end the program.
    try:
        group(prog_name="cues")
    except (CueError, StreamError) as error:
        _tell(str(error))
        sys.exit(2 if isinstance(error, UnknownCueError) else 1)
    except OSError as error:  # For example a full disk under a redirected output. click handles closed pipes.
        _tell(f"{reason_of(error)}" + (f": {error.filename}" if error.filename else ""))
        sys.exit(1)
