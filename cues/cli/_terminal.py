"""Text for terminals: consoles, escaped names, waveforms in characters."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table

__all__ = ["NARROW", "console", "harmless", "levels", "name_table", "unicode_output", "waveform"]

NARROW = 60
"""Columns below which tables become lists."""
_PIPE_COLUMNS = 200
_BLANKS = re.compile(r" +(?=\n)")
# Replacements for characters that the output's encoding lacks.
_PLAIN = {"−": "-", "–": "-", "→": "->", "↻": "*", "…": "...", "·": "-", "µ": "u", "✓": "ok", "♪": "*"}
_PLAIN |= dict.fromkeys("“”", '"')
_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = " ..::-=+#"
# Bits of a braille cell (U+2800 + bits), left and right column, from top to bottom.
_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def console(*, stderr: bool = False) -> Console:
    """A console for standard output, without color if `NO_COLOR` is set or in a pipe.

    In a pipe, lines are not cut at 80 columns and have no trailing blanks.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="plain")
    settings: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False, "stderr": stderr}
    if not stream.isatty():
        settings["file"] = _Trimmed(stream)
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


class _Trimmed:
    """A stream without trailing blanks; rich pads the last column of a table."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_BLANKS.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


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


def unicode_output() -> bool:
    """Whether standard output can encode the characters of pictures."""
    try:
        (_BLOCKS + "⣿").encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def waveform(samples: NDArray[np.floating], width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    """Rows of characters with the waveform, scaled to its peak, in braille or in `#` and `-`."""
    import numpy as np  # not above: an error's message needs `harmless` alone

    across, down = (1, 1) if ascii_only else (2, 4)
    n_columns, n_dots = width * across, height * down
    peak = float(np.abs(samples).max(initial=0.0)) or 1.0
    bounds = np.linspace(0, len(samples), n_columns + 1).astype(int)
    starts = np.minimum(bounds[:-1], len(samples) - 1)
    low = np.minimum.reduceat(samples, starts) / peak
    high = np.maximum.reduceat(samples, starts) / peak
    top = np.rint((1.0 - high) / 2.0 * (n_dots - 1)).astype(int)
    bottom = np.rint((1.0 - low) / 2.0 * (n_dots - 1)).astype(int)
    rows = np.arange(n_dots)[:, None]
    dots = (rows >= top) & (rows <= bottom)
    if ascii_only:
        axis = "-" * width
        return [
            "".join("#" if dot else (axis[0] if row == n_dots // 2 else " ") for dot in dots[row]).rstrip()
            for row in range(n_dots)
        ]
    cells = dots.reshape(height, 4, width, 2).astype(int) * np.array(_BRAILLE)[None, :, None, :]
    return ["".join(chr(0x2800 + bits) for bits in row) for row in cells.sum(axis=(1, 3))]


def levels(
    samples: NDArray[np.floating], width: int, height: int, *, range_db: float = 48.0, ascii_only: bool = False
) -> list[str]:
    """Rows of characters with the envelope in dB, from the peak at the top to `range_db` below it."""
    import numpy as np  # as above

    blocks = _ASCII_BLOCKS if ascii_only else _BLOCKS
    bounds = np.linspace(0, len(samples), width + 1).astype(int)
    peaks = np.maximum.reduceat(np.abs(samples), np.minimum(bounds[:-1], len(samples) - 1))
    relative = peaks / (float(peaks.max()) or 1.0)
    level_db = 20.0 * np.log10(np.maximum(relative, 10.0 ** (-range_db / 20.0)))
    eighths = np.rint((1.0 + level_db / range_db) * 8 * height).astype(int)
    return [
        "".join(blocks[min(8, max(0, value - 8 * row))] for value in eighths).rstrip() or " "
        for row in reversed(range(height))
    ]
