"""The chat history of a spoken conversation: only the text that was heard, and no tool calls."""

from collections.abc import Iterable
from itertools import islice
from typing import Literal

from stream.word_boundaries import PART, WORD

__all__ = ["ChatHistory", "heard_text"]

_MOST_SKIPPED = 3


class ChatHistory:
    """Messages in OpenAI's form, of spoken text alone; `system` is an optional system prompt.

    `messages` is a list of dicts with `role` and `content`, ready to be sent to a model.

    Examples
    --------
    >>> history = ChatHistory("Be brief.")
    >>> history.add("user", "Hello.")
    >>> history.add("assistant", "")
    >>> [message["role"] for message in history.messages]
    ['system', 'user']
    """

    def __init__(self, system: str = "") -> None:
        self.messages: list[dict[str, str]] = []
        self.add("system", system)

    def add(self, role: Literal["system", "user", "assistant"], text: str) -> None:
        """Add a message; empty text is dropped, and two in a row with one role are joined."""
        text = text.strip()
        if not text:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += f" {text}"
        else:
            self.messages.append({"role": role, "content": text})


def heard_text(spoken_text: str, heard: Iterable[str], n_words: int = 0) -> str:
    """The beginning of `spoken_text` that was heard; `n_words` counts it for speakers without word marks.

    Each word of `heard`, in order, is searched in the text, because a speaker may mark several words as one, a
    character as a word, or punctuation not at all.

    >>> heard_text("Well - I looked it up.", ["Well", "I", "looked"])
    'Well - I looked'
    >>> heard_text("Well - I looked it up.", [], 2)
    'Well -'
    """
    end = max((word.end() for word in islice(WORD.finditer(spoken_text), n_words)), default=0)
    parts = list(PART.finditer(spoken_text, end))
    n_until = {part.end(): n for n, part in enumerate(parts, 1)}
    at = 0
    for word in map(str.strip, heard):
        starts = [part.start() for part in parts[at : at + 1 + _MOST_SKIPPED]]
        ends = (start + len(word) for start in starts if spoken_text.startswith(word, start))
        at = next((n_until[end] for end in ends if end in n_until), min(at + 1, len(parts)))
    return spoken_text[: parts[at - 1].end() if at else end]
