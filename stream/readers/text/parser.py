"""Reading text that arrives in pieces as if all of it were there, and no character twice.

Each primitive is a generator that yields when it needs more text; at the end of the stream it raises `CutOff`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container
from typing import Any

from stream.known_tools import is_server_tool
from stream.readers.text.dialect import (
    CutOff,
    Dialect,
    Dispatcher,
    Draft,
    NotACall,
    Reading,
    Sink,
    Unreadable,
    clean_name,
)
from stream.readers.text.line_state import LineState
from stream.readers.text.patterns import FENCE, SPACE, Shape, marker_pattern, normalize, shape_of
from stream.readers.text.scanner import MOST_PIECES, JsonScanner, Pieces

__all__ = ["Parser"]

_SPACE = re.compile(r"\s*")
_OPENED_FENCE = Shape(SPACE, *FENCE, (["{"], ["["], ["<"]))
_MOST_HELD = 1 << 20  # characters
_LONGEST_SCALAR = 1024  # characters of a key, a name, an id


class Parser:
    """The position in a text, the call that is read there, and the state of the line; the readers of bodies get it."""

    def __init__(self, sink: Sink, declared: frozenset[str] | None, dispatcher: Dispatcher) -> None:
        self.sink = sink
        self.max_argument_chars = sink.max_argument_chars
        self.declared = declared
        self.dispatcher = dispatcher
        self.buffer = ""  # the unread text is `buffer[position:]`; the last character that was read stands before it
        self.position = 0
        self.passed = 0  # characters that came before the buffer
        self.ended = False
        self.was_cut = False  # a limit, an error or a closed connection ended the stream
        self.held: list[str] = []  # read while `recording`, and may still turn out to be text
        self._held_size = 0  # while there is any
        self.recording = True
        self.line = LineState()  # of the text that was passed on
        self.draft: Draft | None = None  # the call that is being read
        self.addressed: Draft | None = None  # announced by a header before the call in its body
        self.labelled = False  # a label stands before this
        self.fenced = False  # this is inside a code fence that may hold calls
        self.fence = ""  # what closes the fence that is open inside the candidate for a call
        self.nested = False  # this is inside a block in a block
        self.spoken: set[str] = set()  # closing markers of blocks whose opener was text
        self.wrapped: set[str] = set()  # closing markers of wrappers that were dropped
        self.cites = False  # a token of a model that marks citations has come
        self.ended_call = False  # the last thing read was the end of a call
        self.attempt_at = 0  # where in the text the last candidate for a call began, characters

    def put(self, text: str) -> None:
        """Append text that has arrived. The last character that was read stays, for patterns that look behind."""
        read = max(self.position - 1, 0)
        self.passed += read
        self.buffer = self.buffer[read:] + text
        self.position -= read

    def take(self, size: int) -> str:
        """Read `size` characters that are there."""
        start, self.position = self.position, self.position + size
        text = self.buffer[start : self.position]
        if self.recording and text:
            self._held_size = self._held_size + len(text) if self.held else len(text)
            self.held.append(text)
            if self._held_size > _MOST_HELD:
                self.commit()  # so much is not for the ear, call or not
            elif len(self.held) > MOST_PIECES:
                self.held[:] = ["".join(self.held)]
        return text

    def take_to(self, match: re.Match[str] | None) -> str:
        """Read up to a match, or all that is there."""
        return self.take((match.start() if match else len(self.buffer)) - self.position)

    def commit(self) -> None:
        """Drop what is held: it is not text."""
        self.held.clear()
        self.recording = False

    def more(self) -> Reading[None]:
        """Wait for more text."""
        if not self.ended:
            yield
        if self.ended:
            raise CutOff

    def peek(self) -> Reading[str]:
        while self.position >= len(self.buffer):
            yield from self.more()
        return self.buffer[self.position]

    def skip_space(self, run: re.Pattern[str] = _SPACE) -> Reading[str]:
        """Skip white space, or what another pattern matches; return the next character, which is not consumed."""
        while True:
            self.take(run.match(self.buffer, self.position).end() - self.position)  # type: ignore[union-attr]
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            yield from self.more()

    def test(self, *shapes: Shape, ahead: int = 0) -> Reading[tuple[int, re.Match[str]] | None]:
        """Return which of some shapes comes next, or `ahead` characters later, and its match; nothing is read."""
        while True:
            undecided, start = False, self.position + ahead
            for number, shape in enumerate(shapes):
                match = shape.whole.match(self.buffer, start)
                if match:
                    return number, match
                undecided |= shape.begun.fullmatch(self.buffer, start) is not None
            if not undecided:
                return None
            yield from self.more()

    def read(self, *shapes: Shape) -> Reading[re.Match[str] | None]:
        """Read one of some shapes if it comes next; return its match, or None."""
        found = yield from self.test(*shapes)
        if found:
            self.take(found[1].end() - self.position)
        return found[1] if found else None

    def expect(self, *shapes: Shape) -> Reading[re.Match[str]]:
        """Read one of some shapes; raises `Unreadable` if something else comes next."""
        match = yield from self.read(*shapes)
        if not match:
            raise Unreadable
        return match

    def accept(self, literal: str, *, after_space: bool = True) -> Reading[bool]:
        """Skip white space, and read `literal` if it comes next; return whether it did."""
        if after_space:
            yield from self.skip_space()
        while not self.buffer.startswith(literal, self.position):
            rest = len(self.buffer) - self.position
            if rest >= len(literal) or not literal.startswith(self.buffer[self.position :]):
                return False
            yield from self.more()
        self.take(len(literal))
        return True

    def json_value(self, limit: int | None = None) -> Reading[str]:
        """Read a JSON value; return its text. Raises `Unreadable` if it is not JSON.

        Text past `limit` characters is dropped (see `Pieces`); None is the limit of arguments.
        """
        scanner = JsonScanner()
        pieces = Pieces(self.max_argument_chars if limit is None else limit)
        while True:
            end = scanner.scan(self.buffer, self.position)
            pieces.add(self.take(end - self.position))
            if scanner.done:
                return pieces.text
            if scanner.failed:
                raise Unreadable
            try:
                yield from self.more()
            except CutOff:
                if not scanner.finish():
                    raise

    def json_scalar(self) -> Reading[Any]:
        """Read a short JSON value, such as a key or an id; return what it stands for; a long one is `Unreadable`."""
        text = yield from self.json_value(_LONGEST_SCALAR)
        if len(text) > _LONGEST_SCALAR:
            raise Unreadable
        return json.loads(text, strict=False)

    def opens_fence(self) -> Reading[tuple[int, str]]:
        """Return the size of what opens a code fence around a body, and the fence; 0 and "" if none comes next."""
        found = yield from self.test(_OPENED_FENCE)
        return (found[1].end(4) - self.position, found[1].group(2)) if found else (0, "")

    def begin_fence(self) -> Reading[None]:
        """Read what opens a code fence around a body, as some models write, if one comes next."""
        size, self.fence = yield from self.opens_fence()
        self.take(size)

    def end_fence(self) -> Reading[None]:
        """Read the end of the fence that is open, if it comes next."""
        if self.fence:
            yield from self.read(shape_of(SPACE, self.fence))
            self.fence = ""

    def json_arguments(self, draft: Draft) -> Reading[None]:
        """Read the arguments, fenced or not, which end the call; all but objects, strings, null are `Unreadable`."""
        yield from self.begin_fence()
        if (yield from self.skip_space()) not in '{"n':
            raise Unreadable
        draft.arguments = yield from self.json_value()
        self.settle(draft, draft.arguments)
        yield from self.end_fence()

    def arguments_or_none(self, draft: Draft) -> Reading[None]:
        """Read the arguments as `json_arguments` does; a marker in their place ends a call without any."""
        if (yield from self.skip_space()) == "<":
            self.settle(draft, "")
            return
        yield from self.json_arguments(draft)

    def find(self, markers: re.Pattern[str], known: Container[str], limit: int) -> Reading[tuple[str, str]]:
        """Read up to the first marker (of `marker_pattern`); return the text before it, and the marker, not consumed.

        Text past `limit` characters is dropped (see `Pieces`).
        """
        pieces = Pieces(limit)
        try:
            marker = yield from self.pass_to(markers, known, pieces.add)
        except CutOff as end:
            end.text = pieces.text
            raise
        return pieces.text, marker

    def text_to(self, closer: str, limit: int) -> Reading[str]:
        """Read past a closing marker; return the text before it, within a limit as in `find`."""
        text, marker = yield from self.find(*marker_pattern(closer), limit)
        self.take(len(marker))
        return text

    def pass_to(self, markers: re.Pattern[str], known: Container[str], take: Callable[[str], object]) -> Reading[str]:
        """Let a function take the text up to the first marker, as it comes; return the marker, not consumed."""
        while True:
            match = markers.search(self.buffer, self.position)
            take(self.take_to(match))
            if match and normalize(match.group()) in known:
                return normalize(match.group())
            if match and match.end() < len(self.buffer):  # it looks like a marker, and is none
                take(self.take(1))
                continue
            try:
                yield from self.more()
            except CutOff:
                take(self.take_to(None))
                raise

    def release(self) -> None:
        """Pass on what is held: it is text."""
        if self.held:
            text = "".join(self.held)
            self.held.clear()
            self.line.note(text)
            self.sink.text(text)

    def pass_text(self, size: int) -> None:
        """Read `size` characters as text."""
        text = self.buffer[self.position : self.position + size]
        self.position += size
        if text:
            self.line.note(text)
            self.sink.text(text)

    def note_passed(self, text: str) -> None:
        """Take note of text that came after the buffer and was passed on without being put there."""
        self.passed += self.position + len(text) - 1
        self.buffer, self.position = text[-1], 1
        self.line.note(text)

    @property
    def is_after_call(self) -> bool:
        """Whether the last thing read was a call, or what belongs to it."""
        return self.line.fresh and not self.line.previous and self.sink.has_calls

    def ends_call(self, row: Dialect) -> bool:
        """Whether a marker that opens no call stands in the place of the closing one of the call before it."""
        return self.is_after_call and not self.line.unclosed.isdisjoint(row.closers)

    def excludes(self, name: str) -> bool:
        """Return whether the tools are declared, and a name is neither one of them nor one of a server's own tools."""
        return self.declared is not None and name not in self.declared and not is_server_tool(name)

    def new_draft(self, array: int = 0, *, strong: bool = True) -> Draft:
        array, most = array or self.sink.new_array(), self.max_argument_chars
        self.draft = Draft(array, strong=strong, offset=self.attempt_at, most=most)
        return self.draft

    def call(self, name: str, array: int = 0, *, told: bool = False) -> Draft:
        """Announce a call whose name is certain; return its draft. Raises as `announce` does."""
        draft = self.new_draft(array)
        draft.name, draft.call.told = name, told
        self.announce(draft)
        return draft

    def announce(self, draft: Draft) -> None:
        """Announce the call of a draft, whose name is certain. Raises `Unreadable` if the name is empty.

        Raises `NotACall` in a code fence, if the tools are declared and this is another name: it is documentation.
        """
        name = clean_name(draft.name)
        if not name:
            raise Unreadable
        if self.fenced and self.recording and self.excludes(name):
            raise NotACall
        addressed, self.addressed = self.addressed, None
        self.commit()
        if addressed and addressed.name == name:
            addressed.call.id, draft.call = draft.call.id, addressed.call
        elif addressed:
            self.sink.finish(addressed.call, "malformed")
        draft.name = name
        draft.identify()
        if not draft.announced:
            draft.call.name = name
            self.sink.begin(draft.call)

    def settle(self, draft: Draft, arguments: str | None) -> None:
        """End a call whose arguments are complete; None if they are past the cap and were not kept."""
        self.draft = None
        draft.identify()
        self.ended_call = True
        self.sink.finish(draft.call, "malformed" if arguments is None else "ok", arguments or "")
