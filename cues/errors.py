"""The errors of the audio engine: one root, and subclasses that also inherit the matching builtin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "AudioFileError",
    "CueError",
    "CueTypeError",
    "CueValueError",
    "MissingFeatureError",
    "MixerClosedError",
    "PackError",
    "UnknownCueError",
    "did_you_mean",
    "reason_of",
]


class CueError(Exception):
    """Root of the errors that `cues` raises.

    Attributes
    ----------
    code : str
        Kind of error, for programs.
    fix : str
        How to correct it; empty if the message says it.
    """

    code: ClassVar[str] = "error"

    def __init__(self, *arguments: object, fix: str = "") -> None:
        super().__init__(*arguments)
        self.fix = fix

    def within(self, place: str, kind: type[CueError] | None = None, fix: str = "") -> CueError:
        """A copy, of class `kind` if given, with `place` at the start of its message, and `fix` if it has none."""
        return (kind or type(self))(f"{place}{self}", fix=self.fix or fix)


class CueValueError(CueError, ValueError):
    """A parameter has the right type and a value that is not allowed."""


class CueTypeError(CueError, TypeError):
    """A parameter has a wrong type."""


class UnknownCueError(CueError, KeyError):
    """The bank has no cue of that name."""

    def __str__(self) -> str:
        # KeyError would show the repr of the message.
        return str(self.args[0]) if self.args else ""


class AudioFileError(CueError, ValueError):
    """A file cannot be used as audio: missing, unreadable, empty, too long or not finite."""

    code = "audio_file"


class PackError(CueError, ValueError):
    """A pack cannot be used: its folder, its `pack.toml` or an entry is wrong.

    Attributes
    ----------
    about : str
        The cue, rule or file with the fault; empty for the whole pack.
    """

    code = "pack"
    about: str = ""


class MissingFeatureError(CueError, RuntimeError):
    """An optional dependency is missing, too old or too new; the message says how to install it."""


class MixerClosedError(CueError, RuntimeError):
    """A cue was played in a closed session."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """End of a message about an unknown name, with the most similar known name; empty without one."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def reason_of(error: BaseException) -> str:
    """Reason of the system or of libsndfile for an error, without the path."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    return str(getattr(error, "strerror", None) or getattr(error, "error_string", error)) or type(error).__name__
