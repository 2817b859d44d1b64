"""Patterns to look for: markers, whole or as far as they have come, and the shapes of the text after them.

A marker is a literal text, or a tuple of parts for a family of them. Those that are single tokens of a tokenizer are
known in several spellings: their bars may be full-width or ASCII, and the words in them may be joined by `▁`, `_` or a
space.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Self, TypeAlias

__all__ = [
    "FENCE",
    "NAME",
    "SPACE",
    "Part",
    "Run",
    "Shape",
    "is_token",
    "marker_pattern",
    "normalize",
    "shape_of",
    "trie",
]

_SPELLINGS = {"|": "[|｜]", "_": "[_▁ ]"}
_LEFT_TOKEN = re.compile(r"<.*[|｜]>", re.DOTALL)  # `<tool_call|>`
_NORMAL = str.maketrans({"｜": "|", "▁": "_", " ": "_"})


def is_token(marker: str) -> bool:
    """Return whether a marker is written as a token of a tokenizer is."""
    return marker.startswith(("<|", "<｜", "</|", "</｜"))


def normalize(marker: str) -> str:
    """Return the spelling by which tables know a marker."""
    return marker.translate(_NORMAL) if is_token(marker) or _LEFT_TOKEN.fullmatch(marker) else marker


def trie(markers: Iterable[str | tuple[str, ...]], after: dict[str, str] | None = None) -> str:
    """Return a regular expression that finds any of the markers, or the beginning of one at the end of the text.

    `after` has what must not stand before markers that only count in some places, by their first character.
    """
    root: dict[str, dict] = {}  # type: ignore[type-arg]  # a tree of itself
    for marker in markers:
        node = root
        for part in (marker,) if isinstance(marker, str) else marker:
            if isinstance(part, Run):
                if part.begun != part:
                    node[f"{part.begun}\\Z"] = {"": {}}
                node = node.setdefault(part, {})
            else:
                for step in _steps(part):
                    node = node.setdefault(step, {})
        node[""] = {}
    return _alternatives(root, after or {})


def _steps(literal: str) -> list[str]:
    """Return a pattern for each character."""
    spelled = is_token(literal) or (literal[:1] in ("<", ":") and literal.endswith("|>"))
    return [(number and spelled and _SPELLINGS.get(char)) or re.escape(char) for number, char in enumerate(literal)]


def _alternatives(node: dict[str, dict], after: dict[str, str]) -> str:  # type: ignore[type-arg]  # as above
    # First the spellings that are known letter by letter, last those that are only begun at the end of the text.
    steps = sorted((step for step in node if step), key=lambda step: (step.endswith("\\Z"), isinstance(step, Run)))
    return "|".join(step + _rest(node[step], f"{after[step]}{step}" if step in after else "") for step in steps)


def _rest(node: dict[str, dict], behind: str = "") -> str:  # type: ignore[type-arg]  # as above
    """Return what follows a step; to look behind only where one more character fits costs half of the time."""
    not_behind = f"(?<!{behind})" if behind else ""
    if node.keys() == {""}:
        return not_behind
    if behind and "" not in node:
        inner = "|".join(f"{step}(?<!{behind}{step}){_rest(following)}" for step, following in node.items())
    else:
        inner = _alternatives(node, {})
    return f"(?:{inner}|{not_behind}\\Z)" if "" not in node else f"{not_behind}(?:{inner}|)"


@lru_cache(maxsize=256)
def marker_pattern(*markers: str) -> tuple[re.Pattern[str], frozenset[str]]:
    """Return the pattern and the set of whole markers that `Parser.find` takes."""
    spelled = frozenset(map(normalize, markers))
    return re.compile(trie(spelled)), spelled


class Run(str):
    """A regular expression, as part of a shape; `begun` matches each beginning of it that is not empty."""

    __slots__ = ("begun",)
    begun: str

    def __new__(cls, whole: str, begun: str = "") -> Self:
        run = super().__new__(cls, whole)
        run.begun = begun or whole
        return run


# A literal text, a run, or alternatives, each of them a list of parts; alternatives stand last.
Part: TypeAlias = "str | Run | tuple[Sequence[Part], ...]"

# White space before something that decides; more than this much white space decides against it.
SPACE = Run(r"\s{0,32}")
NAME = Run(r"[^\W\d][\w.\-/:]{0,63}")
# The line that opens a code fence around the body of a call.
FENCE = (Run(r"(?:`{3,8}|~{3,8})", r"(?:`{1,8}|~{1,8})"), Run(r"[\w\-]{0,16}"), SPACE)


class Shape:
    """A text that must follow a marker: `whole` matches it, `begun` the whole rest of a text that may become it.

    Python's regular expressions do not tell a text that fails from one that is only too short: so there are two. Each
    run is a group of `whole`.
    """

    __slots__ = ("begun", "whole")

    def __init__(self, *parts: Part) -> None:
        self.whole = re.compile(_whole(parts))
        self.begun = re.compile(_begun(parts))


@lru_cache(maxsize=256)
def shape_of(*parts: Part) -> Shape:
    """Return a shape that was made before, if it was."""
    return Shape(*parts)


def _whole(parts: Sequence[Part]) -> str:
    pattern = ""
    for part in parts:
        if isinstance(part, tuple):
            pattern += "(?:" + "|".join(map(_whole, part)) + ")"
        else:
            pattern += f"({part})" if isinstance(part, Run) else "".join(_steps(part))
    return pattern


def _begun(parts: Sequence[Part]) -> str:
    if not parts:
        return ""
    head, rest = parts[0], _begun(parts[1:])
    if isinstance(head, tuple):
        return "(?:" + "|".join(map(_begun, head)) + ")"
    if isinstance(head, Run):
        return f"(?:{head}{rest}" + (f"|{head.begun})?" if head.begun != head else ")?")
    pattern = rest
    for step in reversed(_steps(head)):
        pattern = f"(?:{step}{pattern})?"
    return pattern
