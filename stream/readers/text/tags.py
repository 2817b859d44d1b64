"""Markers that are known by their shape: tags with a known word, whatever decorates it, and tokens in pairs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from stream.readers.text.patterns import Part, Run, Shape, normalize

__all__ = [
    "AFTER",
    "ANY",
    "BEFORE",
    "BLOCKS",
    "FAMILY",
    "PAIRS",
    "PAIR_ENDS",
    "PARTS",
    "PREFIX",
    "SEPARATOR",
    "SUFFIX",
    "THOUGHTS",
    "THOUGHT_ENDS",
    "Tag",
    "begun_tag",
    "end_of_thought",
    "ends_thought",
    "pair_of",
    "tag_of",
    "words",
]

_NAME = r"[\w.\-]{1,16}"
_BARS = "[|｜‖]{1,2}"
PREFIX = Run(
    rf"(?:{_NAME}[:|｜]|(?:(?!_)[\w.\-]){{1,16}}_|{_BARS}{_NAME}{_BARS}[ ▁_]?)?",
    rf"(?:{_NAME}[:|｜]?|{_BARS}(?:{_NAME}(?:{_BARS}[ ▁_]?)?)?)",
)
SUFFIX = Run(rf"(?::{_NAME})?", r":[\w.\-]{0,16}")
_SIGNS = r"[<>\[\]{}|]{1,3}"
_OTHER = r"(?![<>\[\]{}|]{0,2}<(?:[|/]|[A-Za-z]))"  # a token or a tag behind brackets is no separator
SEPARATOR_RUN = Run(
    rf"{_OTHER}{_SIGNS}[A-Za-z0-9_\-]{{1,16}}{_SIGNS}\[\s{{0,8}}",
    rf"{_OTHER}{_SIGNS}(?:[A-Za-z0-9_\-]{{1,16}}(?:{_SIGNS}\s{{0,8}})?)?",
)
SEPARATOR = Shape("]", SEPARATOR_RUN, "<")
BLOCKS = ("tool_call", "tool_calls", "function_call", "function_calls")
PARTS = ("invoke", "parameter", "function", "arg_key", "arg_value", "arg_type", "tool_sep")
_BEHIND_BARS = Run(r"(?:(?<=[|｜‖])|(?<=[|｜‖][ ▁_]))")
_KIND = Run(r"[^\W_]{1,16}")
_THOUGHTS = (("think",), ("thinking",), ("think_", _KIND))
_AROUND = (*((word,) for word in (*BLOCKS, "tool_response")), *_THOUGHTS, (_BEHIND_BARS, "calls"))
THOUGHTS = tuple(("<", PREFIX, *word, SUFFIX, ">") for word in _THOUGHTS)
THOUGHT_ENDS = tuple(("</", PREFIX, *word, SUFFIX, ">") for word in _THOUGHTS)
FAMILY: tuple[tuple[str, ...], ...] = (
    ("]", SEPARATOR_RUN, "<"),
    *(("<", PREFIX, *word, SUFFIX, ">") for word in _AROUND),
    *(("<", PREFIX, word, SUFFIX, Run(r"\s")) for word in ("invoke", "tool_call", "function_call")),
    ("<", PREFIX, "function="),
    *(("</", PREFIX, *word, SUFFIX, ">") for word in (*_AROUND, *((part,) for part in PARTS))),
)
_WORDS = (*BLOCKS, "calls", "think", "thinking", "tool_response", *PARTS)
_WORD = rf"{'|'.join(_WORDS)}|think_[^\W_]{{1,16}}".replace("|calls|", rf"|{_BEHIND_BARS}calls|")
_TAG = re.compile(rf"<(/?)({PREFIX})({_WORD})({SUFFIX})(?:>|(?<=function)=|(?<!function)\s)")
_BEGUN = [re.compile(rf"<(/?)({prefix})([a-z_]*)({SUFFIX}:?)") for prefix in ("", PREFIX)]
_LEAST = 4  # letters of a known word that tell half a decorated tag from text


# Tokens in pairs: `<|X:start|>` and `<|X:end|>`, `<|ns:begin_X:ns|>` and `<|ns:end_X:ns|>`.
_OPENS = Run(r"[\w.\-]{0,16}(?:call|think(?:ing)?)", r"[\w.\-]{1,25}")
ANY = Run(r"[\w.\-]{1,25}")
BEFORE = Run(rf"(?:{_NAME}:)?", rf"{_NAME}:?")
AFTER = Run(rf"(?::{_NAME})?", rf":(?:{_NAME})?")
_BEGUN_WORDS = Run(r"(?:tool_calls?|tool_requests?|function_calls?|think(?:ing)?)", r"[a-z_]{1,16}")
PAIR_ENDS: tuple[tuple[str, ...], ...] = (("<|", ANY, ":end|>"), ("<|", BEFORE, "end_", ANY, AFTER, "|>"))
PAIRS: tuple[tuple[str, ...], ...] = (
    ("<|", _OPENS, ":start|>"),
    ("<|", _OPENS, ":begin|>"),
    ("<|", BEFORE, "begin_", _BEGUN_WORDS, AFTER, "|>"),
    *PAIR_ENDS,
)
_PAIR = re.compile(
    rf"<\|(?:(?P<word>[\w.\-]{{1,25}}):(?P<kind>start|begin|end)"
    rf"|(?P<before>(?:{_NAME}:)?)(?P<is>begin|end)_(?P<what>[\w.\-]{{1,25}}?)(?P<after>(?::{_NAME})?))\|>"
)


def pair_of(marker: str) -> tuple[bool, str, str] | None:
    """Return whether a normalized token of a pair opens it, what the pair is of, and its closing token."""
    match = _PAIR.fullmatch(marker)
    if not match:
        return None
    if match["word"]:
        return match["kind"] != "end", match["word"], f"<|{match['word']}:end|>"
    return match["is"] == "begin", match["what"], f"<|{match['before']}end_{match['what']}{match['after']}|>"


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
    """Return the tag, normalized, that a marker begins with."""
    match = _TAG.match(marker)
    return Tag(match[1], normalize(f"<{match[2]}")[1:], match[3], match[4]) if match else None


def begun_tag(half: str, least: int = _LEAST) -> Tag | None:
    """Return the tag that may begin so, if enough of it is there; its word is what the text has of it.

    A decorated tag needs `least` letters of its word.
    """
    for number, begun in enumerate(_BEGUN):
        match = begun.fullmatch(half)
        if match and any(word.startswith(match[3]) for word in _WORDS):
            return Tag(*match.groups()) if not number or len(match[3]) >= least else None
    return None


def ends_thought(marker: str) -> bool:
    """Return whether a normalized marker is the closing one of a block of reasoning, by its shape."""
    pair, tag = pair_of(marker), tag_of(marker)
    if pair:
        return not pair[0] and pair[1].endswith(("think", "thinking"))
    return tag is not None and tag.closing != "" and tag.word.startswith("think")


def end_of_thought(marker: str) -> str | None:
    """Return the closing marker of the block of reasoning that a normalized marker opens by its shape, if it does."""
    pair, tag = pair_of(marker), tag_of(marker)
    if pair:
        return pair[2] if pair[0] and pair[1].endswith(("think", "thinking")) else None
    return tag.closer if tag and not tag.closing and tag.word.startswith("think") else None


def words(*tags: str) -> tuple[tuple[Part, ...], ...]:
    """Return the alternatives of a shape for tags with these words, from the word on."""
    return tuple((tag, SUFFIX, ">") for tag in tags)
