"""Rechunks text to whole words for streaming text-to-speech."""

import asyncio
import math
import re
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from stream.errors import StreamTypeError
from stream.events import ReasoningDelta, ServiceEvent, TextDelta, Usage
from stream.request_bodies import sendable_text
from stream.word_boundaries import UNSPACED, WORD

__all__ = ["words", "words_sync"]

_E = TypeVar("_E", bound=ServiceEvent)

_SPACE = re.compile(r"\s+")
_LONGEST_WORD = 1024  # characters; longer ones are yielded in parts
_CLOSING_MARKS = re.compile(r"[,.;:!?…)\]}、，。！？；：）」』]+")
_SENTENCE_END = re.compile(r"[.:!?…。！？：]\W{0,8}\Z")
_DATA = ("json",)
_PAUSE_S = 0.5  # A slow model, with three tokens a second, keeps its words whole.


async def words(
    events: AsyncIterable[_E], *, silent_channels: Collection[str] = _DATA, pause_s: float = _PAUSE_S
) -> AsyncIterator[_E | TextDelta]:
    """Yield the events with their text rechunked to whole words.

    A word carries the white space before it, as one space; white space at either end of the answer is dropped. An event
    that is not text, or a change of channel, first yields the word held back; the next word then has a space before it.
    Reasoning and usage may stand inside a word: no space follows them, unless the text before them ends a sentence. A
    word of more than 1024 characters comes in parts. So does one with a pause inside: some servers send a call only
    when it is complete, and the text before it is spoken meanwhile. Chinese, Japanese, Thai and other scripts without
    spaces come up to a punctuation mark, or about eight characters at a time, with no space between. An asyncio task of
    its own reads the source, an event each time one is asked for, and closes it at the end, also on an early stop.

    Parameters
    ----------
    events : async iterable of ServiceEvent
        From `stream.read`, a reader or a model service.
    silent_channels : collection of str
        Channels whose text is dropped, because it is data for a program; `()` drops none. A program that needs the data
        exactly as sent reads `events` directly. One string raises a `StreamTypeError` at the first event.
    pause_s : float
        Time without an event after which the word held back is yielded, seconds, at least 0; `math.inf` waits for its
        end.
    """
    chunker = _WordChunker(silent_channels)
    arrived: asyncio.Queue[_E | _Pause | None] = asyncio.Queue()
    wanted, pause = asyncio.Event(), _Pause(pause_s, arrived)
    reading = asyncio.create_task(_read(events, arrived, wanted))
    try:
        while True:
            wanted.set()
            pause.wait(chunker.holds_a_word)
            event = await arrived.get()
            pause.wait(False)
            if event is None:
                break
            if isinstance(event, _Pause):
                for word in chunker.flush():
                    yield word
                continue
            for out in chunker.feed(event):
                yield out
        for word in chunker.flush():  # The text before an error is spoken, then the error is raised.
            yield word
        await reading
    finally:
        pause.end()
        reading.cancel()
        try:
            await asyncio.wait({reading})
        except asyncio.CancelledError:
            reading.cancel()  # it is closing the source, which nobody waits for any longer
            raise
        if not reading.cancelled():
            reading.result()  # an error while the source was closed


