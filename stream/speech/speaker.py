"""The protocol of a speaker, and the base for those that speak a phrase at a time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stream.speech.phrases import Phrases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from numpy.typing import NDArray

__all__ = ["SAMPLE_RATE", "PhraseSpeaker", "Speaker", "Speech", "Word"]

SAMPLE_RATE = 24000
"""What every speaker delivers (Hz)."""


@dataclass(frozen=True, slots=True)
class Word:
    """A spoken word and where it begins and ends, in samples from the start of its piece of speech.

    The end may lie in a later piece; it is `None` where the speaker does not tell.
    """

    text: str
    start_samples: int
    end_samples: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """A piece of speech.

    Attributes
    ----------
    samples : float32, shape `(n_samples,)`, full scale ±1.0, 24 kHz mono; of any length.
    words : the words that begin in this piece, where the speaker knows them.
    phrase : the text whose speech is complete with this piece, where the speaker knows; `""` in the middle of it.
    """

    samples: NDArray[np.float32]
    words: tuple[Word, ...] = ()
    phrase: str = ""


class Speaker(Protocol):
    """Text in, speech out, in order.

    `send` takes whole words with the space before them, as `stream.words` makes them. `flush` says that what was sent
    is a phrase of its own (a tool call interrupts it, say). `finish` says that no more text will come: the iteration
    ends once all is spoken. An error of the speaker is raised by the iteration as a `SpeakerError`.
    """

    @property
    def name(self) -> str:
        """What a person would call it."""
        ...

    async def start(self) -> None:
        """Get ready; raises `SpeakerError`, and holds nothing, if it cannot speak at all."""
        ...

    async def send(self, text: str) -> None:
        """Take words to be spoken."""
        ...

    async def flush(self) -> None:
        """Speak what is held back for the sake of a phrase's melody."""
        ...

    async def finish(self) -> None:
        """Take no more text."""
        ...

    def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech, piece by piece, as it is made."""
        ...

    async def aclose(self) -> None:
        """Let go of what it holds (processes, connections); may be called at any time."""
        ...


class PhraseSpeaker(ABC):
    """A speaker that is told how to speak one phrase, and does the rest: it cuts phrases, queues and orders them."""

    name: str

    def __init__(self) -> None:
        self._phrases = Phrases()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()

    @abstractmethod
    def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The speech of one phrase, piece by piece."""

    async def start(self) -> None:  # noqa: B027  (nothing to do is a fair default)
        """Get ready; raises `SpeakerError` if it cannot speak at all."""

    async def aclose(self) -> None:  # noqa: B027
        """Let go of what it holds."""

    async def send(self, text: str) -> None:
        """Take words to be spoken; a phrase that they complete is queued."""
        for phrase in self._phrases.feed(text):
            self._queue.put_nowait(phrase)

    async def flush(self) -> None:
        """Queue what is held back."""
        for phrase in self._phrases.flush():
            self._queue.put_nowait(phrase)

    async def finish(self) -> None:
        """Take no more text; the iteration ends after what is queued."""
        await self.flush()
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Speech]:
        """The speech of all phrases in order, until `finish`."""
        while (phrase := await self._queue.get()) is not None:
            async for speech in self.speak(phrase):
                yield speech
            yield Speech(np.zeros(0, dtype=np.float32), phrase=phrase)

    async def cancel(self) -> None:
        """Forget what was sent and not spoken yet: the listener has interrupted."""
        self._phrases.flush()
        while not self._queue.empty():
            self._queue.get_nowait()
