"""The public face of `stream`: few names, the rest in its rooms, and old names that say where they went."""

import subprocess
import sys

import pytest

import stream


def test_the_face_has_the_names_that_a_pipeline_uses():
    wanted = {"read", "read_sync", "words", "words_sync", "OpenAIReader", "OllamaReader", "TextReader", "TextDelta"}
    wanted |= {"ToolCallStart", "ToolCallEnd", "ToolResult", "Finish", "StreamFailed", "complete_calls", "CueRouter"}
    wanted |= {"AudioDelta", "TranscriptDelta", "Interrupted", "ToolCallCancelled", "ServerError"}
    wanted |= {"ResponsesReader", "RealtimeReader", "AnthropicReader", "GeminiReader", "LiveReader"}
    wanted |= {"CueRules", "VoiceSession", "ChatHistory", "Limits", "connect", "Tool", "ToolRunner", "StreamError"}
    assert wanted <= set(stream.__all__)
    assert len(stream.__all__) <= 46


@pytest.mark.parametrize("name", sorted(stream._MOVED))
def test_a_name_that_has_moved_works_and_says_where_it_is_now(name):
    with pytest.warns(DeprecationWarning, match=rf"stream\.{name} is now stream\.\w+\.{name}"):
        old = getattr(stream, name)
    assert old is getattr(getattr(stream, stream._MOVED[name].partition(".")[2], None) or stream.events, name)


def test_every_name_of_the_services_can_be_had():
    for name in stream.services.__all__:
        assert getattr(stream.services, name) is not None


def test_the_rooms_are_there_after_importing_the_package_alone():
    script = "import stream; print(stream.services.Validator, stream.errors.StreamTypeError, stream.session.Limits)"
    subprocess.run([sys.executable, "-c", script], check=True)
