"""Blocks of reasoning, and the calls in them: speculative, unless nothing follows."""

from __future__ import annotations

import logging
import re
from collections.abc import Container

from stream.events import CallStatus
from stream.readers.text.dialect import Call, CutOff, Dialect, NotACall, Reading, dropped_if
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import Run, Shape, is_token, marker_pattern, normalize, trie
from stream.readers.text.tags import PAIR_ENDS, PAIRS, THOUGHT_ENDS, THOUGHTS, end_of_thought, ends_thought

__all__ = ["ANY_END", "ANY_MARKER", "BLOCKS", "ENDS", "ROWS", "TITLE", "drop_end", "end_of_block", "read_block",
           "reasoning_block", "template_block", "warn_of_no_end"]  # fmt: skip

logger = logging.getLogger(__name__)

# Opening and closing markers. The first three also occur in prose, so they count at the start of a line only.
BLOCKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>": "<channel|>",
    "◁think▷": "◁/think▷",
    "<thought>": "</thought>",
    "<Thought>": "</Thought>",
    "<reason>": "</reason>",
    "<|think|>": "<|end|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "[unused16]": "[unused17]",
    "<ctrl94>": "<ctrl95>",
}
_FIRST = frozenset({"<thought>", "<Thought>", "<reason>", "[unused16]"})  # only first, or after a call or block
_IN_PROSE = frozenset({"<think>", "<thinking>", "<reasoning>", "◁think▷"}) | _FIRST
_LINE_END = Shape(Run(r"\r?"), "\n")
_VISIBLE = Shape(Run(r"\S"))
TITLE = Shape("thought", Run(r"\r?"), "\n")
_TEMPLATE_ENDS = ("[BEGIN FINAL RESPONSE]", "<|close|>think<|sep|>")
_ANY_ENDS: tuple[str | tuple[str, ...], ...] = (*BLOCKS.values(), *THOUGHT_ENDS, *PAIR_ENDS, *_TEMPLATE_ENDS)
ANY_END = re.compile(trie(_ANY_ENDS))  # finds others, too, which are not in `ENDS`
ANY_MARKER = re.compile(trie((*BLOCKS, *THOUGHTS, *PAIRS, *_ANY_ENDS)))
_MOST_RAW = 1 << 16  # characters of reasoning that wait for what becomes of the calls in them
_MOST_SPOKEN = 64  # closing markers
_LEAST_OF_A_CALL = 256  # bytes, about


def end_of_block(marker: str) -> str | None:
    """Return the closing marker of the block that a normalized marker opens; None if it opens none."""
    return BLOCKS.get(marker) or end_of_thought(marker)


def read_block(parser: Parser, row: Dialect, size: int) -> Reading[None]:
    """Read a block of reasoning to its closing marker."""
    line = parser.line
    opener, first = normalize(parser.take(size)), line.fresh and not line.previous
    counts = line.fresh or not (row.tested or opener in _IN_PROSE)
    if counts and opener in _FIRST:
        # A word in prose begins like a thought that nothing but a line end tells apart.
        counts = first and bool((yield from parser.test(_VISIBLE)))
        counts = counts or (opener[0] == "<" and bool((yield from parser.test(_LINE_END))))
    closer = BLOCKS.get(opener) or row.closers[0]
    if parser.dispatcher.nested or not counts:
        if len(parser.spoken) < _MOST_SPOKEN:
            parser.spoken.add(closer)
        raise NotACall
    parser.commit()
    if opener in ("<|channel>", "<ctrl94>"):
        yield from parser.read(TITLE)
    marker = yield from reasoning_block(parser, *marker_pattern(closer))
    parser.take(len(marker))
    line.only_reasoning = True


@dropped_if
def drop_end(parser: Parser, row: Dialect, marker: str) -> bool:
    """Drop a closing marker without its opener at the start of a line, after a call or block, and behind a word."""
    line = parser.line
    if not is_token(marker) and (marker in parser.spoken or (not line.fresh and line.previous.isspace())):
        parser.spoken.discard(marker)
        return False
    line.only_reasoning = True
    return True


