"""Text that a server marks for a program, and text that is spoken."""

import pytest

import stream
from stream.events import TextDelta
from tests.support.model_server import BOTH, chat, says
from tests.support.turns import run_turn


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
    events = chat(name, endpoint=endpoint).events
    assert run_turn([(0.0, event) for event in events]).journal.spoken_text == spoken


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
