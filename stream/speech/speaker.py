"""The protocol of a speaker, and a base class for speakers that speak one phrase at a time: a run of one melody."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stream.word_boundaries import CLOSING, MARKS

__all__ = ["SAMPLE_RATE", "PhraseSpeaker", "Speaker", "Speech", "Word"]

SAMPLE_RATE = 24000
"""The sample rate of every speaker, Hz."""

# A clause ends at a mark at the end of a word, so "3.5" and "10:30" are not cut.
_CLAUSE_END = re.compile(rf"[.,;:!?…—{MARKS}][{CLOSING}]*$")


@dataclass(frozen=True, slots=True)
class Word:
    """A spoken word, with its start and end in samples from the start of its piece of speech.

    The end may lie in a later piece; it is `None` if the speaker does not know it.
    """

    text: str
    start_samples: int
    end_samples: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """A piece of speech.

    Attributes
    ----------
    samples : float32, shape `(n_samples,)`, full scale ±1.0
        24 kHz mono, of any length.
    words : tuple of Word
        The words that start in this piece, if the speaker knows them.
    phrase : str
        The text whose speech this piece completes, if the speaker knows it; `""` otherwise.
    """

    samples: NDArray[np.float32]
    words: tuple[Word, ...] = ()
    phrase: str = ""


class Speaker(Protocol):
    """Text in, speech out, in order.

    `send` takes words with the space before them, as `stream.words` yields them; text without a space continues a word,
    or follows one of a script without spaces. `flush` ends a phrase (before a tool call, say). After `finish` no more
    text comes, and the iteration ends when all is spoken. It raises a `SpeakerError` if the speaker fails.
    """

    @property
    def name(self) -> str:
        """A name for people."""
        ...

    async def start(self) -> None:
        """Get ready; raises `SpeakerError`, and holds no resources, if it cannot speak."""
        ...

    async def send(self, text: str) -> None:
        """Take words to speak."""
        ...

    async def flush(self) -> None:
        """Speak the words held back for a longer phrase."""
        ...

    async def finish(self) -> None:
        """Accept no more text."""
        ...

    def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech, piece by piece, as it is made."""
        ...

    async def aclose(self) -> None:
        """Release its resources (processes, connections); may be called at any time."""
        ...


class PhraseSpeaker(ABC):
    """Cuts text into phrases, queues them, and speaks them in order through `speak`.

    A phrase ends at punctuation, and after `max_words`, because the listener waits.
    """

    name: str
    max_words = 12

    def __init__(self) -> None:
        self._held: list[str] = []
        self._phrases: list[str] = []
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()

    @abstractmethod
    def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The speech of one phrase, piece by piece."""

    async def start(self) -> None:  # noqa: B027  (a default that does nothing)
        """Get ready; raises `SpeakerError` if it cannot speak."""

    async def aclose(self) -> None:  # noqa: B027
        """Release its resources."""

    async def send(self, text: str) -> None:
        """Take words to speak; a phrase that they complete is queued."""
        if text.strip():
            self._held.append(text)
        if len(self._held) >= self.max_words or _CLAUSE_END.search(text):
            await self.flush()

    @property
    def marks_phrases(self) -> bool:
        """Whether each phrase is given as a `Speech.phrase` when it has been spoken."""
        return type(self).__aiter__ is PhraseSpeaker.__aiter__  # another one may leave it out

    def unspoken(self) -> tuple[list[str], list[str]]:
        """The phrases whose speech is not complete, in order, and the words held back for the next one."""
        return self._phrases.copy(), self._held.copy()

    async def flush(self) -> None:
        """Queue the words held back."""
        phrase = "".join(self._held).strip()
        self._held.clear()
        if phrase:
            self._phrases.append(phrase)
            self._queue.put_nowait(phrase)

    async def finish(self) -> None:
        """Accept no more text; the iteration ends after the queued phrases."""
        await self.flush()
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech of all phrases in order, until `finish`."""
        while (phrase := await self._queue.get()) is not None:
            async for speech in self.speak(phrase):
                yield speech
            if phrase in self._phrases:  # not after a barge-in
                self._phrases.remove(phrase)
            yield Speech(np.zeros(0, dtype=np.float32), phrase=phrase)

    async def cancel(self) -> None:
        """Drop the text that was not spoken yet, at a barge-in."""
        self._held.clear()
        self._phrases.clear()
        while not self._queue.empty():
            self._queue.get_nowait()
