"""Where words end in text, also in scripts written without spaces between words."""

import re

__all__ = ["CLOSING", "MARKS", "PART", "UNSPACED", "WORD"]

_MOST = 8  # Characters of a word without punctuation, so that a phrase of 12 words is one long clause.

# Characters that may begin a word in the middle of a run: ideographs, kana, and letters of Thai, Lao, Myanmar and
# Khmer, without small kana, signs of repetition and length, and vowels that follow their consonant. Korean has spaces.
_LETTERS = (
    "\u3006\u3007\u3042\u3044\u3046\u3048\u304a-\u3062\u3064-\u3082\u3084\u3086\u3088-\u308d\u308f-\u3094"
    "\u30a2\u30a4\u30a6\u30a8\u30aa-\u30c2\u30c4-\u30e2\u30e4\u30e6\u30e8-\u30ed\u30ef-\u30f4\u30f7-\u30fa"
    "\uff66\uff71-\uff9d\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
    "\u0e01-\u0e2e\u0e40-\u0e44\u0e81-\u0eae\u0ec0-\u0ec4\u0edc-\u0edf\u1000-\u102a\u103f\u1780-\u17b3"
)
_OPENING = "「『（《〈【〔"
MARKS = "、。，．！？；：｡､၊။។៕"
CLOSING = "」』）》〉】〕”’｣\"')\\]"
# Opening marks, vowels written before their consonant, and signs that join two consonants.
_JOINING = rf"{_OPENING}“‘(\[\u0e40-\u0e44\u0ec0-\u0ec4\u1039\u17d2"

_BEGINS = f"(?=[{_LETTERS}{_OPENING}])"
_AFTER_MARK = (
    rf"(?:(?:(?<!\d)[{MARKS}]|[{MARKS}](?!\d))[{MARKS}{CLOSING}]*(?![{MARKS}{CLOSING}])|[,.;:!?…][{CLOSING}]*{_BEGINS})"
)

UNSPACED = re.compile(f"[{_LETTERS}{_OPENING}{MARKS}]")
"""A character at which a word may begin or end without white space."""

WORD = re.compile(
    rf"\S{{0,{_MOST - 1}}}?{_AFTER_MARK}|\S{{{_MOST},}}?(?:{_AFTER_MARK}|(?<![{_JOINING}]){_BEGINS}|(?!\S))|\S+"
)
"""A word: a run of characters without white space.

Between characters of scripts without spaces, a word ends after punctuation, or else after eight characters or a few
more: never before a combining mark, nor inside a word of a script with spaces. It depends on the text after it by one
character at most.
"""

PART = re.compile(rf"[{_LETTERS}{MARKS}]|[^\s{_LETTERS}{MARKS}]+")
"""The smallest part of text that a voice may mark as a word."""
