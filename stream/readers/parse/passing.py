"""Text on its way to speech, and what is remembered of it: whether a line or a word can begin, and inline code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream.readers.parse.tape import Reading, Tape

if TYPE_CHECKING:
    from stream.events import TextDelta
    from stream.readers.dialects import Table
    from stream.readers.dialects.reasoning import Rehearsals
    from stream.readers.parse.scanner import JsonScanner
    from stream.readers.turn import Turn

__all__ = ["Speech"]

_MOST_UNSEEN = 256  # pieces of plain text that were passed on and not yet noted
_TICKS = re.compile(r"`+")
_TICK_OR_LINE_END = re.compile(r"[`\n]")


class Speech(Tape):
    """A tape whose text is passed on to a turn.

    Parameters
    ----------
    turn : where text goes.
    table : the dialects and the pattern that finds their markers.

    Attributes
    ----------
    fresh : whether this is the start of a line, or only white space has come since a call or block.
    previous : the last character of text; empty behind a call or a token.
    odd_ticks : whether the last run of backticks on this line has opened inline code.
    unclosed : closing markers that calls on this line have not had.
    clean : whether nothing is held back and no call is open.
    unseen, last : what was passed on and not yet noted; of a run of simple texts the last one is enough.
    """

    def __init__(self, turn: Turn | Rehearsals, table: Table) -> None:
        super().__init__(turn.max_argument_chars)
        self.turn = turn
        self.table = table
        self.fresh = True
        self.previous = ""
        self.odd_ticks = False
        self.unclosed: set[str] = set()
        self.clean = False
        self.unseen: list[TextDelta] = []
        self.last: TextDelta | None = None

    def passes(self, text: str) -> TextDelta | None:
        """Return the event that passes this on, if it is text and nothing else, and nothing is held before it."""
        if not self.clean:
            return None
        delta = self.table.plain.get(text) or self.table.plain_text(text)
        if delta:
            if self.last:
                self._note_last()
            self.unseen.append(delta)
            if len(self.unseen) > _MOST_UNSEEN:
                self.catch_up()
        return delta

    def _note_last(self) -> None:
        if self.last:
            self.unseen.append(self.last)
            self.last = None

    def catch_up(self) -> None:
        """Take note of text that was passed on: only what comes behind a trigger asks what came before."""
        self._note_last()
        if self.unseen:
            text = "".join([delta.text for delta in self.unseen])
            self.unseen.clear()
            self.passed += self.position + len(text) - 1
            self.buffer, self.position = text[-1], 1
            self._note(text)

    @property
    def at_word(self) -> bool:
        """Whether a word can begin here."""
        return not self.previous or self.previous.isspace()

    def release(self) -> None:
        """Give out what was held: it is text."""
        if self.held:
            text = "".join(self.held)
            self.held.clear()
            self.emit(text)

    def pass_text(self, size: int) -> None:
        """Read `size` characters as text."""
        text = self.buffer[self.position : self.position + size]
        self.position += size
        if text:
            self.emit(text)

    def emit(self, text: str) -> None:
        """Give out text."""
        self._note(text)
        self.turn.text(text)

    def _note(self, text: str) -> None:
        """Keep what is asked about the text so far."""
        tail = text[text.rfind("\n") + 1 :]
        if len(tail) < len(text):
            self.fresh, self.odd_ticks = True, False
            self.unclosed.clear()
        if "`" in tail:
            for run in _TICKS.finditer(tail):
                if run.start() or len(tail) < len(text) or self.previous != "`":
                    self.odd_ticks = not self.odd_ticks
        if self.fresh and tail and not tail.isspace():
            self.fresh = False
        self.previous = text[-1]

    def inline_code(self) -> Reading[None]:
        """Pass text up to the next backtick or the end of the line."""
        while True:
            match = _TICK_OR_LINE_END.search(self.buffer, self.position)
            self.pass_text((match.end() if match else len(self.buffer)) - self.position)
            if match:
                self.odd_ticks = False
                return
            yield from self.more()

    def json_text(self, scanner: JsonScanner) -> Reading[None]:
        """Pass a JSON value to its end: nothing is looked for in it."""
        while True:
            self.pass_text(scanner.scan(self.buffer, self.position) - self.position)
            if scanner.done or scanner.failed:
                return
            yield from self.more()
