"""A progress bar on standard error; in a pipe, a line now and then."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from cues.cli._terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["progress_bar"]


@contextlib.contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of things done so far, of `total`."""
    if not sys.stderr.isatty():
        yield _lines(total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("files", total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(total: int) -> Callable[[int], None]:
    """Ten lines in all, so that a log shows that something goes on."""
    told = 0

    def tell(done: int) -> None:
        nonlocal told
        tenth = 10 * done // max(total, 1)
        if tenth > told:
            told = tenth
            click.echo(f"{done} of {total}", err=True)

    return tell
