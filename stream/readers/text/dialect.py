"""A dialect as a row of the table; the call that its readers draft, their outcomes, and what they reach above."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from stream.events import CallStatus
from stream.readers.text.patterns import Run, Shape, is_token, normalize, shape_of
from stream.readers.text.scanner import JsonScanner

__all__ = [
    "LIBRARY",
    "Call",
    "CutOff",
    "Dialect",
    "Dispatcher",
    "Draft",
    "Head",
    "NotACall",
    "Reading",
    "Sink",
    "Token",
    "Unreadable",
    "Values",
    "clean_name",
    "dropped_if",
]

_T = TypeVar("_T")
# A generator that yields when it needs more text, and returns what it read.
Reading: TypeAlias = "Generator[None, None, _T]"
# Gets the `Parser`, which stands above this file, the row, and the size of the marker or the match of the head.
Reader: TypeAlias = "Callable[..., Reading[None]]"
Head: TypeAlias = tuple[Shape, Reader]


# Distinguishes equal calls: ("index", 0), ("id", "a:0"), or nothing.
Token: TypeAlias = tuple[str, int | str] | None


@dataclass(slots=True, eq=False)
class Call:
    """One call on its way from the wire to the events."""

    name: str = ""  # as far as it is known, like the id
    id: str = ""
    token: Token = None  # distinguishes it from calls with the same name and arguments
    array: int = 0  # calls that stand alone have an array each
    ordinal: int = -1  # among the calls of the stream, once it was announced
    status: str = ""  # as in `ToolCallEnd`, like the arguments; empty while the call is open
    arguments_json: str = "{}"
    key: str = ""  # the same for equal arguments, once it has ended
    duplicate: bool = False  # it is one, or may be one as long as it is open
    offset: int = 0  # start of a raw call in its text, characters
    told: bool = False  # as in `ToolCallStart`, like the next
    from_text: bool = False
    extra_content: Any = None
    home: Any = None  # its `Round`


LIBRARY = re.compile(r"\A(?:functions\.|default_api[.:])")
"""Matches the prefixes that models add to a tool's name; the second is Gemini's."""


def clean_name(name: str) -> str:
    """Return a tool's name without control tokens after it and without its `LIBRARY`."""
    return LIBRARY.sub("", name.split("<|", 1)[0].strip())


class CutOff(Exception):  # noqa: N818  (an outcome, not an error)
    """The stream ended while more text was needed; `text` is what was read so far, where that matters."""

    text = ""


class NotACall(Exception):  # noqa: N818  (an outcome, not an error)
    """Text that looked like a call; inside a JSON value, `scanner` finds the end of that value."""

    def __init__(self, scanner: JsonScanner | None = None) -> None:
        super().__init__()
        self.scanner = scanner


class Unreadable(Exception):  # noqa: N818  (an outcome, not an error)
    """A call began, and its body cannot be read."""


