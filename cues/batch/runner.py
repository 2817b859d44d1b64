"""One run of a batch: reuse the results in the journal, run the other tasks, write the table."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cues.batch.journal import Journal
from cues.batch.on_dask import check_dask, run_on_dask
from cues.batch.processes import run_on_processes
from cues.batch.tables import check_table_name, write_table
from cues.batch.tasks import FATAL_ERRNOS, key_of
from cues.errors import CueError, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from cues.batch.tasks import Outcome, Row, Task

__all__ = ["Run", "run_batch"]


@dataclass(frozen=True, slots=True)
class Run:
    """Results of a run: a row per task, in order, and how many of them are from earlier runs."""

    rows: list[Row]
    resumed: int

    @property
    def failed(self) -> list[Row]:
        """Rows of failed tasks."""
        return [row for row in self.rows if row["status"] != "ok"]


def run_batch(
    tasks: Sequence[Task],
    table: Path,
    columns: Sequence[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    fresh: bool = False,
    still_good: Callable[[Row], bool] = lambda _: True,
    progress: Callable[[int], None] = lambda _: None,
) -> Run:
    """Run the remaining `tasks`, and write the table of all results.

    The journal, `TABLE.journal`, keeps results between runs. A task runs again only if it failed, its file changed or
    its result is not `still_good` (its output is gone, for example), so an interrupted run resumes. If the table or
    the journal cannot be written, or on Ctrl-C, the error counts the results that are kept.

    Parameters
    ----------
    table : Path
        `.csv`, `.jsonl` or `.parquet` file for the results; another extension is a `CueValueError`.
    workers : int, optional
        Processes; the default is one per core.
    dask : str, optional
        Address of a Dask scheduler to use instead.
    fresh : bool
        Discard the results of earlier runs.
    progress : callable
        Called with the number of finished tasks, failed ones included: at the start and after each increase.
    """
    check_table_name(table)
    if dask is not None:
        check_dask()
    path = table.with_name(table.name + ".journal")
    if fresh:
        path.unlink(missing_ok=True)
    with Journal(path) as journal:
        keys = [key_of(task) for task in tasks]
        left = [task for task, key in zip(tasks, keys, strict=True) if not _done(journal.rows.get(key), still_good)]
        done = resumed = len(tasks) - len(left)
        tried = done
        progress(tried)
        resumes = "the same command resumes"
        try:
            with contextlib.closing(_stream(left, workers, dask)) as stream:
                for outcomes in stream:
                    journal.add(outcomes)
                    tried += len(outcomes)
                    done += sum(outcome.row["status"] == "ok" for outcome in outcomes)
                    progress(tried)
        except KeyboardInterrupt:
            kept = f"{done} of {len(tasks)} are done and kept"
            failed = f", {tried - done} failed" if tried > done else ""
            raise KeyboardInterrupt(f"{kept}{failed}: {resumes}") from None
        except OSError as error:
            fault = "the disk is full" if error.errno in FATAL_ERRNOS else f"{path}: {reason_of(error)}"
            raise CueError(f"{fault}; {done} of {len(tasks)} are done and kept: {resumes}") from error
        rows = [journal.rows[key] for key in keys]
    try:
        write_table(table, rows, columns)
    except CueError as error:
        raise CueError(f"{error}; {done} of {len(tasks)} are done and kept in {path}: {resumes}") from error
    return Run(rows, resumed)


def _done(row: Row | None, still_good: Callable[[Row], bool]) -> bool:
    return row is not None and row["status"] == "ok" and still_good(row)


def _stream(tasks: Sequence[Task], workers: int | None, dask: str | None) -> Generator[list[Outcome]]:
    if tasks and dask is not None:
        yield from run_on_dask(tasks, dask)
    elif tasks:
        yield from run_on_processes(tasks, workers or os.cpu_count() or 1)
