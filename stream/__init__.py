"""From a model server's stream to speakable text and audible events.

`read` turns what a server streams into events, `words` cuts their text for a voice, and a `CueRouter` plays the cues::

    bank = cues.load_bank()
    mixer = cues.Mixer(sample_rate=24000)  # one for each session; it mixes the voice's frames: mixer.mix(frame)
    router = stream.CueRouter(bank, mixer)
    async with stream.connect("http://localhost:11434", "qwen3:8b") as model:
        runner = stream.ToolRunner(model, [get_weather])  # runs the calls, and asks again with their results
        async for event in stream.words(runner.chat(messages)):
            router.handle(event)
            if isinstance(event, stream.TextDelta):
                await tts.send(event.text)  # never a character of a call

`stream.read(response)` takes the place of `runner.chat(messages)` if a client of yours asks the model. `help` of a name
(`stream.read`, `stream.CueRouter`, `stream.VoiceSession`, …) has an example; stream/README.md is the guide.

Names are imported at their first use (PEP 562), so `import stream` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream import errors as errors
    from stream import events as events
    from stream import readers as readers
    from stream import replay as replay
    from stream import services as services
    from stream import session as session
    from stream import speech as speech
    from stream.errors import StreamError as StreamError
    from stream.events import AskedAgain as AskedAgain
    from stream.events import AudioDelta as AudioDelta
    from stream.events import EmptyToolCalls as EmptyToolCalls
    from stream.events import Event as Event
    from stream.events import Finish as Finish
    from stream.events import Interrupted as Interrupted
    from stream.events import InvalidToolCall as InvalidToolCall
    from stream.events import ReasoningDelta as ReasoningDelta
    from stream.events import ServerError as ServerError
    from stream.events import StreamFailed as StreamFailed
    from stream.events import TaskStatus as TaskStatus
    from stream.events import TextDelta as TextDelta
    from stream.events import ToolCallCancelled as ToolCallCancelled
    from stream.events import ToolCallEnd as ToolCallEnd
    from stream.events import ToolCallStart as ToolCallStart
    from stream.events import ToolResult as ToolResult
    from stream.events import ToolsLeftOut as ToolsLeftOut
    from stream.events import TranscriptDelta as TranscriptDelta
    from stream.events import Usage as Usage
    from stream.readers.calls.fragments import complete_calls as complete_calls
    from stream.readers.formats.anthropic import AnthropicReader as AnthropicReader
    from stream.readers.formats.chat_completions import OpenAIReader as OpenAIReader
    from stream.readers.formats.gemini import GeminiReader as GeminiReader
    from stream.readers.formats.gemini import LiveReader as LiveReader
    from stream.readers.formats.ollama import OllamaReader as OllamaReader
    from stream.readers.formats.raw_text import TextReader as TextReader
    from stream.readers.formats.realtime import RealtimeReader as RealtimeReader
    from stream.readers.formats.responses import ResponsesReader as ResponsesReader
    from stream.reading import read as read
    from stream.reading import read_sync as read_sync
    from stream.repairing.streams import repair as repair
    from stream.repairing.streams import repair_sync as repair_sync
    from stream.routing.router import CueRouter as CueRouter
    from stream.routing.rules import CueRules as CueRules
    from stream.routing.rules import Limits as Limits
    from stream.routing.rules import Profile as Profile
    from stream.routing.tool_times import ToolTimes as ToolTimes
    from stream.services.connection import connect as connect
    from stream.services.runner import ToolRunner as ToolRunner
    from stream.services.tool import Tool as Tool
    from stream.session.history import ChatHistory as ChatHistory
    from stream.session.voice_session import VoiceSession as VoiceSession
    from stream.word_chunks import words as words
    from stream.word_chunks import words_sync as words_sync

_HOMES = {
    name: home
    for home, names in {
        "stream.errors": "StreamError",
        "stream.events": "AskedAgain AudioDelta EmptyToolCalls Event Finish Interrupted InvalidToolCall "
        "ReasoningDelta ServerError StreamFailed TaskStatus TextDelta ToolCallCancelled ToolCallEnd "
        "ToolCallStart ToolResult ToolsLeftOut TranscriptDelta Usage",
        "stream.readers.formats.anthropic": "AnthropicReader",
        "stream.readers.formats.gemini": "GeminiReader LiveReader",
        "stream.readers.formats.ollama": "OllamaReader",
        "stream.readers.formats.chat_completions": "OpenAIReader",
        "stream.readers.formats.realtime": "RealtimeReader",
        "stream.readers.formats.responses": "ResponsesReader",
        "stream.readers.formats.raw_text": "TextReader",
        "stream.readers.calls.fragments": "complete_calls",
        "stream.reading": "read read_sync",
        "stream.repairing.streams": "repair repair_sync",
        "stream.routing.router": "CueRouter",
        "stream.routing.rules": "CueRules Limits Profile",
        "stream.routing.tool_times": "ToolTimes",
        "stream.services.connection": "connect",
        "stream.services.runner": "ToolRunner",
        "stream.services.tool": "Tool",
        "stream.session.history": "ChatHistory",
        "stream.session.voice_session": "VoiceSession",
        "stream.word_chunks": "words words_sync",
    }.items()
    for name in names.split()
}

_ROOMS = ("errors", "events", "readers", "replay", "services", "session", "speech")

__all__ = [*_HOMES]  # noqa: PLE0604  (the keys are strings)


def __getattr__(name: str) -> object:
    """Import a public name, or a subpackage, at its first use."""
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"stream.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'stream' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