def template_block(parser: Parser) -> Reading[None]:
    """Read a block that the prompt has opened."""
    parser.commit()
    try:
        marker = yield from reasoning_block(parser, ANY_END, ENDS)
    except CutOff:
        if (parser.passed or parser.buffer) and not (parser.was_cut or parser.sink.has_calls):
            warn_of_no_end()
        raise
    parser.take(len(marker))
    parser.recording = True
    parser.line.only_reasoning = True


def warn_of_no_end() -> None:
    """Log that the answer of a round, whose block the prompt has opened, ended in it."""
    logger.warning("no end of the thoughts came, so nothing of the answer is spoken: is start='reasoning' right?")


class _Ends(Container[str]):
    """The markers that may close a block that the prompt has opened."""

    def __contains__(self, marker: object) -> bool:
        return marker in BLOCKS.values() or marker in _TEMPLATE_ENDS or ends_thought(str(marker))


ENDS = _Ends()


def reasoning_block(parser: Parser, pattern: re.Pattern[str], known: Container[str]) -> Reading[str]:
    """Read reasoning up to a marker; return the marker, which is not consumed."""
    inside = _Inside(parser)
    try:
        marker = yield from parser.pass_to(pattern, known, inside.feed)
    except CutOff:
        inside.stay_open(was_cut=parser.was_cut)
        raise
    inside.close()
    return marker


class _Inside:
    """The inside of a block: a nested machine looks for calls in it, and gives them to this object, its `Sink`."""

    silent = True

    def __init__(self, parser: Parser) -> None:
        self._outer = parser.sink
        self.max_argument_chars, self.new_array = self._outer.max_argument_chars, self._outer.new_array
        self._calls: list[Call] = []
        self._last: list[Call] = []  # the calls after which nothing came yet
        self._kept = 0
        self._inner = parser.dispatcher.inside(self)
        self._raw: list[str] = []  # what may be the text of calls
        self._raw_start = self._raw_end = 0  # where it stands in what the inner machine was fed

    @property
    def has_calls(self) -> bool:
        return bool(self._last or self._calls)

    def text(self, text: str) -> None:
        if self._last and not text.isspace():
            self._calls += self._last
            self._last = []

    def _ignore(self, *_: object) -> None:
        """Do nothing: the block passes its text on, blocks inside are not read, and only complete calls count."""

    reasoning = begin = speculate = replay = _ignore

    def finish(self, call: Call, status: CallStatus, arguments: str = "") -> None:
        """Keep a call that has ended. If the calls together are longer than one may be, the oldest is dropped."""
        call.status, call.arguments_json = status, arguments
        self._last.append(call)
        self._kept += _LEAST_OF_A_CALL + len(arguments)
        while self._kept > self.max_argument_chars and len(self._calls) + len(self._last) > 1:
            dropped = (self._calls or self._last).pop(0)
            self._kept -= _LEAST_OF_A_CALL + len(dropped.arguments_json)

    def feed(self, text: str) -> None:
        if text:
            self._raw.append(text)
            self._raw_end += len(text)
            self._inner.feed(text)
            self._pass_on(everything=self._inner.clean, most=2 * _MOST_RAW)  # so that few pieces are joined twice

    def _pass_on(self, *, everything: bool, most: int = _MOST_RAW) -> None:
        """Pass the reasoning on that stands before the last calls, and what is too long to wait for them."""
        until = self._last[0].offset if self._last else self._raw_end if everything else 0
        if self._raw_end - self._raw_start > most:
            until = max(until, self._raw_end - _MOST_RAW)
        size = until - self._raw_start
        if size > 0:
            raw = "".join(self._raw)
            self._outer.reasoning(raw[:size])
            self._raw = [raw[size:]]
            self._raw_start = until

    def close(self) -> None:
        """Close the block: its calls stay speculative if they end it; others are dropped."""
        self._inner.close(was_cut=False)
        complete = bool(self._last) and all(call.status == "ok" for call in self._last)
        self._pass_on(everything=not complete)
        if complete:
            self._outer.speculate("".join(self._raw), self._last)
        elif self._last:
            self._outer.reasoning("".join(self._raw))

    def stay_open(self, *, was_cut: bool) -> None:
        """End the stream in the block: its calls are real."""
        self._inner.close(was_cut=was_cut)
        self._pass_on(everything=True)
        for call in self._calls + self._last:
            self._outer.replay(call)


ROWS = (Dialect(name="reasoning", markers=tuple(BLOCKS), read=read_block, calls=False),)
