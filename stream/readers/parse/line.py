"""State of the line: the parser's memory of the text that it passed on."""

from __future__ import annotations

import re

__all__ = ["LineState"]

_TICKS = re.compile(r"`+")


class LineState:
    """Whether a line, a word or inline code can begin at the current position.

    Attributes
    ----------
    fresh : whether this is the start of a line, or only white space has come since a call or block.
    previous : the last character of text; empty after a call or a token.
    odd_ticks : whether the last run of backticks on this line has opened inline code.
    unclosed : closing markers that calls on this line still lack.
    """

    __slots__ = ("fresh", "odd_ticks", "previous", "unclosed")

    def __init__(self) -> None:
        self.fresh = True
        self.previous = ""
        self.odd_ticks = False
        self.unclosed: set[str] = set()

    @property
    def at_word(self) -> bool:
        """Whether a word can begin here."""
        return not self.previous or self.previous.isspace()

    def note(self, text: str) -> None:
        """Update the state for text that was passed on."""
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
