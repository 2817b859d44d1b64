"""The errors of the stream layer. What a server sends never raises: it comes as an event."""

from __future__ import annotations

__all__ = [
    "MissingFeatureError",
    "RecordingError",
    "SpeakerError",
    "StreamError",
    "StreamTypeError",
    "StreamValueError",
]


class StreamError(Exception):
    """Root of every error that `stream` raises on purpose."""


class StreamValueError(StreamError, ValueError):
    """A parameter has the right type and a value outside of what is allowed."""


class StreamTypeError(StreamError, TypeError):
    """A parameter has a type that cannot be used here."""


class RecordingError(StreamError, ValueError):
    """A file is not a recording of a model's stream, or cannot be read or written."""


class SpeakerError(StreamError, RuntimeError):
    """A speaker (what turns text into audio) cannot be started, or failed while it spoke."""


class MissingFeatureError(StreamError, RuntimeError):
    """An optional dependency is missing, too old or too new; the message names it and says how to install it."""
