"""Protocols that a parser needs from the layers above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stream.events import CallStatus
    from stream.readers.parse.dialect import Dialect
    from stream.readers.parse.outcomes import Reading
    from stream.readers.rounds import Call

__all__ = ["Collector", "Dispatcher"]


class Collector(Protocol):
    """Collects text, reasoning and calls: a `Turn`, or the `SpeculativeCalls` of a block of reasoning."""

    max_argument_chars: int
    silent: bool

    @property
    def has_calls(self) -> bool: ...
    def new_array(self) -> int: ...
    def text(self, text: str, /) -> None: ...
    def reasoning(self, text: str, /) -> None: ...
    def begin(self, call: Call, /) -> None: ...
    def finish(self, call: Call, status: CallStatus, arguments: str = "", /) -> None: ...
    def speculate(self, raw: str, calls: list[Call], /) -> None: ...
    def replay(self, call: Call, /) -> None: ...


class Dispatcher(Protocol):
    """Knows the table of dialects; the reader of a body reaches the other dialects through it."""

    @property
    def nested(self) -> bool:
        """Whether this reads the inside of a block of reasoning."""

    def row_here(self) -> Reading[tuple[Dialect | None, int]]:
        """Return the row of the marker that comes next, and the marker's size; nothing is read."""

    def attempt(self, row: Dialect, size: int) -> Reading[None]:
        """Read what a marker of this row and size announces."""

    def drops(self, half: str) -> bool:
        """Return whether the beginning of something that is not spoken is dropped at the end of the stream."""

    def inside(self, collector: Collector) -> Dispatcher:
        """Return a dispatcher for the inside of a block of reasoning."""

    @property
    def clean(self) -> bool:
        """Whether nothing is held back and no call is open."""

    def feed(self, text: str, /) -> None:
        """Read on."""

    def close(self, *, was_cut: bool) -> None:
        """End the text."""
