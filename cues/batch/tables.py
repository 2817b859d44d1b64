"""Tables of results: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from cues.errors import CueValueError
from cues.extras import needed
from cues.files import explained, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from cues.batch.tasks import Row

__all__ = ["ENDINGS", "check_table_name", "write_table"]


def _write_csv(path: Path, rows: Sequence[Row], columns: Sequence[str]) -> None:
    # File names may have bytes that are not UTF-8; surrogateescape writes them back unchanged.
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def _write_json_lines(path: Path, rows: Sequence[Row], columns: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({name: row.get(name) for name in columns}) + "\n" for row in rows)


def _write_parquet(path: Path, rows: Sequence[Row], columns: Sequence[str]) -> None:
    pa, parquet = _parquet()
    table = {name: [_text_safe(row.get(name)) for row in rows] for name in columns}
    parquet.write_table(pa.table(table), path)


def _text_safe(value: object) -> object:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _parquet() -> tuple[Any, ...]:
    return tuple(needed(module, "batch", "Parquet needs pyarrow") for module in ("pyarrow", "pyarrow.parquet"))


_WRITERS: Mapping[str, Callable[[Path, Sequence[Row], Sequence[str]], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}
ENDINGS = tuple(_WRITERS)
"""File name extensions of tables; they choose the format."""


def check_table_name(path: Path) -> None:
    """Check, before any work, that a table of this name can be written: its extension, and pyarrow for Parquet."""
    if path.suffix.lower() not in _WRITERS:
        raise CueValueError(f"{path}: the name of a table must end in one of {', '.join(ENDINGS)}")
    if path.suffix.lower() == ".parquet":
        _parquet()


def write_table(path: Path, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Write `rows` to `path`; on an error, the old table stays."""
    with explained(path), replacing(path) as part:
        _WRITERS[path.suffix.lower()](part, rows, columns)
