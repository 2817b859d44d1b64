"""Cuts words into phrases: the pieces that a voice speaks with one melody."""

from __future__ import annotations

import re

__all__ = ["Phrases"]

# A clause ends at a mark at the end of a word, so "3.5" and "10:30" are not cut.
_CLAUSE_END = re.compile(r"[.,;:!?…。、!?:;,—][\"'”’)\]]*$")


class Phrases:
    """Cuts a flow of words at punctuation, and after `max_words`, because the listener waits."""

    __slots__ = ("_held", "_max_words")

    def __init__(self, max_words: int = 12) -> None:
        self._max_words = max_words
        self._held: list[str] = []

    def feed(self, word: str) -> list[str]:
        """The phrase that this word completes, in a list; else an empty list.

        Examples
        --------
        >>> phrases = Phrases()
        >>> phrases.feed("Well,"), phrases.feed(" then"), phrases.flush()
        (['Well,'], [], ['then'])
        """
        if word.strip():
            self._held.append(word)
        if _CLAUSE_END.search(word) or len(self._held) >= self._max_words:
            return self.flush()
        return []

    def flush(self) -> list[str]:
        """The words held back, as a phrase in a list; else an empty list."""
        phrase = "".join(self._held).strip()
        self._held.clear()
        return [phrase] if phrase else []
