"""Tasks of a batch, picklable, and their results, JSON-serializable."""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cues.errors import reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FATAL_ERRNOS", "Outcome", "Row", "Task", "failed", "key_of", "run_tasks"]

Row = dict[str, Any]
"""A result: column → string, number or None. It has `file`, `status` (`"ok"` or `"failed"`) and `error`."""

FATAL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a full disk, which end the run: all other tasks would fail, too."""


class Task(Protocol):
    """One unit of work: a frozen dataclass."""

    @property
    def file(self) -> str:
        """Path or URL of the recording."""
        ...

    def run(self) -> Row:
        """Columns of the result; an exception becomes a failed row."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row and the key of its task."""

    key: str
    row: Row


def key_of(task: Any) -> str:
    """Key of a task in the journal; equal for the same task on the same, unchanged file."""
    text = json.dumps([type(task).__name__, asdict(task)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def run_tasks(tasks: Sequence[Task]) -> list[Outcome]:
    """Run tasks in this process; an error becomes a failed row, but a full disk is raised."""
    outcomes = []
    for task in tasks:
        try:
            outcomes.append(Outcome(key_of(task), {"file": task.file, "status": "ok", "error": None, **task.run()}))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FATAL_ERRNOS:
                raise
            # The row names the file already.
            outcomes.append(failed(task, " ".join(reason_of(error).split()).removeprefix(f"{task.file}: ")))
    return outcomes


def failed(task: Task, error: str) -> Outcome:
    """Outcome of a failed task."""
    return Outcome(key_of(task), {"file": task.file, "status": "failed", "error": error})
