"""Patterns of whole words, for spoken questions and for names of tools.

=============  ===============================================================
``word``       this word, in upper or lower case
``(a|b c)``    one of these
``[a]``        optional
``{a|b}``      any number of times, or none
``?``, ``*``   one word; up to six words
``#``          a number in digits: ``7``, ``7.30``, ``7th``, ``7pm``
``*.txt``      a word of a question with this ending
``^``, ``$``   beginning and end of the sentence, without polite phrases
=============  ===============================================================
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from stream.errors import StreamValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Phrases", "check_pattern", "fits", "name_phrases", "name_words", "phrases", "sentences"]

POLITE = (
    "please|kindly|hey|hi|hello|ok|okay|alright|um|uh|er|hm|well|so|now|then|and|but|also|just|maybe|perhaps|thanks",
    "thank you|good (morning|evening|night)|alexa|siri|google|computer|assistant|jarvis|olly|quickly",
    "(would|do) (you|somebody|someone) mind|(would|do) you mind|[would you] be so (kind|good) as to|are you able to",
    "(can|could|would|will) (you|somebody|someone|we|i)|you (can|could|may|should)|find out|do not forget to",
    "[i] [am] (want|wanting|need|needing|would like|would love|trying) (to (know|hear|see)|[you] to)|i would prefer",
    "do me a (favor|favour) [and]|go (ahead and|and)|(try|remember|able|help me) [to]|any idea|let me know",
    "i (think|guess|wonder|was wondering)|do you (know|think)|(tell|telling|remind|ask|help) me [of]",
)
"""Removed from the beginning of a sentence."""
POLITE_END = (
    "please|thanks|thank you|for me|right now|now|at the moment|currently|again",
    "if you can|if possible|would you|ok|okay",
)
"""Removed from the end of a sentence."""

LONGEST = 500
"""Characters of a question that are searched: a spoken request is short."""

BRACKETS = {"(": "(?:", ")": ")", "[": "(?:", "]": ")?", "{": "(?:", "}": ")*", "|": "|", "^": "^", "$": "$"}
GAPS = {"?": ".", "*": ".{0,6}"}
CLOSERS = {"(": ")", "[": "]", "{": "}"}
TOKEN = re.compile(r"[()\[\]{}|^$]|[^\s()\[\]{}|^$]+")
NUMBER = r"\d[\d.]*(?:st|nd|rd|th|am|pm|k|c|f)?"
OTHER, FIRST = "\ue000", 0xE001
SPELLED = str.maketrans({"’": "'", "-": " ", "%": " percent ", "°": " degrees "})
SHORT_FORMS = (
    (re.compile(r"\b(what|who|where|how)s\b"), r"\1 is"),
    (re.compile(r"\b(what|who|where|when|how|which|it|that|there|here|he|she)'s\b"), r"\1 is"),
    (re.compile(r"\b(what|who|how|where|you|we|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(i|you|we|they|it)'d\b"), r"\1 would"),
    (re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(\w+)n't\b"), r"\1 not"),
)
WORD = re.compile(r"(?<!\w)[~.]{0,2}/[\w./-]+|[\w']+(?:\.\w+)*")
SENTENCE_END = re.compile(r"[.?!;:,]+(?=\s|$)|\n+")
NAME_BREAK = re.compile(r"[_\-./:\s]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Phrases:
    """Compiled patterns; those that `check_pattern` rejects raise.

    Each known word becomes one character, and all other words share one. A regular expression then matches words at
    the cost of characters, also for lists of 200 words.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        read = [_tokens(pattern) for pattern in patterns]
        words = dict.fromkeys(token for tokens in read for token in tokens if token not in BRACKETS | GAPS)
        self._codes = {word: chr(code) for code, word in enumerate(words, FIRST)}
        self._shapes = [
            (re.compile(NUMBER if word == "#" else re.escape(word).replace(r"\*", ".*")), code)
            for word, code in self._codes.items()
            if word == "#" or "*" in word
        ]
        known = BRACKETS | GAPS | self._codes
        regex = "|".join("".join(known[token] for token in tokens) for tokens in read)
        self._compiled = re.compile(regex if read else "(?!)")

    def find(self, words: Sequence[str]) -> re.Match[str] | None:
        """The first match in a sentence, with positions in words."""
        return self._compiled.search("".join(self._codes.get(word) or self._unknown(word) for word in words))

    def _unknown(self, word: str) -> str:
        return next((code for shape, code in self._shapes if shape.fullmatch(word)), OTHER)


@lru_cache(maxsize=256)
def phrases(patterns: tuple[str, ...]) -> Phrases:
    """Patterns for `sentences`."""
    return Phrases(_plain(pattern) for pattern in patterns)


@lru_cache(maxsize=4096)
def fits(patterns: tuple[str, ...], name: str) -> bool:
    """Whether a pattern matches a whole name.

    >>> fits(("*_light_*",), "desk_light_on"), fits(("*_light_*",), "browser_highlight")
    (True, False)
    """
    return name_phrases(patterns).find(name_words(name)) is not None


@lru_cache(maxsize=256)
def name_phrases(patterns: tuple[str, ...]) -> Phrases:
    """Patterns for `name_words` that match whole names."""
    return Phrases(f"^ ({' '.join(name_words(pattern.replace('*', ' * ')))}) $" for pattern in patterns)


def name_words(name: str) -> list[str]:
    """The words of a name, split at ``_ - . / :`` and at capitals.

    >>> name_words("getDeviceState"), name_words("zwave.set_value")
    (['get', 'device', 'state'], ['zwave', 'set', 'value'])
    """
    return [word.lower() for word in NAME_BREAK.split(name) if word]


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence and clause of a text, without polite phrases at both ends.

    >>> sentences("Good morning! Could you please tell me what's on?")
    [['what', 'is', 'on']]
    """
    polite = phrases((f"^ {{{'|'.join(POLITE)}}}",)), phrases((f"{{{'|'.join(POLITE_END)}}} $",))
    found = []
    for part in SENTENCE_END.split(_plain(text[:LONGEST])):
        words = WORD.findall(part)
        for phrase in polite:
            if match := phrase.find(words):
                words = words[: match.start()] + words[match.end() :]
        if words:
            found.append(words)
    return found


def _plain(text: str) -> str:
    """Lower case, short forms written out, hyphens as spaces."""
    plain = text.lower().translate(SPELLED)
    for short, full in SHORT_FORMS:
        plain = short.sub(full, plain)
    return plain


def check_pattern(pattern: str) -> None:
    """Raise `StreamValueError` if a pattern is empty or its brackets do not match."""
    open_: list[str] = []
    tokens = TOKEN.findall(pattern)
    for token in tokens:
        if token in CLOSERS:
            open_.append(CLOSERS[token])
        elif token in CLOSERS.values() and (not open_ or open_.pop() != token):
            raise StreamValueError(f"pattern {pattern!r} has a {token!r} that closes nothing")
    if open_:
        raise StreamValueError(f"pattern {pattern!r} lacks a {open_[-1]!r}")
    if not set(tokens) - set("()[]{}|"):
        raise StreamValueError(f"pattern {pattern!r} is empty")


def _tokens(pattern: str) -> list[str]:
    check_pattern(pattern)
    if named := re.search("<[^>]*>?", pattern):
        raise StreamValueError(f"pattern {pattern!r} has {named[0]}; only the patterns of a file can name its [words]")
    return ["(", *TOKEN.findall(pattern), ")"]
