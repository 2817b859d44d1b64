"""Text that a server marks for a program, and text that is spoken."""

import json

import pytest

import cues
import stream
from stream.events import TextDelta
from stream.session import VoiceSession
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.model_server import BOTH, chat, says
from tests.support.virtual_loop import LoopClock, run_virtually


@pytest.mark.parametrize(
    ("name", "channel"), [("fork-json-channel", "json"), ("fork-text-channel", "text"), ("ollama-plain-text", None)]
)
@BOTH
def test_text_carries_the_channel_that_the_server_marks(name, channel, endpoint):
    exchange = chat(name, endpoint=endpoint)
    assert {event.channel for event in exchange.of(TextDelta)} == {channel}


@pytest.mark.parametrize(("name", "spoken"), [("fork-json-channel", ""), ("fork-text-channel", "Here is the plan.")])
@BOTH
def test_data_for_a_program_is_not_spoken(name, spoken, endpoint):
    class Silent:
        def write(self, mixed, speech): ...

    async def go():
        mixer = cues.Mixer(24000)
        clock = LoopClock()
        router = stream.CueRouter({}, mixer)
        session = VoiceSession(mixer=mixer, router=router, speaker=VoiceLikeSpeaker(), sink=Silent(), clock=clock)
        return await session.run(replayed())

    async def replayed():
        for event in read:
            yield event

    read = chat(name, endpoint=endpoint).events
    assert run_virtually(go).spoken_text == spoken


@BOTH
def test_a_program_that_asks_gets_the_data_that_is_not_spoken(endpoint):
    read = chat("fork-json-channel", endpoint=endpoint).events
    data = [event.text for event in read if isinstance(event, TextDelta) and event.channel == "json"]
    assert json.loads("".join(data)) == {"plan": [1, 2]}
    assert not [event for event in stream.words_sync(read) if isinstance(event, TextDelta)]
    asked = [event for event in stream.words_sync(read, silent_channels=()) if isinstance(event, TextDelta)]
    assert json.loads("".join(event.text for event in asked)) == {"plan": [1, 2]}
    assert {event.channel for event in asked} == {"json"}


DATA = '{"name": "search", "arguments": {"query": "weather in Oslo"}}'


@pytest.mark.parametrize("asked", [{"format": "json"}, {"response_format": {"type": "json_object"}}], ids=str)
@BOTH
def test_json_that_was_asked_for_and_looks_like_a_call_is_text(asked, endpoint):
    exchange = chat(says([["say", DATA]]), endpoint=endpoint, **asked)
    assert exchange.text == DATA
    assert exchange.calls == []


@pytest.mark.parametrize("cut", range(1, len(DATA), 7))
def test_what_a_channel_for_programs_holds_is_as_it_was_sent(cut):
    lines = [
        {"message": {"role": "assistant", "content": text}, "kind": kind, "done": False}
        for text, kind in (("So: [", "text"), (DATA[:cut], "json"), (DATA[cut:], "json"), ("There.", "text"))
    ]
    events = [event for event in stream.read_sync(lines) if isinstance(event, TextDelta)]
    assert "".join(event.text for event in events if event.channel == "json") == DATA
    assert "".join(event.text for event in events if event.channel == "text") == "So: [There."
