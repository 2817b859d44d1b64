"""The journal of a batch: one line of JSON per result, which the next run reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from cues.files import explained

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cues.batch.tasks import Outcome, Row

__all__ = ["Journal"]


class Journal:
    """Results by task key, in an append-only file.

    An incomplete last line, left by a crash, is removed.

    Parameters
    ----------
    path : Path
        File of the journal; deleted at the end if it has no results.

    Raises
    ------
    CueError
        If the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        with explained(path, "cannot be used as the journal"):
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = self._read()
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(kept)
            self._file.seek(kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if not self.rows:
            self.path.unlink(missing_ok=True)

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Append results: all of them, or none if writing fails.

        Raises
        ------
        OSError
            If writing fails.
        """
        outcomes = list(outcomes)
        start = self._file.tell()
        try:
            for outcome in outcomes:
                line = json.dumps({"key": outcome.key, "row": outcome.row}, allow_nan=False)
                self._file.write(line.encode() + b"\n")
            self._file.flush()
        except OSError:
            self._file.seek(start)
            self._file.truncate()
            raise
        self.rows.update((outcome.key, outcome.row) for outcome in outcomes)

    def _read(self) -> int:
        """Read every complete line; return the end of the last one, in bytes."""
        if not self.path.exists():
            return 0
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                entry = _entry(line)
                if entry is None:
                    break
                self.rows[entry[0]] = entry[1]
                end += len(line)
        return end


def _entry(line: bytes) -> tuple[str, Row] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry: Any = json.loads(line)
        key, row = entry["key"], entry["row"]
    except (ValueError, KeyError, TypeError):
        return None
    return (key, row) if isinstance(key, str) and isinstance(row, dict) else None
