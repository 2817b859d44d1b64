"""The chat history of a spoken conversation: only the text that was heard, and no tool calls."""

import re
from collections.abc import Iterable
from typing import Literal

__all__ = ["ChatHistory", "heard_text"]

_TOKEN = re.compile(r"\S+")


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

    Each word of `heard`, in order, is searched in the text, because a speaker may mark several words as one, or
    punctuation not at all.

    >>> heard_text("Well - I looked it up.", ["Well", "I", "looked"])
    'Well - I looked'
    >>> heard_text("Well - I looked it up.", [], 2)
    'Well -'
    """
    tokens = list(_TOKEN.finditer(spoken_text))
    at = min(n_words, len(tokens))
    for word in heard:
        near = (n for n in range(at, min(at + 4, len(tokens))) if tokens[n].group() == word.strip())
        at = next(near, min(at, len(tokens) - 1)) + 1
    return spoken_text[: tokens[at - 1].end()] if at else ""
