"""Reading text that arrives in pieces as if it were all there.

The grammar of a dialect is written as plain straight-line code over these primitives. Each is a generator that yields
when it needs more text and goes on where it stopped; the end of the stream comes as `CutOff`. What is read is taken
off the tape, so that no character is looked at again, and kept in `held` for as long as it may turn out to be text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from stream.readers.parse.markers import normalize
from stream.readers.parse.scanner import VALUE, JsonScanner

if TYPE_CHECKING:
    from collections.abc import Generator

    from stream.readers.parse.shapes import Shape

__all__ = ["CutOff", "NotACall", "Pieces", "Reading", "Tape", "Unreadable"]

_SPACE = re.compile(r"\s*")
_MOST_HELD = 1 << 20
_LONGEST_SCALAR = 4096  # a key, a name, an id


class CutOff(Exception):  # noqa: N818  (an outcome, not an error)
    """The stream ended while more was needed; `text` is what was read in vain, where that matters."""

    text = ""


class NotACall(Exception):  # noqa: N818  (an outcome, not an error)
    """What looked like a call is ordinary text; `scanner` stands in a JSON value that is text to its end."""

    def __init__(self, scanner: JsonScanner | None = None) -> None:
        super().__init__()
        self.scanner = scanner


class Unreadable(Exception):  # noqa: N818  (an outcome, not an error)
    """A call began, and its body cannot be read."""


class Pieces:
    """Text that comes in pieces; past a limit it is dropped, but for enough to see that there was more.

    Attributes
    ----------
    size : how much has come, characters.
    """

    __slots__ = ("_limit", "_pieces", "size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self.size = 0

    def add(self, piece: str) -> None:
        """Take in a piece."""
        if self.size <= self._limit:
            self._pieces.append(piece)
        self.size += len(piece)

    @property
    def text(self) -> str:
        """What was kept."""
        return "".join(self._pieces)


_T = TypeVar("_T")
Reading: TypeAlias = "Generator[None, None, _T]"


class Tape:
    """The text that has come and was not read yet.

    Attributes
    ----------
    buffer, position : the unread text is `buffer[position:]`; before it stands at least the character read last.
    passed : how many characters came before the buffer.
    ended : whether the stream has ended.
    held : what was read and may yet be text; kept only while `recording`.
    """

    def __init__(self, max_argument_chars: int) -> None:
        self.buffer = ""
        self.position = 0
        self.passed = 0
        self.ended = False
        self.held: list[str] = []
        self.recording = True
        self.max_argument_chars = max_argument_chars

    def put(self, text: str) -> None:
        """Append text that has arrived. The last character that was read stays, for patterns that look behind."""
        read = max(self.position - 1, 0)
        self.passed += read
        self.buffer = self.buffer[read:] + text
        self.position -= read

    def take(self, size: int) -> str:
        """Read `size` characters that are there."""
        start, self.position = self.position, self.position + size
        text = self.buffer[start : self.position]
        if self.recording and text:
            self.held.append(text)
        return text

    def take_to(self, match: re.Match[str] | None) -> str:
        """Read up to a match, or all that is there."""
        return self.take((match.start() if match else len(self.buffer)) - self.position)

    def commit(self) -> None:
        """Forget what was held: it was no text."""
        self.held.clear()
        self.recording = False

    def more(self) -> Reading[None]:
        """Wait for more text."""
        if not self.ended:
            yield
        if self.ended:
            raise CutOff

    def peek(self) -> Reading[str]:
        """Return the next character, which stays."""
        while self.position >= len(self.buffer):
            yield from self.more()
        return self.buffer[self.position]

    def skip(self, run: re.Pattern[str]) -> Reading[str]:
        """Skip what a pattern matches, maybe nothing; return the character behind it, which stays."""
        while True:
            self.take(run.match(self.buffer, self.position).end() - self.position)  # type: ignore[union-attr]
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            yield from self.more()

    def skip_space(self) -> Reading[str]:
        """Skip white space; return the character behind it, which stays."""
        return self.skip(_SPACE)

    def test(self, *shapes: Shape) -> Reading[tuple[int, re.Match[str]] | None]:
        """Return which of some shapes comes next, and its match, or None; nothing is read."""
        while True:
            undecided = False
            for number, shape in enumerate(shapes):
                match = shape.whole.match(self.buffer, self.position)
                if match:
                    return number, match
                undecided |= shape.begun.fullmatch(self.buffer, self.position) is not None
            if not undecided:
                return None
            yield from self.more()

    def read(self, shape: Shape) -> Reading[re.Match[str] | None]:
        """Read a shape if it comes next; return its match, or None."""
        found = yield from self.test(shape)
        if found:
            self.take(found[1].end() - self.position)
        return found[1] if found else None

    def accept(self, literal: str) -> Reading[bool]:
        """Read `literal` if it comes next; return whether it did. What is no more than its beginning stays."""
        while not self.buffer.startswith(literal, self.position):
            rest = len(self.buffer) - self.position
            if rest >= len(literal) or not literal.startswith(self.buffer[self.position :]):
                return False
            yield from self.more()
        self.take(len(literal))
        return True

    def find(self, markers: re.Pattern[str], known: frozenset[str], limit: int) -> Reading[tuple[str, str]]:
        """Read up to the first of some markers; return the text before it and the marker, which stays.

        Parameters
        ----------
        markers : finds a whole marker, or the beginning of one at the end of the text (see `marker_pattern`).
        known : the whole markers.
        limit : text past so many characters is dropped (see `Pieces`).
        """
        pieces = Pieces(limit)
        while True:
            match = markers.search(self.buffer, self.position)
            pieces.add(self.take_to(match))
            if match and normalize(match.group()) in known:
                return pieces.text, normalize(match.group())
            try:
                yield from self.more()
            except CutOff as end:
                pieces.add(self.take_to(None))
                end.text = pieces.text
                raise

    def json_scalar(self) -> Reading[Any]:
        """Read a JSON value that is short, such as a key, a name or an id; return what it stands for.

        Raises
        ------
        Unreadable
            If it is not JSON, or too long.
        """
        text = yield from self.json_value(_LONGEST_SCALAR)
        if len(text) > _LONGEST_SCALAR:
            raise Unreadable
        return json.loads(text, strict=False)

    def json_value(self, limit: int | None = None) -> Reading[str]:
        """Read a JSON value; return its text.

        Parameters
        ----------
        limit : text past so many characters is dropped (see `Pieces`); None is that of arguments.

        Raises
        ------
        Unreadable
            If it is not JSON.
        """
        scanner = JsonScanner(VALUE)
        pieces = Pieces(self.max_argument_chars if limit is None else limit)
        while True:
            end = scanner.scan(self.buffer, self.position)
            piece = self.take(end - self.position)
            pieces.add(piece)
            if pieces.size > _MOST_HELD and self.recording:
                self.commit()  # whatever it is: so much of it is not for the ear
            if scanner.done:
                return pieces.text
            if scanner.failed:
                raise Unreadable
            try:
                yield from self.more()
            except CutOff:
                if not scanner.finish():
                    raise
