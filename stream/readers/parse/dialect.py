"""A dialect: the markers that open a call, what must follow them, the reader of the body, and what closes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from stream.readers.parse.markers import is_token
from stream.readers.parse.shapes import Run, Shape

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from stream.readers.parse.outcomes import Reading

__all__ = ["Dialect"]

# Their first argument is a `Parser`, which stands above this file.
MarkerReader: TypeAlias = "Callable[[Any, Dialect, int], Reading[None]]"
BodyReader: TypeAlias = "Callable[[Any, Dialect, re.Match[str]], Reading[None]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One row of the table.

    Attributes
    ----------
    name : the dialect.
    markers : what opens it, normalized.
    heads : what may follow a marker, each with the reader of the body that begins so.
    closers : what closes it.
    read : reads everything from the marker on; None reads the marker, a head and the body.
    otherwise : the reader of the body where no head fits.
    cut_after_name : matches a name, its group, whose separator was cut off by the end of the stream.
    calls : whether it holds calls.
    wraps : whether a block holds several.
    weak : whether it is recognized by its shape, without a marker of its own.
    fence : whether it is a code fence.
    ends : shapes of the closing markers, after white space and brackets that are skipped.
    """

    name: str
    markers: tuple[str, ...]
    heads: tuple[tuple[Shape, BodyReader], ...] = ()
    closers: tuple[str, ...] = ()
    read: MarkerReader | None = None
    otherwise: Callable[..., Reading[None]] | None = None
    cut_after_name: re.Pattern[str] | None = None
    calls: bool = True
    wraps: bool = False
    weak: bool = False
    fence: bool = False
    ends: tuple[Shape, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        skipped = Run(r"[\s}\],;]{0,32}")
        object.__setattr__(self, "ends", tuple(Shape(skipped, closer) for closer in self.closers))

    def stands_out(self, *, fresh: bool) -> bool:
        """Return whether the marker alone shows a call; a marker that is a word does so at the start of a line."""
        return not self.weak and (fresh or not self.markers[0][0].isalpha())

    @property
    def opens_code(self) -> bool:
        """Whether a backtick directly before its marker makes it inline code."""
        return not self.fence and self.markers != ("",)

    @property
    def inline(self) -> bool:
        """Whether its closing marker counts only here."""
        return self.closers == (">",)

    @property
    def token(self) -> bool:
        """Whether its markers are single tokens of a tokenizer, which need no test."""
        return is_token(self.markers[0])
