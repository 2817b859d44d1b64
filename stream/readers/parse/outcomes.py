"""How reading may end without a result, and the type of a function that reads text as it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

    from stream.readers.parse.scanner import JsonScanner

__all__ = ["CutOff", "NotACall", "Reading", "Unreadable"]

_T = TypeVar("_T")
# A generator that yields when it needs more text, and returns what it read.
Reading: TypeAlias = "Generator[None, None, _T]"


class CutOff(Exception):  # noqa: N818  (an outcome, not an error)
    """The stream ended while more text was needed; `text` is what was read so far, where that matters."""

    text = ""


class NotACall(Exception):  # noqa: N818  (an outcome, not an error)
    """Text that looked like a call; inside a JSON value, `scanner` finds the end of that value."""

    def __init__(self, scanner: JsonScanner | None = None) -> None:
        super().__init__()
        self.scanner = scanner


class Unreadable(Exception):  # noqa: N818  (an outcome, not an error)
    """A call began, and its body cannot be read."""
