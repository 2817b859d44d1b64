"""Streams of providers give the expected events: bytes at any split, and decoded messages, without a named reader."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import stream
from stream import AnthropicReader, GeminiReader, LiveReader, RealtimeReader, ResponsesReader
from tests.stream.providers import EXPECTED, cuts, data_of, expected, messages_of, outcome, read_all

READERS = {
    "responses": ResponsesReader, "realtime": RealtimeReader, "anthropic": AnthropicReader, "gemini": GeminiReader,
    "live": LiveReader,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_gives_the_same_events_over_every_split(name):
    whole = list(stream.read_sync([data_of(name)]))
    assert outcome(whole) == expected(name)
    for parts in cuts(data_of(name), name):
        assert list(stream.read_sync(parts)) == whole


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_gives_the_same_events_as_decoded_messages_and_as_text(name):
    whole = list(stream.read_sync([data_of(name)]))
    assert list(stream.read_sync(messages_of(name))) == whole
    assert list(stream.read_sync([data_of(name).decode()])) == whole
    assert list(stream.read_sync(json.dumps(message) for message in messages_of(name))) == whole
    assert list(stream.read_sync(json.dumps(message).encode() for message in messages_of(name))) == whole


@pytest.mark.parametrize("name", EXPECTED)
def test_the_reader_that_is_named_gives_what_the_found_one_does(name):
    reader = READERS[name.partition("/")[0]]
    whole = list(stream.read_sync([data_of(name)]))
    assert read_all(reader(), [data_of(name)]) == whole
    assert list(stream.read_sync(messages_of(name), reader=reader())) == whole


def test_bytes_and_dicts_are_read_without_the_packages():
    script = """
import json, sys
for name in ("openai", "anthropic", "google", "pydantic", "jiter", "httpx", "websockets"):
    sys.modules[name] = None
import stream
from tests.stream.providers import EXPECTED, data_of, expected, messages_of, outcome
for name in EXPECTED:
    assert outcome(stream.read_sync([data_of(name)])) == expected(name), name
    assert outcome(stream.read_sync(messages_of(name))) == expected(name), name
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])
