"""Text that a request asked for as data: thoughts may come before it, and everything else is data."""

import re
from collections.abc import Container, Generator, Iterator
from typing import TypeAlias

from stream.readers.options import Start
from stream.readers.text.dialects.reasoning import ANY_END, ANY_MARKER, ENDS, TITLE, end_of_block, warn_of_no_end
from stream.readers.text.patterns import marker_pattern, normalize
from stream.readers.text.scanner import JsonScanner, Pieces

__all__ = ["DataText"]

_Piece: TypeAlias = tuple[bool, str]  # whether it is of a thought, and its text
_WORDS = frozenset({"<reasoning>", "<reason>"})  # a grammar of the caller's own may ask for them
_BRACKET = re.compile(r"[{\[]")
_SPACE = re.compile(r"\s*")
_MOST_HELD = 1 << 20  # characters of data behind thoughts without an end


class DataText:
    """Tells the thoughts at the beginning of an answer from its data; both come out in pieces, `(is_thought, text)`.

    With `start="reasoning"` the prompt has opened the first one, but an answer that begins with `{` or `[` has none: a
    server that lets a grammar decide from the first token on leaves no room for it. If no end of a thought comes, JSON
    that ends the answer is data.
    """

    def __init__(self, start: Start = "text") -> None:
        self._held = ""  # may be the beginning of a marker
        self._ends: tuple[re.Pattern[str], Container[str]] | None = None  # of the block that is open
        self._has_title = False  # a title may come, at the beginning of the block
        self._last = _LastValue()  # of the block
        self._is_data = False
        self._begins_in_thought = start == "reasoning"

    def feed(self, text: str) -> Iterator[_Piece]:
        """The pieces of a delta."""
        text, self._held = self._held + text, ""
        while text and not self._is_data:
            text = yield from self._before(text) if self._ends is None else self._inside(text, *self._ends)
        yield False, text

    def _before(self, text: str) -> Generator[_Piece, None, str]:
        """Read white space and a marker; return the rest."""
        begun = text.lstrip()
        yield False, text[: len(text) - len(begun)]
        match = ANY_MARKER.match(begun)
        marker = normalize(match.group()) if match else ""
        if match and marker not in _WORDS and (closer := end_of_block(marker)):
            self._ends, self._has_title = marker_pattern(closer), marker == "<|channel>"
            return begun[match.end() :]
        if marker in ENDS:  # without its opener
            self._ends = ANY_END, ENDS
        elif match and marker not in _WORDS and match.end() == len(begun):
            begun, self._held = "", begun
        elif begun and self._begins_in_thought and begun[0] not in "{[":
            self._ends = ANY_END, ENDS
        else:
            self._is_data = begun != ""
        return begun

    def _inside(self, text: str, markers: re.Pattern[str], ends: Container[str]) -> Generator[_Piece, None, str]:
        """Read a thought, and the marker that ends it; return the rest."""
        title = TITLE.whole.match(text) if self._has_title else None
        if self._has_title and not title and TITLE.begun.fullmatch(text):
            self._held = text
            return ""
        text, self._has_title = text[title.end() if title else 0 :], False
        match = markers.search(text)
        while match and match.end() < len(text) and normalize(match.group()) not in ends:
            match = markers.search(text, match.start() + 1)  # that was no marker
        at, end = match.span() if match else (len(text), len(text))
        yield True, self._last.feed(text[:at])
        if normalize(text[at:end]) in ends:
            yield True, self._last.take()
            self._ends, self._begins_in_thought = None, False
            return text[end:]
        self._held = text[at:]
        return ""

    def go_on(self) -> Iterator[_Piece]:
        """Return the text that was held back as a possible end; a call follows, so it was not the end."""
        yield True, self._last.take()

    def close(self, *, was_cut: bool) -> Iterator[_Piece]:
        """Return the text that is held back at the end; if the answer `was_cut`, it may be an unfinished thought."""
        held, self._held = self._held, ""
        if self._ends is None:
            yield False, held
            return
        yield True, self._last.feed(held)
        if self._begins_in_thought and not (was_cut or self._last.is_complete):
            warn_of_no_end()
        yield not self._last.is_complete, self._last.take()


class _LastValue:
    """Holds back an object or array in JSON that may be the last thing in a text."""

    def __init__(self) -> None:
        self._scanner: JsonScanner | None = None  # of the value that has begun
        self._pieces = Pieces(_MOST_HELD)
        self._n_rescans = _MOST_HELD  # characters that may still be scanned once more

    @property
    def is_complete(self) -> bool:
        return self._scanner is not None and self._scanner.done

    def feed(self, text: str) -> str:
        """Return what is not, or no longer, held back."""
        at, passed = 0, ""
        while at < len(text):
            if self._scanner is None:
                match = _BRACKET.search(text, at)
                start = match.start() if match else len(text)
                passed, at = passed + text[at:start], start
                if not match:
                    break
                self._scanner = JsonScanner(lenient=False)
            end = self._scanner.scan(text, at)
            if self._scanner.done:
                end = _SPACE.match(text, end).end()  # type: ignore[union-attr]  # matches "" too
            self._pieces.add(text[at:end])
            at = end
            if self._scanner.failed and self._pieces.size <= self._n_rescans:
                held = self.take()  # a bracket of words may have hidden the value's
                self._n_rescans -= len(held)
                if len(held) > at:  # its beginning came earlier
                    text, at = held + text[at:], len(held)
                passed += held[0]
                at -= len(held) - 1
            elif self._scanner.failed or at < len(text) or self._pieces.size > _MOST_HELD:
                passed += self.take()
        return passed

    def take(self) -> str:
        """Return what is held back, which is forgotten."""
        text, self._scanner, self._pieces = self._pieces.text, None, Pieces(_MOST_HELD)
        return text
