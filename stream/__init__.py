"""From what a model server sends to text that can be spoken and events that can be heard.

Names are imported from their modules when they are first used, so that `import stream` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream.errors import MissingFeatureError as MissingFeatureError
    from stream.errors import RecordingError as RecordingError
    from stream.errors import SpeakerError as SpeakerError
    from stream.errors import StreamError as StreamError
    from stream.errors import StreamTypeError as StreamTypeError
    from stream.errors import StreamValueError as StreamValueError
    from stream.events import EmptyToolCalls as EmptyToolCalls
    from stream.events import Event as Event
    from stream.events import Finish as Finish
    from stream.events import ReasoningDelta as ReasoningDelta
    from stream.events import StreamFailed as StreamFailed
    from stream.events import TaskStatus as TaskStatus
    from stream.events import TextDelta as TextDelta
    from stream.events import ToolCallEnd as ToolCallEnd
    from stream.events import ToolCallStart as ToolCallStart
    from stream.events import ToolResult as ToolResult
    from stream.events import Usage as Usage
    from stream.ollama_reader import OllamaReader as OllamaReader
    from stream.openai_reader import OpenAIReader as OpenAIReader
    from stream.reading import read as read
    from stream.reading import read_sync as read_sync
    from stream.router import CueRouter as CueRouter
    from stream.text_reader import TextReader as TextReader
    from stream.word_chunks import words as words
    from stream.word_chunks import words_sync as words_sync

_HOMES = {
    "CueRouter": "stream.router",
    "EmptyToolCalls": "stream.events",
    "Event": "stream.events",
    "Finish": "stream.events",
    "MissingFeatureError": "stream.errors",
    "OllamaReader": "stream.ollama_reader",
    "OpenAIReader": "stream.openai_reader",
    "ReasoningDelta": "stream.events",
    "RecordingError": "stream.errors",
    "SpeakerError": "stream.errors",
    "StreamError": "stream.errors",
    "StreamFailed": "stream.events",
    "StreamTypeError": "stream.errors",
    "StreamValueError": "stream.errors",
    "TaskStatus": "stream.events",
    "TextDelta": "stream.events",
    "TextReader": "stream.text_reader",
    "ToolCallEnd": "stream.events",
    "ToolCallStart": "stream.events",
    "ToolResult": "stream.events",
    "Usage": "stream.events",
    "read": "stream.reading",
    "read_sync": "stream.reading",
    "words": "stream.word_chunks",
    "words_sync": "stream.word_chunks",
}

__all__ = [*_HOMES]  # noqa: PLE0604  (the keys are strings)


def __getattr__(name: str) -> object:
    """Import a public name from its module at first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'stream' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
