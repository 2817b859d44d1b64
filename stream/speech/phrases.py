"""Words to phrases: the pieces that a voice speaks with one melody."""

from __future__ import annotations

import re

__all__ = ["Phrases"]

# A clause ends at a mark that a space may follow; "3.5" and "10:30" hold no such end because words come whole.
_CLAUSE_END = re.compile(r"[.,;:!?…。、!?:;,—][\"'”’)\]]*$")


class Phrases:
    """Cuts a flow of words at the marks where a reader takes breath.

    Parameters
    ----------
    max_words : a phrase is cut after so many words although no mark came, because the listener waits.
    """

    __slots__ = ("_held", "_max_words")

    def __init__(self, max_words: int = 12) -> None:
        self._max_words = max_words
        self._held: list[str] = []

    def feed(self, word: str) -> list[str]:
        """The phrases that this word completes: none or one.

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
        """What is held back, as a phrase; none if that is nothing."""
        phrase = "".join(self._held).strip()
        self._held.clear()
        return [phrase] if phrase else []
