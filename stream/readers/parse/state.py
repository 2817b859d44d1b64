"""The parser's state: the line that it stands in, and the call that it reads."""

from __future__ import annotations

import re

from stream.readers.rounds import Call

__all__ = ["Draft", "LineState"]

_TICKS = re.compile(r"`+")


class LineState:
    """Whether a line, a word or inline code can begin at the current position."""

    __slots__ = ("fresh", "odd_ticks", "previous", "unclosed")

    def __init__(self) -> None:
        self.fresh = True  # this is the start of a line, or only white space has come since a call or block
        self.previous = ""  # the last character of text; empty after a call or a token
        self.odd_ticks = False  # the last run of backticks on this line has opened inline code
        self.unclosed: set[str] = set()  # closing markers that calls on this line still lack

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


class Draft:
    """The known parts of a call whose text is still read."""

    __slots__ = ("arguments", "arguments_begun", "begun", "call", "name", "named", "strong")

    def __init__(self, array: int, *, strong: bool, offset: int) -> None:
        self.call = Call(array=array, offset=offset)  # its name is empty until it is announced
        self.name = ""  # as far as it is known
        self.strong = strong  # a marker has already said that this is a call
        self.named = strong  # a name is enough to make it one
        self.begun = strong  # the end of the stream would leave an incomplete call here
        self.arguments: str | None = None  # once they are complete
        self.arguments_begun = False

    @property
    def announced(self) -> bool:
        """Whether the call was announced."""
        return self.call.name != ""

    @property
    def complete(self) -> bool:
        """Whether all that matters has come, so that anything may close the call."""
        return self.announced and self.arguments is not None

    def identify(self) -> None:
        """Let the id, if there is one, tell the call apart from its like."""
        if self.call.id:
            self.call.token = ("id", self.call.id)
