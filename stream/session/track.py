"""The words of the speech: which of them have begun, which phrases are complete, and where the last word ends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream.speech.speaker import Speech

__all__ = ["SpeechTrack"]

_SILENCE = 10.0 ** (-60.0 / 20.0)  # Below this a voice only breathes out; full scale ±1.0.


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A complete phrase: its first and last sample of speech, and how many words it has."""

    start: int
    end: int
    n_words: int


class SpeechTrack:
    """Keeps account of speech in samples of speech: silence between phrases and cues do not count.

    Attributes
    ----------
    n_pushed : speech that has been made, samples.
    """

    def __init__(self) -> None:
        self.n_pushed = 0
        self._n_words_sent = 0
        self._n_words_begun = 0
        self._n_words_complete = 0
        self._phrase_start = self._sound_end = self._word_start = 0
        self._tells_words = self._tells_phrases = self._spoke_since_sent = False
        self._ends: deque[tuple[int, int]] = deque()  # (words spoken by then, sample of speech at which they are)
        self._words: deque[tuple[int, str]] = deque()
        self._phrases: list[_Phrase] = []
        self._asked: deque[tuple[int, Callable[[int], None]]] = deque()

    @property
    def awaits_speech(self) -> bool:
        """Whether words were sent whose speech is not complete, as far as can be known."""
        if self._tells_phrases or not self.n_pushed:
            return self._n_words_sent > self._n_words_complete
        return not self._spoke_since_sent

    def sent(self, text: str) -> None:
        """Count the words that the speaker was given."""
        self._n_words_sent += len(text.split())
        self._spoke_since_sent = False

    def push(self, speech: Speech) -> None:
        """Take note of a piece of speech."""
        for word in speech.words:
            self._tells_words = True
            self._n_words_begun += 1
            # Times that go back are taken for the time before, so that words are told in their order.
            start = max(self.n_pushed + word.start_samples, self._word_start)
            self._word_start = start
            self._words.append((start, word.text))
            if word.end_samples is not None:
                self._ends.append((self._n_words_begun, self.n_pushed + word.end_samples))
        sounding = np.flatnonzero(np.abs(speech.samples) > _SILENCE)
        if len(sounding):
            self._sound_end = self.n_pushed + int(sounding[-1]) + 1
            self._spoke_since_sent = True
        self.n_pushed += len(speech.samples)
        if speech.phrase:
            self._tells_phrases = True
            n_words = len(speech.phrase.split())
            self._phrases.append(_Phrase(self._phrase_start, self.n_pushed, n_words))
            self._phrase_start = self.n_pushed
            self._n_words_complete += n_words
            self._n_words_begun = self._n_words_complete
            # The silence at a phrase's end belongs to its melody, but a cue need not wait for it.
            self._ends.append((self._n_words_complete, max(self._sound_end, self._phrases[-1].start)))
        self._answer()

    def begun(self, n_taken: int) -> list[tuple[int, str]]:
        """The words that begin before sample `n_taken` of the speech and were not given yet."""
        found = []
        while self._words and self._words[0][0] < n_taken:
            found.append(self._words.popleft())
        return found

    def after_words(self, then: Callable[[int], None]) -> None:
        """Have `then` called with the sample of speech after the last word sent so far, as soon as that is known."""
        self._asked.append((self._n_words_sent, then))
        self._answer()

    def all_passed(self) -> None:
        """Answer what was asked although the speaker did not tell: all its speech is out."""
        while self._asked:
            self._asked.popleft()[1](self._sound_end)

    def n_words_heard(self, n_taken: int) -> int:
        """How many words had been heard after `n_taken` samples: for speakers that tell phrases and no words.

        Of a phrase that was cut, so many of its words are counted as its part that was heard, rounded down.
        """
        if self._tells_words:
            return 0
        heard = 0
        for phrase in self._phrases:
            part = min(max(n_taken - phrase.start, 0), phrase.end - phrase.start)
            whole = phrase.end - phrase.start
            heard += phrase.n_words if part == whole else phrase.n_words * part // whole
        return heard

    def forget(self) -> None:
        """Drop the words to come and what was asked: the listener has interrupted."""
        self._words.clear()
        self._asked.clear()
        self._n_words_complete = self._n_words_sent

    def _answer(self) -> None:
        while self._asked:
            n_words, then = self._asked[0]
            while self._ends and self._ends[0][0] < n_words:
                self._ends.popleft()
            if n_words == 0 or (n_words <= self._n_words_complete and not self._ends):
                at = self._sound_end
            elif self._ends and self._ends[0][1] <= self.n_pushed:
                at = self._ends[0][1]
            else:
                return
            self._asked.popleft()
            then(at)
