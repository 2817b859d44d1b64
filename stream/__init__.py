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
    from stream.readers.ollama_reader import OllamaReader as OllamaReader
    from stream.readers.openai_reader import OpenAIReader as OpenAIReader
    from stream.readers.text_reader import TextReader as TextReader
    from stream.readers.tool_calls import complete_calls as complete_calls
    from stream.reading import read as read
    from stream.reading import read_sync as read_sync
    from stream.routing.router import CueRouter as CueRouter
    from stream.routing.rules import CueRules as CueRules
    from stream.services.attempts import Attempts as Attempts
    from stream.services.connection import Connection as Connection
    from stream.services.connection import connect as connect
    from stream.services.filesystem import FILESYSTEM_TOOLS as FILESYSTEM_TOOLS
    from stream.services.filesystem import filesystem_tools as filesystem_tools
    from stream.services.model_names import normalize_model as normalize_model
    from stream.services.models import ModelCapabilities as ModelCapabilities
    from stream.services.models import capabilities_of as capabilities_of
    from stream.services.notices import AskedAgain as AskedAgain
    from stream.services.notices import InvalidToolCall as InvalidToolCall
    from stream.services.notices import ServiceEvent as ServiceEvent
    from stream.services.notices import ToolsLeftOut as ToolsLeftOut
    from stream.services.recovery import Fallback as Fallback
    from stream.services.recovery import Recovery as Recovery
    from stream.services.retrying import Retries as Retries
    from stream.services.runner import ToolRunner as ToolRunner
    from stream.services.tier_table import Tier as Tier
    from stream.services.tier_table import load_tiers as load_tiers
    from stream.services.tiers import KeywordClassifier as KeywordClassifier
    from stream.services.tiers import ToolTiers as ToolTiers
    from stream.services.tool import Tool as Tool
    from stream.services.validation import Validator as Validator
    from stream.session.history import ChatHistory as ChatHistory
    from stream.session.limits import Limits as Limits
    from stream.session.voice_session import VoiceSession as VoiceSession
    from stream.word_chunks import words as words
    from stream.word_chunks import words_sync as words_sync

_HOMES = {
    "AskedAgain": "stream.services.notices",
    "Attempts": "stream.services.attempts",
    "Connection": "stream.services.connection",
    "ChatHistory": "stream.session.history",
    "CueRouter": "stream.routing.router",
    "CueRules": "stream.routing.rules",
    "EmptyToolCalls": "stream.events",
    "FILESYSTEM_TOOLS": "stream.services.filesystem",
    "Event": "stream.events",
    "Fallback": "stream.services.recovery",
    "Finish": "stream.events",
    "InvalidToolCall": "stream.services.notices",
    "KeywordClassifier": "stream.services.tiers",
    "Limits": "stream.session.limits",
    "MissingFeatureError": "stream.errors",
    "ModelCapabilities": "stream.services.models",
    "OllamaReader": "stream.readers.ollama_reader",
    "OpenAIReader": "stream.readers.openai_reader",
    "ReasoningDelta": "stream.events",
    "RecordingError": "stream.errors",
    "Recovery": "stream.services.recovery",
    "Retries": "stream.services.retrying",
    "ServiceEvent": "stream.services.notices",
    "SpeakerError": "stream.errors",
    "StreamError": "stream.errors",
    "StreamFailed": "stream.events",
    "StreamTypeError": "stream.errors",
    "StreamValueError": "stream.errors",
    "TaskStatus": "stream.events",
    "TextDelta": "stream.events",
    "TextReader": "stream.readers.text_reader",
    "Tier": "stream.services.tier_table",
    "Tool": "stream.services.tool",
    "ToolCallEnd": "stream.events",
    "ToolCallStart": "stream.events",
    "ToolResult": "stream.events",
    "ToolRunner": "stream.services.runner",
    "ToolTiers": "stream.services.tiers",
    "ToolsLeftOut": "stream.services.notices",
    "Usage": "stream.events",
    "Validator": "stream.services.validation",
    "capabilities_of": "stream.services.models",
    "complete_calls": "stream.readers.tool_calls",
    "connect": "stream.services.connection",
    "filesystem_tools": "stream.services.filesystem",
    "load_tiers": "stream.services.tier_table",
    "normalize_model": "stream.services.model_names",
    "VoiceSession": "stream.session.voice_session",
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
