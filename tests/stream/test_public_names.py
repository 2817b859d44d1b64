"""The public face of `stream`: few names, the rest in its rooms."""

import subprocess
import sys

import stream


def test_the_face_has_the_names_that_a_pipeline_uses():
    wanted = {"read", "read_sync", "words", "words_sync", "OpenAIReader", "OllamaReader", "TextReader", "TextDelta"}
    wanted |= {"ToolCallStart", "ToolCallEnd", "ToolResult", "Finish", "StreamFailed", "complete_calls", "CueRouter"}
    wanted |= {"AudioDelta", "TranscriptDelta", "Interrupted", "ToolCallCancelled", "ServerError"}
    wanted |= {"ResponsesReader", "RealtimeReader", "AnthropicReader", "GeminiReader", "LiveReader"}
    wanted |= {"CueRules", "VoiceSession", "ChatHistory", "Limits", "connect", "Tool", "ToolRunner", "StreamError"}
    assert wanted <= set(stream.__all__)
    assert len(stream.__all__) <= 46


def test_every_name_of_the_services_can_be_had():
    for name in stream.services.__all__:
        assert getattr(stream.services, name) is not None


def test_the_rooms_are_there_after_importing_the_package_alone_and_are_listed():
    rooms = ("errors", "events", "readers", "replay", "services", "session", "speech")
    script = f"import stream; print(*(getattr(stream, room) for room in {rooms}), set({rooms}) - set(dir(stream)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("set()\n")
