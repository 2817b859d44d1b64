"""Dispatches each marker to the dialect that owns it; text without a marker passes by, as nearly all does.

If there is no call after a marker, the text that was read is released. The machine pauses when the text so far ends.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from stream.events import TextDelta
from stream.readers.text.dialect import CutOff, Dialect, NotACall, Reading, Sink, Unreadable, clean_name
from stream.readers.text.dialect_table import Table
from stream.readers.text.dialects import harmony, reasoning
from stream.readers.text.dialects.blocks import to_end_of_fence
from stream.readers.text.marked import read_marked
from stream.readers.text.parser import Parser
from stream.readers.text.patterns import SPACE, Run, Shape, marker_pattern, normalize
from stream.readers.text.recovery import skip_malformed
from stream.readers.text.tags import SEPARATOR, begun_tag

__all__ = ["NOTHING_KNOWN", "TextMachine"]

NOTHING_KNOWN: dict[str, TextDelta] = {}
_SEPARATORS = re.compile(r"[\s,;]*")  # syntax before another call, text before text
_MEMBER = Shape('"', Run(r'[^"\n]{1,64}'), '"', SPACE, ":")
_TICK_OR_LINE_END = re.compile(r"[`\n]")
_MOST_PASSED, _LONGEST_PASSED = 256, 256  # texts that were passed on and not noted; characters of one
_SHORTEST_HALF = 4  # decision: fewer characters of a marker are text, even if the stream was cut off


class TextMachine:
    """Reads the text of a round.

    `start` is `"reasoning"` if the prompt has already opened a block; `nested` reads the inside of such a block.
    """

    def __init__(self, sink: Sink, table: Table, start: str = "text", *, nested: bool = False) -> None:
        self.nested = nested
        self._table = table
        self._parser = Parser(sink, table.declared, self)
        self.clean = False  # nothing is held back and no call is open: text without a marker need not be parsed
        # Texts that a reader may look up while the machine is clean, if it sets `last`: a call of `delta` would cost a
        # tenth of an Ollama line (bench/stream_readers.py). Inside a block each character counts, for a call's offset.
        self.known = NOTHING_KNOWN if nested else table.known
        self.last: TextDelta | None = None  # of a run of known texts, which the parser has not noted yet
        self._passed: list[str] = []  # texts before it, not noted either
        self._row: Dialect | None = None  # of the candidate that is being read
        self._beginning = start == "text"  # nothing but what may begin a round has come
        self._superseded = False  # a structured call came while half a call was held
        self._run = self._main(start)
        next(self._run)

    def delta(self, text: str) -> TextDelta | None:
        """Event for plain text when nothing is held back; `None` if it must be parsed."""
        if not self.clean:
            return None
        delta = self._table.plain.get(text) or self._table.delta_of(text)
        if delta is None:
            return None
        if text in self.known:
            self.last = delta
            return delta
        # To note each text at once would make an Ollama line cost half as much again.
        if self.last is not None:
            self._passed.append(self.last.text)
            self.last = None
        self._passed.append(text)
        if len(self._passed) > _MOST_PASSED or len(text) > _LONGEST_PASSED:
            self._catch_up()
        return delta

    def _catch_up(self) -> None:
        """Let the parser note the text that was passed on without it."""
        if self.last is not None:
            self._passed.append(self.last.text)
            self.last = None
        if self._passed:
            self._parser.note_passed("".join(self._passed))
            self._passed.clear()

    def feed(self, text: str) -> None:
        if self.delta(text) is not None:
            self._parser.sink.text(text)
            return
        self._catch_up()
        self._parser.put(text)
        next(self._run)

    def close(self, *, was_cut: bool) -> None:
        """End the text; `was_cut` if a limit, an error or a closed connection ended it."""
        self._catch_up()
        self._parser.was_cut, self._parser.ended = was_cut, True
        for _ in self._run:
            raise AssertionError("waited for more text after the end")

    def note_structured_call(self) -> None:
        """Note a structured call beside the text; it replaces an incomplete one in the buffer."""
        if not self._holds_decoration():
            self.put_down_words()
        if self._holds:
            self._superseded = True
        self._parser.line.fresh = True

    def note_reasoning(self) -> None:
        """Note reasoning that came in a field, before the text that comes next, unless that continues what is held."""
        if not self._holds:
            self._catch_up()
            self._parser.line.only_reasoning = True

    def put_down_words(self) -> None:
        """Pass on what is held if it is words: the text that comes next does not continue it."""
        self._catch_up()
        if not (self._holds and self._holds_words()):
            return
        parser = self._parser
        self._run.close()
        parser.draft, self._row, parser.recording = None, None, True
        parser.release()
        parser.pass_text(len(parser.buffer) - parser.position)
        self._run = self._main()
        next(self._run)

    @property
    def _holds(self) -> bool:
        parser = self._parser
        return not self.clean and bool(parser.held or parser.position < len(parser.buffer))

    def _holds_words(self) -> bool:
        """Return whether what is held has no marker, and is not enough to be a call without one."""
        parser, row = self._parser, self._row
        half = parser.buffer[parser.position :]
        if parser.draft and (row is None or row.weak):
            return not (parser.draft.announced or parser.draft.begun)
        if self._beginning:
            return len(half) < _SHORTEST_HALF
        if row is None:
            return bool(half) and not parser.fenced and not self._table.begins_marker(half, fresh=parser.line.fresh)
        return row.weak

    def _holds_decoration(self) -> bool:
        """Return whether half a tag is held that begins as `<minimax:` or closes a call; no call follows such words."""
        parser = self._parser
        half = normalize(parser.buffer[parser.position :])
        if not half or self._row is not None or parser.draft or parser.fenced or self._beginning:
            return False
        return begun_tag(half, least=0) is not None or any(c.startswith(half) for c in parser.line.unclosed)

    def _main(self, start: str | None = None) -> Generator[None, None, None]:
        """Read the text to its end; `feed` resumes this generator for text that must be parsed."""
        try:
            if start == "reasoning":
                yield from reasoning.template_block(self._parser)
            elif start and not self.nested and (row := (yield from harmony.begins_stripped(self._parser))):
                if row is harmony.STRIPPED:
                    self._table = self._table.glued
                    self.known = self._table.known
                yield from self.attempt(row, 0)
            self._beginning = False
            while True:
                yield from self._step()
        except CutOff:
            if self._parser.addressed:
                self._parser.sink.finish(self._parser.addressed.call, "incomplete")

    def _step(self) -> Reading[None]:
        parser = self._parser
        # Directly after a call or a token a name needs no white space before it.
        match = None if parser.line.previous else self._table.at_start.match(parser.buffer, parser.position)
        match = match or self._table.search(parser.buffer, parser.position)
        end = match.start() if match else len(parser.buffer)
        if end > parser.position:
            self._superseded = False  # what was held is text
            parser.release()
            parser.pass_text(end - parser.position)
        if match is None:
            if not parser.held:
                self._superseded = False
                self.clean = True
            yield from parser.more()
            self.clean = False
            return
        row, line = self._table.row_at(match), parser.line
        first = match.group()[0]  # a fence of backticks counts behind words, too; one of tildes behind marks
        counts = line.fresh or first == "`" or (first == "~" and line.is_marked)
        if not counts and (row.fresh if row else first == "~"):
            parser.pass_text(len(match.group()))
        elif row is None and self._table.may_grow(match):
            yield from self._half_marker()
        elif row is None:  # it looks like a marker, and is none
            self._superseded = False
            parser.release()
            parser.pass_text(1)
        elif line.odd_ticks and not (parser.held or row.fence) and (line.previous == "`" or not row.token):
            yield from _inline_code(parser)
        else:
            yield from self._candidate(row, len(match.group()))

    def _half_marker(self) -> Reading[None]:
        parser, table = self._parser, self._table
        try:
            yield from parser.more()
        except CutOff:
            half, fresh = parser.buffer[parser.position :], parser.line.fresh
            if self._superseded or (fresh and parser.sink.has_calls and self._closes(normalize(half))):
                raise
            parser.attempt_at = parser.passed + parser.position
            if not (parser.was_cut and len(half) >= _SHORTEST_HALF and table.begins_marker(half, fresh=fresh)):
                parser.release()
                parser.pass_text(len(half))
            elif table.begins_call(half, fresh=fresh):
                parser.sink.finish(parser.new_draft().call, "incomplete")
            raise

    def _closes(self, half: str) -> bool:
        """Return whether a closing marker begins so; `<tool_ca` does only after a call that is closed so."""
        if any(closer.startswith(half) for closer in self._parser.line.unclosed):
            return True
        tag = begun_tag(half)
        closes = (tag and tag.closing) or any(closer.startswith(half) for closer in self._table.closers)
        return bool(closes) and not self._table.begins_call(half, fresh=self._parser.line.fresh)

    def _candidate(self, row: Dialect, size: int) -> Reading[None]:
        parser = self._parser
        try:
            yield from self.attempt(row, size)
        except NotACall as outcome:
            parser.draft = None
            parser.recording = True
            if self._superseded and not (row.weak or outcome.scanner):
                parser.held.clear()
            self._superseded = False
            parser.release()
            while scanner := outcome.scanner:  # markers in a JSON value are text, too
                parser.pass_text(scanner.scan(parser.buffer, parser.position) - parser.position)
                if scanner.done or scanner.failed:
                    break
                yield from parser.more()
            if parser.fence:  # documentation, to the end of the fence, and the tag's own closing marker
                parser.spoken.update(row.closers[:1])
                yield from to_end_of_fence(parser, parser.fence)
        self._row = None

    def attempt(self, row: Dialect, size: int) -> Reading[None]:
        """Read what a marker of this row and size announces; raises `NotACall` if it is text."""
        parser = self._parser
        self._row, parser.fence = row, ""
        if not (parser.fenced or parser.nested):
            parser.attempt_at = parser.passed + parser.position
        try:
            yield from (row.read or read_marked)(parser, row, size)
        except Unreadable:
            draft = parser.draft
            if (parser.fenced and parser.recording) or (draft and not draft.strong and not draft.announced):
                raise NotACall from None
            yield from skip_malformed(parser, row, self._table)
        except CutOff:
            self._cut_off(row)
            parser.commit()
            parser.position = len(parser.buffer)
            raise
        self._row = None
        parser.line.unclosed.update(row.closers)
        yield from _after_candidate(parser)

    def _cut_off(self, row: Dialect) -> None:
        parser = self._parser
        draft, parser.draft = parser.draft, None
        if draft and draft.announced and draft.arguments is not None:
            parser.settle(draft, draft.arguments)
        elif draft and (draft.announced or (draft.begun and not self._superseded)):
            draft.call.name = clean_name(draft.name)
            parser.sink.finish(draft.call, "incomplete")
        elif self._superseded or not parser.recording:
            return
        elif row.calls and (row.token or (parser.was_cut and row.stands_out(fresh=parser.line.fresh))):
            parser.sink.finish(parser.new_draft().call, "incomplete")
        elif not row.token:
            if parser.ends_call(row):
                parser.held.clear()
            parser.take_to(None)
            parser.release()

    def row_here(self) -> Reading[tuple[Dialect | None, int]]:
        """Return the row of the marker that comes next, and the marker's size; nothing is read."""
        parser = self._parser
        while match := self._table.at_start.match(parser.buffer, parser.position):
            row = self._table.row_at(match)
            if row:
                return row, len(match.group())
            if not self._table.may_grow(match):
                break
            yield from parser.more()
        return None, 0

    def drops(self, half: str) -> bool:
        """Return whether the beginning of something that is not spoken is dropped at the end of the stream."""
        return self._superseded or (self._parser.was_cut and len(half) >= _SHORTEST_HALF)

    def inside(self, collector: Sink) -> TextMachine:
        """Return a machine for the inside of a block of reasoning."""
        return TextMachine(collector, self._table, nested=True)


def _after_candidate(parser: Parser) -> Reading[None]:
    """Drop closing brackets directly after a call, and hold what separates it from the next one."""
    ended_call, parser.ended_call = parser.ended_call, False
    parser.draft = None
    parser.held.clear()
    parser.recording = True
    parser.line.fresh, parser.line.previous = True, ""
    if ended_call:
        while (yield from parser.peek()) in "}]" and not (yield from parser.test(SEPARATOR)):
            parser.position += 1
    if parser.sink.has_calls:
        yield from parser.skip_space(_SEPARATORS)
        if ended_call and "," in "".join(parser.held) and (yield from parser.test(_MEMBER)):
            # More members of an object that a bracket too many has ended.
            yield from parser.find(*marker_pattern(*parser.line.unclosed, "\n"), 0)
            parser.held.clear()
        parser.recording = True  # also after more separators than can be held


def _inline_code(parser: Parser) -> Reading[None]:
    """Pass text up to the next backtick or the end of the line."""
    while True:
        match = _TICK_OR_LINE_END.search(parser.buffer, parser.position)
        parser.pass_text((match.end() if match else len(parser.buffer)) - parser.position)
        if match:
            parser.line.odd_ticks = False
            return
        yield from parser.more()
