"""The text that must follow a marker: short patterns that also know whether they may still be met.

Python's regular expressions do not tell a text that fails from one that is only too short, so each shape is compiled
twice: as it is, and as the set of all its beginnings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["IDENTIFIER", "NAME", "SPACE", "Part", "Run", "Shape"]


class Run(str):
    """A regular expression, as part of a shape, whose every beginning matches it or is empty."""

    __slots__ = ()


# A literal text, a run, or alternatives, each of them a list of parts; alternatives stand last.
Part: TypeAlias = "str | Run | tuple[Sequence[Part], ...]"

# White space before something that decides; more than this much white space decides against it.
SPACE = Run(r"\s{0,32}")
NAME = Run(r"[^\W\d][\w.\-/:]{0,63}")
IDENTIFIER = Run(r"[^\W\d]\w{0,63}")


class Shape:
    """A pattern to look ahead for: literal texts, runs and, last, alternatives.

    Attributes
    ----------
    whole : matches when the shape is there; each run is a group.
    begun : matches the whole rest of a text that may become the shape.

    Examples
    --------
    >>> shape = Shape("{", SPACE, '"')
    >>> bool(shape.whole.match('{ "a')), bool(shape.begun.fullmatch("{ ")), bool(shape.begun.fullmatch("{ a"))
    (True, True, False)
    """

    __slots__ = ("begun", "whole")

    def __init__(self, *parts: Part) -> None:
        self.whole = re.compile(_whole(list(parts)))
        self.begun = re.compile(_begun(list(parts)))


def _whole(parts: Sequence[Part]) -> str:
    pattern = ""
    for part in parts:
        if isinstance(part, tuple):
            pattern += "(?:" + "|".join(_whole(choice) for choice in part) + ")"
        else:
            pattern += f"({part})" if isinstance(part, Run) else re.escape(part)
    return pattern


def _begun(parts: Sequence[Part]) -> str:
    if not parts:
        return ""
    head, rest = parts[0], _begun(parts[1:])
    if isinstance(head, tuple):
        return "(?:" + "|".join(_begun(choice) for choice in head) + ")"
    if isinstance(head, Run):
        return f"(?:{head}{rest})?"
    pattern = rest
    for char in reversed(head):
        pattern = f"(?:{re.escape(char)}{pattern})?"
    return pattern
