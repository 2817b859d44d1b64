"""PNG files of 256 colors, for spectrograms, without an image library."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HEAT", "indexed_png"]

# Lightness rises from end to end: dark blue, purple, red, orange, pale yellow.
_HEAT_ANCHORS = (
    (8, 10, 34),
    (58, 20, 96),
    (134, 32, 104),
    (205, 62, 72),
    (244, 138, 50),
    (252, 214, 120),
    (255, 252, 226),
)


def _palette() -> NDArray[np.uint8]:
    at = np.linspace(0.0, 1.0, len(_HEAT_ANCHORS))
    channels = [np.interp(np.linspace(0.0, 1.0, 256), at, column) for column in np.array(_HEAT_ANCHORS).T]
    palette: NDArray[np.uint8] = np.rint(np.stack(channels, axis=1)).astype(np.uint8)
    return palette


HEAT = _palette()
"""Colors from quiet to loud: uint8, shape `(256, 3)`."""


def indexed_png(pixels: NDArray[np.uint8]) -> bytes:
    """PNG file of an image in the colors of `HEAT`.

    Parameters
    ----------
    pixels : uint8, shape `(height, width)`
        Color indices; the first row is the top.

    References
    ----------
    ISO/IEC 15948 (PNG), clauses 5.3 and 11.2.
    """
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels], axis=1)  # filter type 0 before each row
    chunks = (
        (b"IHDR", header),
        (b"PLTE", HEAT.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
