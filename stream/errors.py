"""The errors of the stream layer. A server's data never raises: a fault comes as an event."""

__all__ = [
    "MissingFeatureError",
    "RecordingError",
    "SpeakerError",
    "StreamError",
    "StreamTypeError",
    "StreamValueError",
]


class StreamError(Exception):
    """Root of all errors that `stream` raises."""


class StreamValueError(StreamError, ValueError):
    """A parameter has a value out of range."""


class StreamTypeError(StreamError, TypeError):
    """A parameter has the wrong type."""


class RecordingError(StreamError, ValueError):
    """A file is not a recording of a model's stream, or cannot be read or written."""


class SpeakerError(StreamError, RuntimeError):
    """A speaker cannot be started, or failed while it spoke."""


class MissingFeatureError(StreamError, RuntimeError):
    """An optional dependency is missing, too old or too new; the message says how to install it."""
