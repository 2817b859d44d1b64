"""Rechunking of text to whole words, as streaming text-to-speech wants it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream.events import Event, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

__all__ = ["words", "words_sync"]

_SPACE = re.compile(r"\s+")


async def words(events: AsyncIterable[Event]) -> AsyncIterator[Event]:
    """Yield the events with their text rechunked to whole words.

    The white space before a word belongs to it, and a run of it is one space; white space at the very end is dropped.
    Any other event gives out the word that has begun and passes at once; no space is lost over it. The source is closed
    at the end, also when the reading stops early.

    Parameters
    ----------
    events : what `stream.read` or a reader gives.
    """
    chunker = _WordChunker()
    try:
        async for event in events:
            for out in chunker.feed(event):
                yield out
    except Exception:
        # What was said before a source broke is said, then the fault is passed on.
        for out in chunker.flush():
            yield out
        raise
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()
    for out in chunker.flush():
        yield out


def words_sync(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events with their text rechunked to whole words; see `words`.

    Examples
    --------
    >>> [event.text for event in words_sync([TextDelta("Good  mor"), TextDelta("ning, Ada. ")])]
    ['Good', ' morning,', ' Ada.']
    """
    chunker = _WordChunker()
    try:
        for event in events:
            yield from chunker.feed(event)
    except Exception:
        yield from chunker.flush()
        raise
    yield from chunker.flush()


def _well_formed(word: str) -> str:
    """The word with halves of surrogate pairs joined, or U+FFFD for one that is alone: it could not be sent anywhere.

    JSON can hold them, and a server that cuts an emoji in two sends the halves in two pieces of text.
    """
    return word if word.isascii() else word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _WordChunker:
    """Holds the word that has begun, and whether a space stands before it."""

    __slots__ = ("_channel", "_pieces", "_space")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._space = ""
        self._channel: str | None = None

    def feed(self, event: Event) -> list[Event]:
        if not isinstance(event, TextDelta):
            return [*self.flush(), event]
        out = self.flush() if event.channel != self._channel else []
        self._channel = event.channel
        text, start = event.text, 0
        for match in _SPACE.finditer(text):
            self._pieces.append(text[start : match.start()])
            out += self.flush()
            self._space, start = " ", match.end()
        if start < len(text):
            self._pieces.append(text[start:])
        return out

    def flush(self) -> list[Event]:
        word = "".join(self._pieces)
        self._pieces = []
        if not word:
            return []
        word, self._space = self._space + _well_formed(word), ""
        return [TextDelta(word, self._channel)]
