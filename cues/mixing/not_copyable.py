"""The base of objects that kernels hold by address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cues.errors import CueTypeError

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["NotCopyable"]


class NotCopyable:
    """An object that can be neither copied nor pickled, because the kernels hold its address."""

    __slots__ = ()

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise CueTypeError(f"a {type(self).__name__} is part of a live session; it can be neither copied nor pickled")
