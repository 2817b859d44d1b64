"""One run of a batch: what the journal holds is taken from it, the rest is done, and every result is kept at once."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cues.batch.journal import Journal
from cues.batch.processes import run_on_processes
from cues.batch.tables import check_table_name, write_table
from cues.batch.tasks import FATAL_ERRNOS, key_of
from cues.errors import CueError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from cues.batch.tasks import Outcome, Row, Task

__all__ = ["Run", "run_batch"]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run did.

    Parameters
    ----------
    rows : one for each task, in the tasks' order.
    resumed : how many of them an earlier run had done.
    """

    rows: list[Row]
    resumed: int

    @property
    def failed(self) -> list[Row]:
        """The rows that failed."""
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
    """Do what is left of `tasks`, and write the table of all of them.

    Beside the table lies its journal, `TABLE.journal`. Results in it are not made again, unless they failed or their
    file has changed; so a run that was broken off, by whatever, goes on where it was.

    Parameters
    ----------
    tasks : what to do.
    table : where the results go: `.csv`, `.jsonl` or `.parquet`.
    columns : of the table.
    workers : processes; None takes one for each core.
    dask : address of a Dask scheduler that does the work instead.
    fresh : whether the results of earlier runs are forgotten.
    still_good : whether a result of an earlier run still holds (its output is still there, say).
    progress : called with the number of tasks that are done or have failed, once before the work begins, and each time
        there are more.

    Raises
    ------
    CueError : the table or its journal cannot be written, or the disk is full; what is done is kept.
    CueValueError : the table's name has another ending.
    MissingFeatureError : Dask or Parquet is asked for, and not installed.
    KeyboardInterrupt : Ctrl-C; it says what is kept.
    """
    check_table_name(table)
    if dask is not None:
        from cues.batch.on_dask import check_dask

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
            raise KeyboardInterrupt(f"{kept}{failed}: the same command goes on") from None
        except OSError as error:
            if error.errno not in FATAL_ERRNOS:
                raise
            raise CueError(f"the disk is full; {done} of {len(tasks)} are done and kept") from error
        rows = [journal.rows[key] for key in keys]
    write_table(table, rows, columns)
    return Run(rows, resumed)


def _done(row: Row | None, still_good: Callable[[Row], bool]) -> bool:
    return row is not None and row["status"] == "ok" and still_good(row)


def _stream(tasks: Sequence[Task], workers: int | None, dask: str | None) -> Generator[list[Outcome]]:
    if not tasks:
        return
    if dask is not None:
        from cues.batch.on_dask import run_on_dask

        yield from run_on_dask(tasks, dask)
    else:
        yield from run_on_processes(tasks, workers or os.cpu_count() or 1)
