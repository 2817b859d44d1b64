"""The line that is being read: what may begin at the current position."""

import re

__all__ = ["LineState"]

_TICKS = re.compile(r"`+")
# The marks of quotes and lists at the start of a line.
_MARKS = re.compile(r"[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*)+")
_MOST_OF_MARKS = 64  # characters


class LineState:
    """Whether a line, a word or inline code can begin at the current position."""

    def __init__(self) -> None:
        self.fresh = True  # this is the start of a line, or only white space has come since a call or block
        self.previous = ""  # the last character of text; empty after a call or a token
        self.odd_ticks = False  # the last run of backticks on this line has opened inline code
        self.unclosed: set[str] = set()  # closing markers that calls on this line still lack
        self.only_reasoning = False  # only white space has come since reasoning, in a block or in a field
        self._beginning = ""  # of the line: enough for the marks of quotes and lists

    def note(self, text: str) -> None:
        """Update the state for text that was passed on."""
        tail = text[text.rfind("\n") + 1 :]
        if len(tail) < len(text):
            self.fresh, self.odd_ticks, self._beginning = True, False, ""
            self.unclosed.clear()
        if len(self._beginning) <= _MOST_OF_MARKS:
            self._beginning += tail[: _MOST_OF_MARKS + 1]
        if "`" in tail:
            for run in _TICKS.finditer(tail):
                if run.start() or len(tail) < len(text) or self.previous != "`":
                    self.odd_ticks = not self.odd_ticks
        if self.only_reasoning and not text.isspace():
            self.only_reasoning = False
        if self.fresh and tail and not tail.isspace():
            self.fresh = False
        self.previous = text[-1]

    @property
    def is_marked(self) -> bool:
        """Whether nothing but the marks of quotes and lists stands on the line."""
        return len(self._beginning) <= _MOST_OF_MARKS and _MARKS.fullmatch(self._beginning) is not None
