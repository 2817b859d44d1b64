"""Table of a batch: a row per recording, as CSV or JSON lines; the rows that are there need not be made again."""

import contextlib
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cues.errors import CueError, CueValueError
from cues.files import explained, replacing

__all__ = ["ENDINGS", "Row", "Table"]

Row = dict[str, Any]
"""Column → string, number or None. Every row has `file`, `status` (`"ok"` or `"failed"`), `error` and `key`."""

ENDINGS = (".csv", ".jsonl")
"""File name extensions of tables; they choose the format."""

_TEXT_COLUMNS = ("file", "status", "error", "output", "clicks_s", "key")


class Table:
    """Rows in the file `path`, whose name ends in `.csv` or `.jsonl`."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        if path.suffix.lower() not in ENDINGS:
            raise CueValueError(f"{path}: the name of a table must end in one of {', '.join(ENDINGS)}")
        self.path = path
        # The key comes last: a line that a crash cut off has none, or one that fits no task.
        self._columns = (*columns, "key")
        self._csv = path.suffix.lower() == ".csv"
        self._heading = _csv_line(self._columns) if self._csv else ""

    def rows(self) -> list[Row]:
        """All rows that have a key, in their order; a file that holds something else raises `CueError`."""
        if not self.path.exists():
            return []
        with explained(self.path, "cannot be read"):
            # File names may have bytes that are not UTF-8; surrogateescape keeps them.
            text = self.path.read_bytes().decode("utf-8", "surrogateescape")
        if text and not text.startswith(self._heading or '{"file": '):
            raise CueError(f"{self.path}: is not a table of this command; name another one, or replace it with --fresh")
        return [row for row in self._rows(text) if row.get("key")]

    def write(self, rows: Iterable[Row]) -> None:
        """Replace the file by these rows; on an error, the old one stays."""
        text = self._heading + "".join(map(self._line, rows))
        with explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as part:
                part.write_bytes(text.encode("utf-8", "surrogateescape"))

    def add(self, row: Row) -> None:
        """Append a row; it is in the file when this returns."""
        with self.path.open("ab") as file:
            file.write(self._line(row).encode("utf-8", "surrogateescape"))

    def _line(self, row: Row) -> str:
        if self._csv:
            return _csv_line(row.get(name) for name in self._columns)
        return json.dumps({name: row.get(name) for name in self._columns}) + "\n"

    def _rows(self, text: str) -> Iterator[Row]:
        lines = csv.DictReader(io.StringIO(text, newline="")) if self._csv else text.split("\n")
        with contextlib.suppress(csv.Error):  # a cell without its end
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):  # a line that was cut off
                    row = json.loads(line) if isinstance(line, str) else {one: _cell(one, line[one]) for one in line}
                    if isinstance(row, dict):
                        yield row


def _csv_line(cells: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _cell(name: str, text: str | None) -> Any:
    if not text:
        return None
    return text if name in _TEXT_COLUMNS else json.loads(text)
