"""The built-in tiers' classifier: weights of words, pairs of words and groups of letters, learned from questions.

`bench/learn_tiers.py` makes the weights; README.md beside this file says from what, and how often it is right.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from zlib import crc32

from stream.services.wording import WORD, plain

__all__ = ["BUCKETS", "GENERAL", "LEARNED", "buckets", "learned_tier", "sentence_words"]

GENERAL = "general"
"""The tier of a question that belongs to no other."""
LEARNED = ("device", "datetime", "files")
"""The tiers with weights; where their sums are all 0 or less, a sentence is general."""
BUCKETS = 2**15
"""Rows of weights. A feature's row is its hash, so the file needs no list of words."""
LETTERS = (3, 4, 5)
SENTENCE = re.compile(r"[.?!;]+(?=\s|$)|\n+")
ALIKE = (
    (
        "<number>",
        re.compile(r"\d[\d.]*(st|nd|rd|th)?|(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"),
    ),
    (
        "<number>",
        re.compile(r"(thir|four|fif|six|seven|eigh|nine)teen|(twen|thir|for|fif|six|seven|eigh|nine)ty|hundred"),
    ),
    ("<weekday>", re.compile(r"(mon|tues|wednes|thurs|fri|satur|sun)day")),
    ("<month>", re.compile(r"january|february|march|april|june|july|august|(septem|octo|novem|decem)ber")),
    ("<path>", re.compile(r".*/.*")),
    ("<file>", re.compile(r"[\w'.]+\.[a-z]\w{0,4}")),
)
"""Words that count as one word in pairs: all weekdays, all names of files."""


def learned_tier(question: str) -> str:
    """The tier of the sentence that belongs to one most clearly.

    >>> learned_tier("Who invented the lamp?"), learned_tier("Who invented the lamp? And please turn mine off.")
    ('general', 'device')
    """
    weights, best = _weights(), (0.0, GENERAL)
    for words in sentence_words(question):
        rows = buckets(words)
        sums = (sum(weights[len(LEARNED) * row + column] for row in rows) for column in range(len(LEARNED)))
        best = max(best, *((total / sqrt(len(rows)), tier) for total, tier in zip(sums, LEARNED, strict=True)))
    return best[1]


def sentence_words(question: str) -> list[list[str]]:
    """The words of each sentence."""
    return [words for part in SENTENCE.split(plain(question)) if (words := WORD.findall(part))]


def buckets(words: list[str]) -> set[int]:
    """The rows of a sentence's weights."""
    return {crc32(feature.encode(errors="replace")) % BUCKETS for feature in _features(words)}


def _features(words: list[str]) -> Iterator[str]:
    kinds = [_kind(word) for word in words]
    ends = ["^", *kinds, "$"]
    yield from kinds
    yield from (f"{one} {next_one}" for one, next_one in pairwise(ends))
    yield from (f"{one} _ {later}" for one, later in zip(ends, ends[2:], strict=False))
    for word in (f"<{word}>" for word in words):
        yield from (f"*{word[at : at + n]}" for n in LETTERS for at in range(len(word) - n + 1))


def _kind(word: str) -> str:
    return next((kind for kind, words in ALIKE if words.fullmatch(word)), word)


@cache
def _weights() -> memoryview:
    """One signed byte for each row and tier."""
    return memoryview(files("stream.services").joinpath("learned.int8").read_bytes()).cast("b")
