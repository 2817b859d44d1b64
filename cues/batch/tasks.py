"""Tasks of a batch, picklable, and their results, JSON-serializable."""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cues.errors import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FATAL_ERRNOS", "Outcome", "Row", "Task", "chunks_of", "failed_row", "key_of", "run_tasks"]

_CHUNK = 16

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


def chunks_of(tasks: Sequence[Task]) -> Iterator[tuple[Task, ...]]:
    """The tasks in chunks; a worker gets one chunk at a time."""
    return (tuple(tasks[start : start + _CHUNK]) for start in range(0, len(tasks), _CHUNK))


def run_tasks(tasks: Sequence[Task]) -> list[Outcome]:
    """Run tasks in this process.

    Raises
    ------
    OSError
        If the disk is full. Other errors become failed rows.
    """
    outcomes = []
    for task in tasks:
        try:
            row = {"file": task.file, "status": "ok", "error": None, **task.run()}
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FATAL_ERRNOS:
                raise
            # The row names the file already.
            row = failed_row(task, _sentence(error).removeprefix(f"{task.file}: "))
        outcomes.append(Outcome(key_of(task), row))
    return outcomes


def failed_row(task: Task, error: str) -> Row:
    """Row of a failed task."""
    return {"file": task.file, "status": "failed", "error": error}


def _sentence(error: Exception) -> str:
    """The reason for `error`, in one line."""
    return " ".join(reason_of(error).split())
