"""The journal of a batch: one line of JSON per result, which the next run reads."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from typing import TYPE_CHECKING, Any, Self

from cues.files import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cues.batch.tasks import Outcome, Row

__all__ = ["Journal"]

_SYNC_S = 1.0
"""Syncing each result would take longer than to measure a file."""


class Journal:
    """Results by task key, in an append-only file; deleted at the end if it has none.

    Each result is in the file when `add` returns, and on the disk within about a second: a crash of the machine loses
    no more. An incomplete last line is removed. A file that cannot be used raises `CueError`.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self._clock = path, clock
        self._synced_s = -math.inf
        self.rows: dict[str, Row] = {}
        with explained(path, "cannot be used as the journal"):
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = self._read()
            # Unbuffered: after a full disk, a buffer would be written again when the file is closed.
            self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
            self._file.truncate(kept)
            self._file.seek(kept)
            _sync_folder(path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # the results are written; the reason for the end matters more
            os.fsync(self._file)
        self._file.close()
        if not self.rows:
            self.path.unlink(missing_ok=True)

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Append all results, or none if writing fails with an `OSError`."""
        lines = (json.dumps({"key": outcome.key, "row": outcome.row}, allow_nan=False) for outcome in outcomes)
        data = "".join(f"{line}\n" for line in lines).encode()
        start = self._file.tell()
        try:
            n_written = 0
            while n_written < len(data):  # a disk that is nearly full takes a part
                n_written += self._file.write(data[n_written:])
        except OSError:
            self._file.seek(start)
            self._file.truncate()
            raise
        if self._clock() - self._synced_s >= _SYNC_S:
            os.fsync(self._file)
            self._synced_s = self._clock()
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


def _sync_folder(folder: Path) -> None:
    """Bring the entry of a new file to the disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