_MARKS = 4  # characters of JSON at least, beside a key and its value
_SKIPPED = Run(r"[\s}\],;]{0,32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One row of the table."""

    name: str
    markers: tuple[str, ...]  # what opens it, normalized
    heads: tuple[Head, ...] = ()  # what may follow a marker, and the reader of the body that begins so
    closers: tuple[str, ...] = ()  # what closes it
    read: Reader | None = None  # reads everything from the marker on; None: reads the marker, a head and the body
    otherwise: Reader | None = None  # the reader of the body if no head fits
    cut_after_name: re.Pattern[str] | None = None  # a name, its group, whose separator the end of the stream cut off
    calls: bool = True  # it holds calls
    wraps: bool = False  # a block holds several
    weak: bool = False  # it is recognized by its shape, without a marker
    fence: bool = False  # it is a code fence
    fresh: bool = False  # it counts at the start of a line, or after a call
    tested: bool = False  # a body must follow its marker, even if that is written as a token is

    @property
    def ends(self) -> tuple[Shape, ...]:
        """Its closers, after white space and brackets that are skipped."""
        return tuple(shape_of(_SKIPPED, closer) for closer in self.closers)

    def stands_out(self, *, fresh: bool) -> bool:
        """Return whether the marker alone shows a call; a marker that is a word does so at the start of a line."""
        return not self.weak and (fresh or not self.markers[0][0].isalpha())

    @property
    def token(self) -> bool:
        """Whether its markers are single tokens of a tokenizer, which need no test."""
        return is_token(self.markers[0]) and not self.tested


def dropped_if(counts: Callable[..., bool]) -> Reader:
    """Return the reader of a marker that is dropped if `counts`, from parser, row and marker; otherwise it is text."""

    def read(parser: Any, row: Dialect, size: int) -> Reading[None]:
        if not counts(parser, row, normalize(parser.take(size))):
            raise NotACall
        parser.commit()
        yield from ()

    return read


class Values(dict[str, str]):
    """The values of a call as JSON, by key; past the cap they are dropped."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left, self.some = most, False

    def put(self, key: str, value: str, *, is_text: bool = True) -> None:
        """Put in a text, or what JSON stands for; raises `Unreadable` if it is not JSON."""
        self.left, self.some = self.left - len(key) - len(value) - _MARKS, True
        if self.left >= 0:
            self[key] = _text(value) if is_text else _json(value)

    @property
    def json(self) -> str | None:
        members = ", ".join(f"{_text(key)}: {value}" for key, value in self.items())
        return f"{{{members}}}" if self.left >= 0 else None


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(value: str) -> str:
    scanner = JsonScanner()
    end = scanner.scan(value, 0)
    if not scanner.finish() or value[end:].strip():
        raise Unreadable
    return value.strip()


class Draft:
    """The known parts of a call whose text is still read."""

    def __init__(self, array: int, *, strong: bool, offset: int, most: int) -> None:
        self.call = Call(array=array, offset=offset, from_text=True)  # its name is empty until it is announced
        self.name = ""  # as far as it is known
        self.strong = strong  # a marker has already said that this is a call
        self.named = strong  # a name is enough to make it one
        self.begun = strong  # the end of the stream would leave an incomplete call here
        self.arguments: str | None = None  # once they are complete
        self.arguments_begun = False
        self.beside = Values(most)  # the arguments, if they stand beside the name
        self.unusual = False  # its name or its arguments stand under other keys than those of most models
        self.is_use = False  # its type says that it is the use of a tool

    @property
    def announced(self) -> bool:
        return self.call.name != ""

    @property
    def complete(self) -> bool:
        """Whether all that matters has come, so that anything may close the call."""
        return self.announced and self.arguments is not None

    def identify(self) -> None:
        """Let the id, if there is one, tell the call apart from its like."""
        if self.call.id:
            self.call.token = ("id", self.call.id)


class Sink(Protocol):
    """Takes what is read: a `CallOrder`, or the inside of a block of reasoning.

    `begin` announces a call whose name is certain (`ToolCallStart`), `finish` ends it (`ToolCallEnd`).
    """

    max_argument_chars: int
    silent: bool
    new_array: Callable[[], int]

    @property
    def has_calls(self) -> bool: ...
    def text(self, text: str, /) -> None: ...
    def reasoning(self, text: str, /) -> None: ...
    def begin(self, call: Call, /) -> None: ...
    def finish(self, call: Call, status: CallStatus, arguments: str = "", /) -> None: ...
    def speculate(self, raw: str, calls: list[Call], /) -> None: ...
    def replay(self, call: Call, /) -> None: ...


class Dispatcher(Protocol):
    """The `TextMachine`, which knows the table: the reader of a body reaches the other dialects through it."""

    nested: bool
    clean: bool

    def row_here(self) -> Reading[tuple[Dialect | None, int]]: ...
    def attempt(self, row: Dialect, size: int) -> Reading[None]: ...
    def drops(self, half: str) -> bool: ...
    def inside(self, collector: Sink) -> Dispatcher: ...
    def feed(self, text: str, /) -> None: ...
    def close(self, *, was_cut: bool) -> None: ...
