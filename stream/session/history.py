"""The chat history of spoken conversations: what was said, never what was called, and only what was heard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ChatHistory", "heard_text"]

_TOKEN = re.compile(r"\S+")


class ChatHistory:
    """Messages in OpenAI's form, of spoken text alone.

    Parameters
    ----------
    system : a system prompt, if there is one.

    Attributes
    ----------
    messages : dictionaries with `role` and `content`; hand them to the model as they are.

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
        """Add what somebody said; of nothing there is no message, and two in a row of one speaker are one."""
        text = text.strip()
        if not text:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += f" {text}"
        else:
            self.messages.append({"role": role, "content": text})


def heard_text(spoken_text: str, heard: Iterable[str], n_words: int = 0) -> str:
    """The beginning of `spoken_text` that was heard.

    Parameters
    ----------
    heard : the words that were heard, in order, where the speaker tells them; a speaker may say several of the text's
        words as one mark or none (punctuation), so they are looked for.
    n_words : where no words are told: how many were heard.

    Examples
    --------
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
