"""Text that a request asked for as data: a block of thought may come before it, and everything else is data."""

from collections.abc import Iterator

from stream.readers.text.dialects.reasoning import BLOCKS

__all__ = ["DataText"]

# The others are words that a grammar of the caller's own may ask for.
_BLOCKS = {opener: closer for opener, closer in BLOCKS.items() if "think" in opener.lower()}


class DataText:
    """Tells the thought at the beginning of an answer from its data; both come out in pieces, `(is_thought, text)`."""

    def __init__(self) -> None:
        self._held = ""  # may be the beginning of a marker
        self._closer = ""  # of the block that is open
        self._is_data = False

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """The pieces of a delta."""
        text, self._held = self._held + text, ""
        if not self._is_data and not self._closer:
            begun = text.lstrip()
            opener = next(filter(begun.startswith, _BLOCKS), None)
            if opener is not None:
                yield False, text[: len(text) - len(begun)]
                text, self._closer = begun[len(opener) :], _BLOCKS[opener]
            elif any(opener.startswith(begun) for opener in _BLOCKS):
                text, self._held = text[: len(text) - len(begun)], begun
            else:
                self._is_data = True
        if self._closer:
            thought, found, rest = text.partition(self._closer)
            size = 0 if found else _begun(self._closer, text)
            yield True, thought[: len(thought) - size]
            text, self._held = rest, thought[len(thought) - size :]
            if found:
                self._closer, self._is_data = "", True
        yield False, text

    def close(self) -> Iterator[tuple[bool, str]]:
        """What is held back at the end of the answer."""
        yield bool(self._closer), self._held
        self._held = ""


def _begun(marker: str, text: str) -> int:
    """How many characters at the end of the text are the beginning of the marker."""
    sizes = range(min(len(marker) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(marker[:size])), 0)
