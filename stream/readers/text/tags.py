"""Tags that are known by their shape: a known word, and whatever namespace, word, bars or suffix decorate it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from stream.readers.text.patterns import Part, Run

__all__ = ["BLOCKS", "FAMILY", "PARTS", "PREFIX", "SUFFIX", "THOUGHT_ENDS", "Tag", "begun_tag", "tag_of", "words"]

_NAME = r"[\w.\-]{1,16}"
PREFIX = Run(
    rf"(?:{_NAME}[:|｜]|(?:(?!_)[\w.\-]){{1,16}}_|[|｜]{_NAME}[|｜][ ▁_]?)?",
    rf"(?:{_NAME}[:|｜]?|[|｜](?:{_NAME}(?:[|｜][ ▁_]?)?)?)",
)
SUFFIX = Run(rf"(?::{_NAME})?", r":[\w.\-]{0,16}")
BLOCKS = ("tool_call", "tool_calls", "function_call", "function_calls")
PARTS = ("invoke", "parameter", "function", "arg_key", "arg_value", "arg_type", "tool_sep")
_BEHIND_BARS = Run(r"(?:(?<=[|｜])|(?<=[|｜][ ▁_]))")
_KIND = Run("[A-Za-z]{1,16}")
_THOUGHTS = (("think",), ("thinking",), ("think_", _KIND))
_AROUND = (*((word,) for word in (*BLOCKS, "tool_response")), *_THOUGHTS, (_BEHIND_BARS, "calls"))
THOUGHT_ENDS = tuple(("</", PREFIX, *word, SUFFIX, ">") for word in _THOUGHTS)
FAMILY: tuple[tuple[str, ...], ...] = (
    *(("<", PREFIX, *word, SUFFIX, ">") for word in _AROUND),
    ("<", PREFIX, "invoke", SUFFIX, Run(r"\s")),
    ("<", PREFIX, "function="),
    *(("</", PREFIX, *word, SUFFIX, ">") for word in (*_AROUND, *((part,) for part in PARTS))),
)
_WORDS = (*BLOCKS, "calls", "think", "thinking", "tool_response", *PARTS)
_WORD = rf"{'|'.join(_WORDS)}|think_[A-Za-z]{{1,16}}".replace("|calls|", r"|(?:(?<=\|)|(?<=\|_))calls|")
_TAG = re.compile(rf"<(/?)({PREFIX})({_WORD})({SUFFIX})(?:[>\s]|(?<=function)=|(?:(?<=invoke)|(?<=parameter))_)")
_BEGUN = [re.compile(rf"<(/?)({prefix})([a-z_]*)({SUFFIX}:?)") for prefix in ("", PREFIX)]
_LEAST = 4  # letters of a known word that tell half a decorated tag from text


class Tag(NamedTuple):
    """A tag, by what decorates its word."""

    closing: str  # "/" or ""
    prefix: str
    word: str
    suffix: str

    @property
    def closer(self) -> str:
        return f"</{self.prefix}{self.word}{self.suffix}>"

    def holds(self, part: Tag) -> bool:
        """Return whether a tag in this one's block may be decorated so: as this one, or not at all."""
        return part[1::2] in (self[1::2], ("", ""))


@lru_cache(maxsize=256)
def tag_of(marker: str) -> Tag | None:
    """Return the tag that a normalized marker begins with."""
    match = _TAG.match(marker)
    return Tag(*match.groups()) if match else None


def begun_tag(half: str) -> Tag | None:
    """Return the tag that may begin so, if enough of it is there; its word is what the text has of it."""
    for number, begun in enumerate(_BEGUN):
        match = begun.fullmatch(half)
        if match and any(word.startswith(match[3]) for word in _WORDS):
            return Tag(*match.groups()) if not number or len(match[3]) >= _LEAST else None
    return None


def words(*tags: str) -> tuple[list[Part], ...]:
    """Return the alternatives of a shape for tags with these words, from the word on."""
    return tuple([tag, SUFFIX, ">"] for tag in tags)
