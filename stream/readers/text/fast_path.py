"""The fast path: text without a marker is an event at once. Nearly all text takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream.events import TextDelta
    from stream.readers.text.parser import Parser
    from stream.readers.text.table import Table

__all__ = ["NOTHING_KNOWN", "FastPath"]

_MOST_UNSEEN = 256  # pieces of text that were passed on and not yet noted
_SHORT = 1024  # characters; of longer pieces fewer are kept:
_MOST_LONG = 1 << 16  # characters in all
NOTHING_KNOWN: dict[str, TextDelta] = {}


class FastPath:
    """Passes plain text by the parser, which notes it later: only what follows a marker depends on earlier text.

    `counted` says whether the parser has to count all characters that were passed.
    """

    def __init__(self, parser: Parser, table: Table, *, counted: bool) -> None:
        self._parser = parser
        self._counted = counted
        self._unseen: list[TextDelta] = []
        self._long_unseen = 0
        self.last: TextDelta | None = None  # of a run of simple texts
        self.clean = False  # nothing is held back and no call is open; only then does text take the fast path
        self.use(table)

    def use(self, table: Table) -> None:
        """Find markers by another table."""
        self._table = table
        # Texts that a reader may look up by itself while the path is clean, if it sets `last`: a call of `delta` would
        # cost a tenth of an Ollama line (bench/stream_readers.py).
        self.simple = NOTHING_KNOWN if self._counted else table.simple

    def delta(self, text: str) -> TextDelta | None:
        """Return the event that passes a text on; None if it has to be read."""
        if not self.clean:
            return None
        delta = self.simple.get(text)
        if delta is not None:
            self.last = delta
            return delta
        delta = self._table.plain.get(text) or self._table.delta_of(text)
        if delta is not None:
            if self.last is not None:
                self._unseen.append(self.last)
                self.last = None
            self._unseen.append(delta)
            if len(text) > _SHORT:
                self._long_unseen += len(text)
            if len(self._unseen) > _MOST_UNSEEN or self._long_unseen > _MOST_LONG:
                self.catch_up()
        return delta

    def catch_up(self) -> None:
        """Let the parser note the text that was passed on."""
        if self.last is not None:
            self._unseen.append(self.last)
            self.last = None
        if self._unseen:
            text = "".join([delta.text for delta in self._unseen])
            self._unseen.clear()
            self._long_unseen = 0
            self._parser.note_passed(text)
