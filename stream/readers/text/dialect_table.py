"""The table of dialects, and the pattern that finds all their markers in one search.

A marker with many spellings, such as `<tool_call>`, has no row in `ROWS`: `_family` makes one by its shape (`tags`).
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache, partial
from itertools import pairwise

from stream.events import TextDelta
from stream.readers.text.dialect import Dialect, Head
from stream.readers.text.dialects import blocks, harmony, headed, json_calls, pythonic, reasoning, tokens, xml_calls
from stream.readers.text.patterns import NAME, normalize, trie
from stream.readers.text.tags import (
    BLOCKS,
    FAMILY,
    PAIRS,
    PARTS,
    SEPARATOR,
    begun_tag,
    end_of_thought,
    ends_thought,
    pair_of,
    tag_of,
)

__all__ = ["ROWS", "Table", "table_for"]

ROWS: tuple[Dialect, ...] = tuple(
    row
    for module in (headed, pythonic, harmony, json_calls, xml_calls, tokens, blocks, reasoning)
    for row in module.ROWS
)


@lru_cache(maxsize=256)
def _family(marker: str) -> Dialect | None:
    """Return the row of a tag that is known by its shape."""
    row = partial(Dialect, name="family", markers=(marker,), tested=True)
    if marker[0] == "]":
        return row(read=xml_calls.read_separated) if SEPARATOR.whole.fullmatch(marker) else None
    if pair := pair_of(marker):
        opens, _, closer = pair
        if not opens:
            return row(read=reasoning.drop_end if ends_thought(marker) else blocks.drop_after_call, calls=False)
        if end_of_thought(marker):
            return Dialect(name="family", markers=(marker,), read=reasoning.read_block, closers=(closer,), calls=False)
        begun = tokens.BEGUN if "begin_" in marker else tokens.PAIRED
        return row(heads=(*json_calls.JSON, begun), closers=(closer,))
    if marker.startswith(("<co:", "</co:")):
        return row(read=blocks.drop, calls=False) if marker.endswith(">") else None
    tag = tag_of(marker)
    if tag is None:
        return None
    word = tag.word.partition("_")[0]
    if tag.closing:
        read = blocks.drop_part if tag.word in PARTS else blocks.drop_stray
        return row(read=reasoning.drop_end if word.startswith("think") else read, calls=False)
    if word.startswith("think"):
        return row(read=reasoning.read_block, closers=(tag.closer,), calls=False)
    if tag.word == "tool_response":
        return row(read=blocks.drop_result, closers=(tag.closer,), calls=False)
    if tag.word in PARTS:
        return row(read=xml_calls.read_bare_tags, closers=(tag.closer,) if tag.word == "function" else ())
    if marker[-1].isspace():
        return row(heads=(xml_calls.WITH_ATTRIBUTES,), closers=(tag.closer,))
    heads: tuple[Head, ...] = (
        *(json_calls.ALIAS if marker == "<function_call>" else json_calls.JSON),
        xml_calls.INSIDE,
        xml_calls.FUNCTIONS,
    )
    if not tag.word.endswith("s"):
        heads += (json_calls.NAMED, *xml_calls.KEYED, pythonic.PARENTHESES, harmony.HEADER)
    elif marker == "<function_calls>":
        heads += (pythonic.LINES,)
    return row(heads=heads, closers=(tag.closer,), wraps=True)


_NAME = re.compile(NAME)
_WORDS = re.compile(r"[^\s>*+.)\d-]")
_LONGEST_TOKEN = 24
_MOST_TOKENS = 2048
_SPACE_TO_END = re.compile(r"\s*\Z")
_WEAK_OBJECT = r'\{(?=\s{0,32}(?:"|\Z))'
_WEAK_BRACKET = r"\[(?=\s{0,32}(?:\{|[^\W\d]|\Z))"


class Table:
    """The rows, by marker, with the pattern that finds every marker in one search, and short texts that have none.

    Models write the same tokens over and over: to look one up costs a quarter of a search and a new event.
    """

    def __init__(self, declared: frozenset[str] | None, *, glued: bool = False) -> None:
        self.declared = declared  # names of tools; None if they are not known
        self.plain: dict[str, TextDelta] = {}  # the events of short texts that have no marker
        # Those that have no line end or backtick and are neither blank nor the mark of a quote or a list. Of a run of
        # them the parser needs to note only the last: each leaves the line in the same state, whatever came before.
        self.known: dict[str, TextDelta] = {}
        self._rows: dict[str, Dialect] = {}
        for row in (*ROWS, *((harmony.GLUED,) if glued else ())):
            self._rows.update(dict.fromkeys(row.markers, row))
        self.closers = [closer for row in ROWS for closer in row.closers if len(closer) > 1]
        for closer in (*self.closers, *blocks.RESULTS.values(), "[/TOOL_CALLS]", "</function_invocation>"):
            stray = Dialect(name="stray", markers=(closer,), read=blocks.drop_stray, calls=False)
            self._rows.setdefault(closer, stray)
        for closer in reasoning.BLOCKS.values():
            self._rows.setdefault(closer, Dialect(name="end", markers=(closer,), read=reasoning.drop_end, calls=False))
        strong: list[str | tuple[str, ...]] = [
            *(marker for marker in self._rows if marker not in "{["),
            *FAMILY,
            *PAIRS,
            *blocks.CITATIONS,
        ]
        weak = f"{_WEAK_OBJECT}|{_WEAK_BRACKET}"
        names = sorted(name for name in declared or () if name not in self._rows and _NAME.fullmatch(name))
        typed = [f"{{type:{name}}}" for name in names]
        names += [f"{library}.{name}" for name in names for library in ("functions", "default_api")]
        self._rows.update(dict.fromkeys(names, pythonic.DECLARED) | dict.fromkeys(typed, pythonic.TYPED))
        if names:
            self._rows[pythonic.CODE_LINE.markers[0]] = pythonic.CODE_LINE
            names += [*typed, pythonic.CODE_LINE.markers[0]]
        # Whole markers that are also the beginning of another one.
        self._extendable = {short for short, after in pairwise(sorted(self._rows)) if after.startswith(short)}
        # Most letters of a text stand inside a word, where no name begins: the pattern looks behind.
        in_word = {word[0]: r"\w" for word in strong if word[0][0].isalpha() and word not in harmony.GLUED.markers}
        in_word |= {re.escape(marker[0]): r"[^\n]" for row in ROWS if row.weak and row.fresh and not row.fence
                    for marker in row.markers}  # fmt: skip
        in_word["\\-"] = r"\S"
        at_word = {re.escape(name[0]): r"\S" for name in names}
        # They find a marker, or the beginning of one at the end of the text; `at_start` needs no space before a name.
        self.pattern = re.compile(f"{trie(strong, in_word)}|{weak}" + (f"|{trie(names, at_word)}" if names else ""))
        self.at_start = re.compile(f"{trie(strong)}|{weak}" + (f"|{trie(names)}" if names else ""))
        self.search = self.pattern.search

    @cached_property
    def recovery(self) -> re.Pattern[str]:
        """Finds a marker or the end of a line; compiled for the first call that cannot be read."""
        return re.compile(f"\n|{self.pattern.pattern}")

    @cached_property
    def glued(self) -> Table:
        """The table for answers that have lost the tokens of their message format."""
        return Table(self.declared, glued=True)

    def delta_of(self, text: str) -> TextDelta | None:
        """Return the event of a text; None if it is empty, or has a marker or the beginning of one."""
        if not text or self.search(text):
            return None
        delta = TextDelta(text)
        if len(text) <= _LONGEST_TOKEN:
            if len(self.plain) >= _MOST_TOKENS:
                self.plain.clear()
                self.known.clear()
            self.plain[text] = delta
            if "`" not in text and _WORDS.search(text) and "\n" not in text:
                self.known[text] = delta
        return delta

    def row_at(self, match: re.Match[str]) -> Dialect | None:
        """Return the row of the marker that was found; None if it is, or may be, only the beginning of one."""
        marker, end = normalize(match.group()), match.end()
        if end == len(match.string) and marker in self._extendable:
            return None
        if marker in "{[" and _SPACE_TO_END.match(match.string, end):
            return None
        # The space that ends an `<invoke ` is not part of a suffix.
        return self._rows.get(marker) or _family(marker[:-1] + match.group()[-1])

    def may_grow(self, match: re.Match[str]) -> bool:
        """Return whether what was found, and has no row, may still become a marker."""
        return match.end() == len(match.string) or match.group() in "{["

    def begins_call(self, half: str, *, fresh: bool) -> bool:
        """Return whether the marker of a call begins so."""
        half = normalize(half)
        tag = begun_tag(half)
        if tag and not tag.closing and any(word.startswith(tag.word) for word in (*BLOCKS, *PARTS[:3])):
            return True
        rows = [row for row in ROWS if row.calls and row.stands_out(fresh=fresh)]
        return any(marker.startswith(half) for row in rows for marker in row.markers)

    def begins_marker(self, half: str, *, fresh: bool) -> bool:
        """Return whether a marker begins so that is not spoken: of a call, a token, a closing marker or a block."""
        if self.begins_call(half, fresh=fresh):
            return True
        half = normalize(half)
        if half.startswith(("<|", "</|")):  # a bar decorates no word of people
            return True
        return (fresh or half.startswith("</")) and (
            begun_tag(half) is not None
            or any(marker.startswith(half) for marker, row in self._rows.items() if not (row.calls or row.weak))
        )


table_for = lru_cache(maxsize=64)(Table)
"""The table for a set of declared tools."""
