"""Text for terminals: consoles, tables, escaped names."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["NARROW", "console", "harmless", "name_table"]

NARROW = 60
"""Terminals with fewer columns get tables without what is long."""
_PIPE_COLUMNS = 200
_BLANKS = re.compile(r" +(?=\n)")
# Replacements for characters that the output's encoding lacks.
_PLAIN = {"−": "-", "–": "-", "→": "->", "↻": "*", "…": "...", "·": "-", "µ": "u", "✓": "ok", "♪": "*"}
_PLAIN |= dict.fromkeys("“”", '"')


def console(*, stderr: bool = False) -> Console:
    """A console; in a pipe without color, lines of 200 columns without trailing blanks."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="plain")
    settings: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False, "stderr": stderr}
    if stream is None or not stream.isatty():  # None: it is closed
        settings["file"] = io.StringIO() if stream is None else _Trimmed(stream)
        if "COLUMNS" not in os.environ:
            settings["width"] = _PIPE_COLUMNS
    return Console(**settings)


def name_table(heading: str, *numbers: str) -> Table:
    """An empty table with a column of names, then columns of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(heading, style="cyan", overflow="fold", min_width=9)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    return table


class _Trimmed(io.TextIOBase):
    """Passes text on without trailing blanks; rich pads the last column of a table."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_BLANKS.sub("", text))

    def flush(self) -> None:
        self._stream.flush()


def _plainer(error: UnicodeError) -> tuple[str | bytes, int]:
    """Handler of `errors="plain"`: replace characters by similar ASCII ones."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


codecs.register_error("plain", _plainer)


def harmless(text: str) -> str:
    """`text` with control characters and invisible characters escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
