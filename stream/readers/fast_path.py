"""The fast path: text without a marker is an event at once. Nearly all text takes it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from stream.events import TextDelta

if TYPE_CHECKING:
    from stream.readers.dialects.rows import Table
    from stream.readers.parse.parser import Parser

__all__ = ["NOTHING_KNOWN", "FastPath", "KnownTexts", "known_texts"]

_LONGEST_TOKEN = 24
_MOST_TOKENS = 2048
_MOST_UNSEEN = 256  # pieces of text that were passed on and not yet noted
_SHORT = 1024  # characters; of longer pieces fewer are kept:
_MOST_LONG = 1 << 16  # characters in all
NOTHING_KNOWN: dict[str, TextDelta] = {}


class KnownTexts:
    """The events of short texts without a marker.

    Models write the same tokens over and over; looking one up costs a quarter of searching it and making its event.

    Attributes
    ----------
    plain : the events, by text.
    simple : those of texts that are not blank and have no line end or backtick. They leave the line in the same state
        whatever came before, so of a run of them the parser needs to note only the last one.
    """

    __slots__ = ("_search", "plain", "simple")

    def __init__(self, table: Table) -> None:
        self._search = table.search
        self.plain: dict[str, TextDelta] = {}
        self.simple: dict[str, TextDelta] = {}

    def find(self, text: str) -> TextDelta | None:
        """Return the event of a text; None if it is empty, or has a marker or the beginning of one."""
        if not text or self._search(text):
            return None
        delta = TextDelta(text)
        if len(text) <= _LONGEST_TOKEN:
            if len(self.plain) >= _MOST_TOKENS:
                self.plain.clear()
                self.simple.clear()
            self.plain[text] = delta
            if "\n" not in text and "`" not in text and not text.isspace():
                self.simple[text] = delta
        return delta


@lru_cache(maxsize=64)
def known_texts(table: Table) -> KnownTexts:
    """Return the texts that all readers with this table share."""
    return KnownTexts(table)


class FastPath:
    """Passes plain text by the parser, which notes it later: only what follows a marker depends on earlier text.

    `counted` says whether the parser has to count all characters that were passed.

    Attributes
    ----------
    clean : whether nothing is held back and no call is open; only then does text take the fast path.
    simple : texts that a reader may look up by itself while the path is clean, if it sets `last`: a call of `delta`
        would cost a tenth of an Ollama line (bench/stream_readers.py).
    last : the last text of a run of simple texts.
    """

    __slots__ = ("_counted", "_long_unseen", "_parser", "_texts", "_unseen", "clean", "last", "simple")

    def __init__(self, parser: Parser, table: Table, *, counted: bool) -> None:
        self._parser = parser
        self._counted = counted
        self._unseen: list[TextDelta] = []
        self._long_unseen = 0
        self.last: TextDelta | None = None
        self.clean = False
        self.use(table)

    def use(self, table: Table) -> None:
        """Find markers by another table."""
        self._texts = known_texts(table)
        self.simple = NOTHING_KNOWN if self._counted else self._texts.simple

    def delta(self, text: str) -> TextDelta | None:
        """Return the event that passes a text on; None if it has to be read."""
        if not self.clean:
            return None
        delta = self.simple.get(text)
        if delta is not None:
            self.last = delta
            return delta
        delta = self._texts.plain.get(text) or self._texts.find(text)
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
