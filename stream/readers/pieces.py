"""Text that comes in pieces, within a limit."""

from __future__ import annotations

__all__ = ["MOST_PIECES", "Pieces"]

MOST_PIECES = 4096
"""Then they are joined: a piece of one character takes 80 bytes."""


class Pieces:
    """Text that comes in pieces; past a limit it is dropped, except for enough to show that there was more.

    `size` is how much has come, characters.
    """

    __slots__ = ("_limit", "_pieces", "size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self.size = 0

    def add(self, piece: str) -> None:
        """Add a piece."""
        if self.size <= self._limit:
            self._pieces.append(piece)
            if len(self._pieces) > MOST_PIECES:
                self._pieces = ["".join(self._pieces)]
        self.size += len(piece)

    @property
    def text(self) -> str:
        """The text that was kept."""
        return "".join(self._pieces)

    def take(self) -> str:
        """The text that was kept, which is forgotten."""
        text, self._pieces = self.text, []
        return text