class _Pause:
    """Puts itself into the queue once nothing has come for so long.

    One timer looks whether it is time, and waits for the rest if not: one for each event costs more than its word.
    """

    def __init__(self, pause_s: float, arrived: asyncio.Queue[Any]) -> None:
        self._pause_s, self._arrived, self._loop = pause_s, arrived, asyncio.get_running_loop()
        self._at_s = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, holds: bool) -> None:
        """Wait from now on, if a word is held; otherwise no longer."""
        self._at_s = self._loop.time() + self._pause_s if holds else math.inf
        if self._timer is None and self._at_s < math.inf:
            self._timer = self._loop.call_at(self._at_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() >= self._at_s:
            self._arrived.put_nowait(self)
        elif self._at_s < math.inf:
            self._timer = self._loop.call_at(self._at_s, self._look)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


async def _read(events: AsyncIterable[_E], arrived: asyncio.Queue[Any], wanted: asyncio.Event) -> None:
    """Read an event each time one is wanted, and `None` at the end."""
    try:
        async for event in events:
            wanted.clear()
            arrived.put_nowait(event)
            await wanted.wait()
    finally:
        try:
            if hasattr(events, "aclose"):
                await events.aclose()
        finally:
            arrived.put_nowait(None)


def words_sync(events: Iterable[_E], *, silent_channels: Collection[str] = _DATA) -> Iterator[_E | TextDelta]:
    """Yield the events with their text rechunked to whole words; see `words`.

    Examples
    --------
    >>> [event.text for event in words_sync([TextDelta("Good  mor"), TextDelta("ning, Ada. ")])]
    ['Good', ' morning,', ' Ada.']
    """
    chunker = _WordChunker(silent_channels)
    try:
        for event in events:
            yield from chunker.feed(event)
    except Exception:
        yield from chunker.flush()
        raise
    finally:
        if hasattr(events, "close"):
            events.close()
    yield from chunker.flush()


class _WordChunker:
    """Holds the incomplete word, and the space that belongs before it."""

    __slots__ = ("_channel", "_parted", "_pieces", "_silent", "_size", "_space", "_unspaced", "_yielded")

    def __init__(self, silent_channels: Collection[str]) -> None:
        if isinstance(silent_channels, str):
            raise StreamTypeError(
                f"silent_channels is {silent_channels!r}; it must be a collection of names: ({silent_channels!r},)"
            )
        self._silent = frozenset(silent_channels)
        self._pieces: list[str] = []
        self._size = 0  # of the pieces
        self._unspaced = False  # words may end without a space
        self._space = False  # white space before the word
        self._parted = False  # an event between two words
        self._yielded = False  # a word was yielded
        self._channel: str | None = None

    @property
    def holds_a_word(self) -> bool:
        """Whether text is held back."""
        return bool(self._pieces)

    def feed(self, event: _E) -> Sequence[_E | TextDelta]:
        if isinstance(event, TextDelta):
            return self._feed_text(event)
        out = self.flush()
        may_be_in_a_word = isinstance(event, ReasoningDelta | Usage)
        if not may_be_in_a_word or (out and _SENTENCE_END.search(out[0].text)):
            self._parted = True
        return [*out, event]

    def _feed_text(self, delta: TextDelta) -> list[TextDelta]:
        out: list[TextDelta] = []
        if delta.channel != self._channel:
            out = [*self.flush()]
            self._channel, self._parted = delta.channel, True
        if delta.channel in self._silent:
            return out
        text, start = delta.text, 0
        if self._unspaced or (not text.isascii() and UNSPACED.search(text)):
            return out + self._feed_unspaced(text)
        for match in _SPACE.finditer(text):
            self._pieces.append(text[start : match.start()])
            out += self.flush()
            self._space, start = True, match.end()
        if start < len(text):
            self._pieces.append(text[start:])
            self._size += len(text) - start
            if self._size > _LONGEST_WORD:
                out += self._parts()
        return out

    def _feed_unspaced(self, text: str) -> list[TextDelta]:
        text, end, out = "".join(self._pieces) + text, 0, []
        self._pieces = []
        for match in WORD.finditer(text):
            out += self.flush()
            self._space = self._space or match.start() > end
            self._pieces, self._size, end = [match.group()], len(match.group()), match.end()
        if end < len(text):
            out += self.flush()
            self._space = True
        if self._size > _LONGEST_WORD:
            out += self._parts()
        self._unspaced = bool(self._pieces)
        return out

    def _parts(self) -> list[TextDelta]:
        word, start, out = "".join(self._pieces), 0, []
        while len(word) - start > _LONGEST_WORD:
            end = start + _LONGEST_WORD
            end -= "\ud800" <= word[end - 1] <= "\udbff"  # the first half of a surrogate pair
            self._pieces = [word[start:end]]
            out += self.flush()
            start = end
        self._pieces, self._size = [word[start:]], len(word) - start
        return out

    def flush(self) -> list[TextDelta]:
        word = "".join(self._pieces)
        self._pieces, self._size, self._unspaced = [], 0, False
        if not word:
            return []
        # Punctuation after a call belongs to the word before the call.
        parted = self._space or (self._parted and not _CLOSING_MARKS.fullmatch(word))
        space = " " if parted and self._yielded else ""
        self._space, self._parted, self._yielded = False, False, True
        # A server that cuts an emoji in two sends its halves in two deltas; a half alone cannot be encoded.
        return [TextDelta(space + sendable_text(word), self._channel)]
