"""Finding markers in text, whole or as far as they have come.

A marker is a literal text. Those that are single tokens of a tokenizer are known in several spellings: their bars may
be full-width or ASCII, and the words in them may be joined by `▁`, `_` or a space.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["is_token", "marker_pattern", "normalize", "trie"]

_SPELLINGS = {"|": "[|｜]", "_": "[_▁ ]"}
_NORMAL = str.maketrans({"｜": "|", "▁": "_", " ": "_"})


def is_token(marker: str) -> bool:
    """Return whether a marker is written as a token of a tokenizer is."""
    return marker.startswith(("<|", "<｜", "</|", "</｜"))


def normalize(marker: str) -> str:
    """Return the spelling by which tables know a marker."""
    return marker.translate(_NORMAL) if is_token(marker) else marker


def trie(markers: Iterable[str], after: dict[str, str] | None = None) -> str:
    """Return a regular expression that finds any of the markers, or the beginning of one at the end of the text.

    `after` has look-behinds for markers that only count in some places, by their first character.
    """
    root: dict[str, dict] = {}  # type: ignore[type-arg]  # a tree of itself
    for marker in markers:
        node = root
        for number, char in enumerate(marker):
            spelling = _SPELLINGS.get(char) if is_token(marker) and number else None
            node = node.setdefault(spelling or re.escape(char), {})
        node[""] = {}
    return _alternatives(root, after or {})


def _alternatives(node: dict[str, dict], after: dict[str, str]) -> str:  # type: ignore[type-arg]  # as above
    branches = [step + after.get(step, "") + _rest(following) for step, following in node.items() if step]
    return "|".join(branches)


def _rest(node: dict[str, dict]) -> str:  # type: ignore[type-arg]  # as above
    if node.keys() == {""}:
        return ""
    inner = _alternatives(node, {})
    return f"(?:{inner}|\\Z)" if "" not in node else f"(?:{inner}|)"


def marker_pattern(*markers: str) -> tuple[re.Pattern[str], frozenset[str]]:
    """Return the pattern and the set of whole markers that `Parser.find` takes."""
    spelled = frozenset(map(normalize, markers))
    return re.compile(trie(spelled)), spelled
