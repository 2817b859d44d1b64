"""OpenRouter's blocks of thoughts, which it wants back with the answer, as it wrote them."""

from typing import Any

from stream.readers.calls.values import dumps, fields_of, listed, plain, text_of
from stream.readers.text.scanner import Pieces

__all__ = ["ReasoningDetails"]

_BLOCK_COSTS = 1024  # characters: each one is some objects in memory
_TEXT_OF: dict[Any, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ReasoningDetails:
    """The blocks of one answer. A text comes in parts with one index, and its signature may come last, without text.

    Above `most` characters there are none: a server refuses those that lack something.

    Examples
    --------
    >>> details = ReasoningDetails(most=1 << 20)
    >>> details.add([{"type": "reasoning.text", "text": "I mu", "index": 0}])
    >>> details.add([{"type": "reasoning.text", "text": "st.", "index": 0, "signature": "Et8B"}])
    >>> details.take()
    ({'type': 'reasoning.text', 'index': 0, 'signature': 'Et8B', 'text': 'I must.'},)
    """

    def __init__(self, most: int) -> None:
        self._blocks: list[tuple[dict[str, Any], Pieces]] = []  # and their texts
        self._most, self._n_chars = most, 0

    def add(self, parts: Any) -> None:
        """Take in parts of blocks as a chunk has them."""
        for part in map(dict, map(fields_of, listed(plain(parts)))):
            kind = part.get("type")
            name = _TEXT_OF.get(kind, "") if isinstance(kind, str) else ""
            text = text_of(part.pop(name, "")) if name else ""
            block, written = self._block_of(part) if name else self._new_block()
            news = {key: value for key, value in part.items() if value is not None and block.get(key) != value}
            self._n_chars += len(text) + (len(dumps(news)) if news else 0)
            if self._n_chars > self._most:
                self._blocks.clear()
                return
            block |= news
            written.add(text)

    def _block_of(self, part: dict[str, Any]) -> tuple[dict[str, Any], Pieces]:
        """The block that a part of a text belongs to; those of several texts are not mixed."""
        place = part.get("type"), part.get("index")
        same = (entry for entry in self._blocks[-2:] if (entry[0].get("type"), entry[0].get("index")) == place)
        return next(same, None) or self._new_block()

    def _new_block(self) -> tuple[dict[str, Any], Pieces]:
        self._n_chars += _BLOCK_COSTS
        self._blocks.append(({}, Pieces(self._most)))
        return self._blocks[-1]

    def take(self) -> tuple[dict[str, Any], ...]:
        """The blocks so far; forgets them."""
        found = ((block, written.text) for block, written in self._blocks)
        blocks = tuple(block | ({_TEXT_OF[block["type"]]: text} if text else {}) for block, text in found)
        self._blocks.clear()
        self._n_chars = 0
        return blocks
