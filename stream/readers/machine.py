"""The machine that tells calls from text in what a model writes.

Ordinary text is searched for triggers in C and passed on at once. At a trigger the row of the dialect table that knows
it takes over; if it finds no call there, what it read is text after all. Where the stream pauses, the machine pauses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream.readers.parse.draft import Drafting, clean_name
from stream.readers.parse.malformed import skip_malformed
from stream.readers.parse.markers import normalize
from stream.readers.parse.tape import CutOff, NotACall, Reading, Unreadable

if TYPE_CHECKING:
    from collections.abc import Generator

    from stream.readers.dialects import Dialect, Table
    from stream.readers.dialects.reasoning import Rehearsals
    from stream.readers.turn import Turn

__all__ = ["SHORTEST_HALF", "TextMachine"]

_SPACE_TO_END = re.compile(r"\s*\Z")
_SEPARATORS = re.compile(r"[\s,;]*")  # syntax before another call, text before text
SHORTEST_HALF = 4  # decision: fewer characters of a marker are text, even where the stream was cut off


class TextMachine(Drafting):
    """Reads the text of a round.

    Parameters
    ----------
    turn : where text and calls go.
    table : the dialects and the pattern that finds their markers.
    start : `"text"`, or `"reasoning"` where the prompt has already opened a block.
    nested : whether this reads the inside of a block of reasoning.
    """

    def __init__(self, turn: Turn | Rehearsals, table: Table, start: str = "text", *, nested: bool = False) -> None:
        super().__init__(turn, table)
        self.nested = nested
        self.was_cut = False
        self._row: Dialect | None = None  # of the candidate that is being read
        self._beginning = True  # nothing but what may begin a round has come
        self._superseded = False  # a structured call came while half a call was held
        self._run = self._main(start)
        next(self._run)

    def feed(self, text: str) -> None:
        """Read on."""
        if self.passes(text) is not None:
            self.turn.text(text)
            return
        self.catch_up()
        self.put(text)
        next(self._run)

    def close(self, *, was_cut: bool) -> None:
        """End the text; `was_cut` if a limit, an error or a closed connection ended it."""
        self.catch_up()
        self.was_cut, self.ended = was_cut, True
        for _ in self._run:
            raise AssertionError("waited for more text after the end")

    def note_structured_call(self) -> None:
        """Take notice of a structured call beside the text: half a call that is held was that one, words are not."""
        self.put_down_words()
        if self._holds:
            self._superseded = True
        self.fresh = True

    def put_down_words(self) -> None:
        """Give out what is held if it is words: what comes next is no part of it."""
        self.catch_up()
        if self._holds and self._holds_words():
            self._put_down()

    @property
    def _holds(self) -> bool:
        return not self.clean and bool(self.held or self.position < len(self.buffer))

    def _holds_words(self) -> bool:
        """Return whether what is held has no marker, and has not gone far enough to be a call without one."""
        row, draft = self._row, self.draft
        half = self.buffer[self.position :]
        if draft:
            return not (draft.announced or draft.begun)
        if self._beginning:
            return len(half) < SHORTEST_HALF
        if row is None:
            return bool(half) and not self.fenced and not self._is_half_marker(normalize(half))
        return row.weak

    def _put_down(self) -> None:
        """Give out all that is held as text, and begin anew behind it."""
        self._run.close()
        self.draft, self._row, self.recording = None, None, True
        self.release()
        self.pass_text(len(self.buffer) - self.position)
        self._run = self._main()
        next(self._run)

    # --- the loop -------------------------------------------------------------------------------------------------

    def _main(self, start: str | None = None) -> Generator[None, None, None]:
        try:
            if start:
                yield from self.table.begin(self, start)
            self._beginning = False
            while True:
                yield from self._step()
        except CutOff:
            return

    def _step(self) -> Reading[None]:
        match = self._find()
        end = match.start() if match else len(self.buffer)
        if end > self.position:
            self.release()
            self.pass_text(end - self.position)
        if match is None:
            if not self.held:
                self._superseded = False
                self.clean = True
            yield from self.more()
            self.clean = False
            return
        row = self.row_at(match)
        if match.group()[0] in "`~" and not self.fresh:
            self.pass_text(len(match.group()))  # a fence stands at the start of a line
        elif row is None:
            yield from self._half_marker()
        elif self.previous == "`" and self.odd_ticks and not self.held and row.opens_code:
            yield from self.inline_code()
        else:
            yield from self._candidate(row, len(match.group()))

    def _find(self) -> re.Match[str] | None:
        """Return the next marker; directly behind a call or a token a name needs no white space before it."""
        match = None if self.previous else self.table.at_start.match(self.buffer, self.position)
        return match or self.table.search(self.buffer, self.position)

    def row_at(self, match: re.Match[str]) -> Dialect | None:
        """Return the row of the marker that was found; None while it is, or may be, the beginning of one."""
        marker = normalize(match.group())
        if match.end() == len(self.buffer) and marker in self.table.extendable:
            return None
        if marker in "{[" and _SPACE_TO_END.match(self.buffer, match.end()):
            return None
        return self.table.row(marker)

    def _half_marker(self) -> Reading[None]:
        try:
            yield from self.more()
        except CutOff:
            half = self.buffer[self.position :]
            marker = normalize(half)
            if self._superseded or (self.fresh and self.turn.has_calls and self._closes(marker)):
                raise
            self.attempt_at = self.passed + self.position
            if self.was_cut and len(half) >= SHORTEST_HALF and self._is_half_marker(marker):
                if self.table.begins_call(marker, fresh=self.fresh):
                    self.turn.finish(self.new_draft().call, "incomplete")
                raise
            self.release()
            self.emit(half)
            raise

    def _closes(self, half: str) -> bool:
        """Return whether a closing marker begins so; `<tool_ca` is one only behind a call that is closed so."""
        if any(closer.startswith(half) for closer in self.unclosed):
            return True
        return self.table.begins_closer(half) and not self.table.begins_call(half, fresh=self.fresh)

    def drops(self, half: str) -> bool:
        """Return whether the beginning of something that is not spoken is dropped at the end of the stream."""
        return self._superseded or (self.was_cut and len(half) >= SHORTEST_HALF)

    def _is_half_marker(self, half: str) -> bool:
        """Return whether a marker begins so that is not spoken, here."""
        return any(begins(half, fresh=self.fresh) for begins in (self.table.begins_call, self.table.begins_silence))

    def _candidate(self, row: Dialect, size: int) -> Reading[None]:
        try:
            yield from self.attempt(row, size)
        except NotACall as outcome:
            self.draft = None
            self.recording = True
            if self._superseded and not row.weak:
                self.held.clear()
            self.release()
            if outcome.scanner:
                yield from self.json_text(outcome.scanner)
        self._row = None

    def attempt(self, row: Dialect, size: int) -> Reading[None]:
        """Read what a marker of this row and this size announces.

        Raises
        ------
        NotACall
            If it is text.
        """
        self._row = row
        if not self.fenced:
            self.attempt_at = self.passed + self.position
        try:
            yield from row.read(self, row, size)
        except Unreadable:
            draft = self.draft
            if (self.fenced and self.recording) or (draft and not draft.strong and not draft.announced):
                raise NotACall from None
            self._settle_malformed()
            yield from skip_malformed(self, row)
        except CutOff:
            self._cut_off(row)
            raise
        self.unclosed.update(row.closers)
        yield from self._behind()

    def _behind(self) -> Reading[None]:
        """Drop closing brackets directly behind a call, and hold what separates it from the next one."""
        ended_call, self.ended_call = self.ended_call, False
        self.draft, self._row = None, None
        self.held.clear()
        self.recording = True
        self.fresh, self.previous = True, ""
        if ended_call:
            while (yield from self.peek()) in "}]":
                self.position += 1
        if self.turn.has_calls:
            yield from self.skip(_SEPARATORS)

    # --- calls that end some other way --------------------------------------------------------------------------------

    def _settle_malformed(self) -> None:
        draft = self.draft or self.new_draft()
        self.draft = None
        self.commit()
        self.turn.finish(draft.call, "malformed", draft.arguments or "")

    def _cut_off(self, row: Dialect) -> None:
        """End what the end of the stream has left open."""
        draft, self.draft = self.draft, None
        if draft and draft.complete:
            self.settle(draft, draft.arguments or "")
        elif draft and draft.announced:
            self.turn.finish(draft.call, "incomplete")
        elif self._superseded:
            pass
        elif draft and draft.begun:
            draft.call.name = clean_name(draft.name)
            self.turn.finish(draft.call, "incomplete")
        elif row.calls and self.recording and (row.token or (self.was_cut and row.stands_out(fresh=self.fresh))):
            self.turn.finish(self.new_draft().call, "incomplete")
        elif self.recording and not row.token:
            self.take_to(None)
            self.release()
        self.held.clear()
        self.position = len(self.buffer)
