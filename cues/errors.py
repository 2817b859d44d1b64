"""The errors of the audio engine: one root, subclasses that are the matching builtin too, and how they are worded."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """Root of every error that `cues` raises on purpose.

    Attributes
    ----------
    code : which kind of error it is, for programs.
    fix : what to do about it; empty where the message says it.
    """

    code: ClassVar[str] = "error"

    def __init__(self, *arguments: object, fix: str = "") -> None:
        super().__init__(*arguments)
        self.fix = fix

    def within(self, place: str, kind: type[CueError] | None = None) -> CueError:
        """The same error, as a `kind` if one is given, with the place where it happened before its message."""
        return (kind or type(self))(f"{place}{self}", fix=self.fix)


class CueValueError(CueError, ValueError):
    """A parameter has the right type and a value outside of what is allowed."""


class CueTypeError(CueError, TypeError):
    """A parameter has a type that cannot be used here."""


class UnknownCueError(CueError, KeyError):
    """A cue was asked for by a name that the bank does not hold."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence should stay a sentence.
        return str(self.args[0]) if self.args else ""


class AudioFileError(CueError, ValueError):
    """A file cannot be used as audio: missing, unreadable, empty, too long or not finite."""

    code = "audio_file"


class PackError(CueError, ValueError):
    """A pack cannot be used: its folder, its `pack.toml`, or something that it says.

    Attributes
    ----------
    about : the cue, the rule or the file of the pack that it is about; empty if it is the whole pack.
    """

    code = "pack"
    about: str = ""


class MissingFeatureError(CueError, RuntimeError):
    """An optional dependency is missing, too old or too new; the message names it and says how to install it."""


class MixerClosedError(CueError, RuntimeError):
    """A cue was posted to a session that has ended."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known one that it resembles, or nothing if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def reason_of(error: BaseException) -> str:
    """Why something failed, in the words of the system or of libsndfile, without the path that they repeat."""
    return str(getattr(error, "strerror", None) or getattr(error, "error_string", error)) or type(error).__name__
