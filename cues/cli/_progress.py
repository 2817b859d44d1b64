"""Progress on standard error: a bar, or lines in a pipe."""

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
    """Show progress; yield a function to call with the number of items done, of `total`."""
    if not sys.stderr.isatty():
        yield _lines(total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("files", total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(total: int) -> Callable[[int], None]:
    """At most ten lines, for logs."""
    shown = 0

    def show(done: int) -> None:
        nonlocal shown
        tenth = 10 * done // max(total, 1)
        if tenth > shown:
            shown = tenth
            click.echo(f"{done} of {total}", err=True)

    return show
