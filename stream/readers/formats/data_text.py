"""Text that a request asked for as data: a block of thought may come before it, and everything else is data."""

from collections.abc import Iterator

from stream.readers.options import Start
from stream.readers.text.dialects.reasoning import BLOCKS
from stream.readers.text.patterns import marker_pattern, normalize

__all__ = ["DataText"]

# The others are words that a grammar of the caller's own may ask for.
_BLOCKS = {opener: closer for opener, closer in BLOCKS.items() if "think" in opener.lower()}


class DataText:
    """Tells the thought at the beginning of an answer from its data; both come out in pieces, `(is_thought, text)`.

    With `start="reasoning"` the prompt has opened the thought, but an answer that begins with `{` or `[` has none: a
    server that lets a grammar decide from the first token on leaves no room for it.
    """

    def __init__(self, start: Start = "text") -> None:
        self._held = ""  # may be the beginning of a marker
        self._closers: tuple[str, ...] = ()  # of the block that is open
        self._is_data = False
        self._begins_in_thought = start == "reasoning"

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """The pieces of a delta."""
        text, self._held = self._held + text, ""
        if not self._is_data and not self._closers:
            begun = text.lstrip()
            opener = next(filter(begun.startswith, _BLOCKS), None)
            if opener is not None:
                yield False, text[: len(text) - len(begun)]
                text, self._closers = begun[len(opener) :], (_BLOCKS[opener],)
            elif any(opener.startswith(begun) for opener in _BLOCKS):
                text, self._held = text[: len(text) - len(begun)], begun
            elif self._begins_in_thought and begun[0] not in "{[":
                self._closers = tuple(_BLOCKS.values())
            else:
                self._is_data = True
        if self._closers:
            pattern, whole = marker_pattern(*self._closers)
            found = pattern.search(text)  # also the beginning of one, at the end
            at, end = found.span() if found else (len(text), len(text))
            yield True, text[:at]
            if normalize(text[at:end]) in whole:
                self._closers, self._is_data, text = (), True, text[end:]
            else:
                self._held, text = text[at:], ""
        yield False, text

    def close(self) -> Iterator[tuple[bool, str]]:
        """What is held back at the end of the answer."""
        yield bool(self._closers), self._held
        self._held = ""
