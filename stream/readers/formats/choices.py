"""Which choice of a stream of Chat Completions is read, and what the others have brought."""

import logging
from collections.abc import Mapping
from typing import Any

from stream.readers.calls.values import dumps, fields_of, listed, plain

__all__ = ["Choices"]

_PIECE_COSTS = 256  # characters: each piece is an object in memory

logger = logging.getLogger(__name__)


class Choices:
    """The choice that speaks first is read. What the others say is held until their finish reasons tell what they are.

    Several answers to one question each have a finish reason: the others are then left out. LiteLLM spreads one answer
    of Bedrock over the choices, its thoughts, its text and each call, and ends it with one finish reason: others with
    a call then belong to the answer.
    """

    def __init__(self, most: int) -> None:
        self.at: Any = 0  # the index of the choice that is read
        self.has_spoken = False
        self.reason = ""  # the finish reason of an answer that may be spread
        self._most = most  # characters
        self._held: list[Mapping[str, Any]] | None = []  # deltas of the others; None if they are left out
        self._n_held = 0
        self._others_finished = False

    def reads(self, choice: Mapping[str, Any]) -> bool:
        """Return whether a choice is the one that is read; what another one says is held."""
        index, delta = choice.get("index") or 0, fields_of(choice.get("delta") or choice.get("message"))
        speaks = (index != self.at or not self.has_spoken) and _speaks(delta)
        if speaks and not self.has_spoken:
            self.at, self.has_spoken = index, True
        if index == self.at:
            return True
        if speaks and self._held is not None:
            self._held.append(plain(delta))
            self._n_held += _PIECE_COSTS + len(dumps(self._held[-1]))
            if self._n_held > self._most:
                self._leave_out()
        return False

    def finishes(self, reason: str) -> bool:
        """Take in the finish reason of the choice that is read; return whether it ends the answer now."""
        self.reason = reason
        if self._held and not self._others_finished:
            return False  # another finish reason, or the end of the stream, tells what is held
        self._held, self.has_spoken = None, True
        return True

    def finishes_beside(self, reason: str) -> bool:
        """Take in the finish reason of another choice; return whether it ends the answer that is read."""
        if not self.reason:
            self.reason, self._others_finished = reason, True
            return False
        is_end = bool(self._held) and not self._others_finished
        self._held = None
        return is_end

    def rest(self) -> list[Mapping[str, Any]]:
        """The deltas of the others that belong to the answer, at the end of the stream."""
        if self._held and not (self.reason and any(map(_calls, self._held))):
            self._leave_out()
        held, self._held = self._held or [], None
        return held

    def _leave_out(self) -> None:
        self._held = None
        logger.warning("a stream has several choices; the one that spoke first is read, the others are left out")


def _speaks(delta: Mapping[str, Any]) -> bool:
    if delta.get("role") == "tool":
        return False
    content = delta.get("content") or delta.get("refusal")
    texts = [content] if isinstance(content, str) else [fields_of(part).get("text") for part in listed(content)]
    has_text = any(isinstance(text, str) and text.strip() for text in texts)
    return has_text or _calls(delta)


def _calls(delta: Mapping[str, Any]) -> bool:
    return bool(delta.get("tool_calls") or delta.get("function_call"))
