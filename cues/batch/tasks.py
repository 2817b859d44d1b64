"""What a batch is made of: tasks that can be sent to another process, and their results, fit for JSON."""

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
"""A result: column → text, number or None. It has `file`, `status` (`"ok"` or `"failed"`) and `error`."""

FATAL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
"""A full disk: no other task would fare better."""


class Task(Protocol):
    """One piece of work: a frozen dataclass, so that it can be sent, compared and named."""

    @property
    def file(self) -> str:
        """What it is about."""
        ...

    def run(self) -> Row:
        """The columns of its result; any exception becomes a failed row."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row with the key of its task."""

    key: str
    row: Row


def key_of(task: Any) -> str:
    """Name of a task in the journal: the same for the same work on the same, unchanged file."""
    text = json.dumps([type(task).__name__, asdict(task)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def chunks_of(tasks: Sequence[Task]) -> Iterator[tuple[Task, ...]]:
    """The tasks in parts of as many as a worker gets at once."""
    return (tuple(tasks[start : start + _CHUNK]) for start in range(0, len(tasks), _CHUNK))


def run_tasks(tasks: Sequence[Task]) -> list[Outcome]:
    """Do some tasks, in the process where this is called.

    Raises
    ------
    OSError : the disk is full. Everything else that fails is in its row.
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
    """The row of a task that failed."""
    return {"file": task.file, "status": "failed", "error": error}


def _sentence(error: Exception) -> str:
    """One line that says what went wrong."""
    return " ".join(reason_of(error).split())
