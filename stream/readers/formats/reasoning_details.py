"""OpenRouter's blocks of thoughts, which it wants back with the answer, as it wrote them."""

from typing import Any

from stream.readers.calls.values import fields_of, listed, plain
from stream.readers.options import MOST_KEPT

__all__ = ["ReasoningDetails"]

_TEXT_OF: dict[Any, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ReasoningDetails:
    """The blocks of one answer. A text comes in parts with one index, and its signature may come last, without text.

    Examples
    --------
    >>> details = ReasoningDetails()
    >>> details.add([{"type": "reasoning.text", "text": "I mu", "index": 0}])
    >>> details.add([{"type": "reasoning.text", "text": "st.", "index": 0, "signature": "Et8B"}])
    >>> details.take()
    ({'type': 'reasoning.text', 'text': 'I must.', 'index': 0, 'signature': 'Et8B'},)
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[dict[str, Any], list[str]]] = []  # and their texts

    def add(self, parts: Any) -> None:
        """Take in parts of blocks as a chunk has them."""
        for part in map(fields_of, listed(plain(parts))):
            kind, index = part.get("type"), part.get("index")
            name = _TEXT_OF.get(kind) if isinstance(kind, str) else None
            known = [entry for entry in self._blocks[-2:] if entry[0].get("type") == kind] if name else []
            block, texts = next((entry for entry in known if entry[0].get("index") == index), ({}, []))
            if not block:
                if len(self._blocks) == MOST_KEPT:
                    return
                self._blocks.append((block, texts))
            block.update({key: value for key, value in part.items() if value is not None or key not in block})
            if name and isinstance(part.get(name), str):
                texts.append(part[name])

    def take(self) -> tuple[dict[str, Any], ...]:
        """The blocks so far; forgets them."""
        blocks = [block | ({_TEXT_OF[block["type"]]: "".join(texts)} if texts else {}) for block, texts in self._blocks]
        self._blocks.clear()
        return tuple(blocks)
