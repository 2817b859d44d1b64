"""Streams from the grammar: nothing lost, nothing leaked, whatever the cuts and wherever the stream breaks off."""

import random

import pytest

from bench import stream_formats_fuzz, stream_fuzz
from stream import TextReader
from tests.stream.comparing import as_case_events, load, matches, random_splits
from tests.stream.grammar import DIALECTS, PROSE, make_call
from tests.stream.providers import read_all


def read(chunks):
    return as_case_events(read_all(TextReader(), chunks))


def cuts(text, rng):
    yield [text]
    yield list(text)
    yield from random_splits(text, rng, 2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fuzz", [stream_fuzz, stream_formats_fuzz], ids=["text", "messages"])
def test_made_spoilt_mixed_and_cut_streams_break_no_promise_over_any_chunking(fuzz, seed):
    for number in range(100):
        assert fuzz.broken_promise(random.Random(f"test {seed}:{number}")) is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_one_call_between_two_lines_of_text(dialect):
    rng = random.Random(dialect)
    for _ in range(10):
        call, event = make_call(rng, "set_lamp", dialect)
        expected = [{"type": "text", "text": "Before.\n"}, event, {"type": "text", "text": "\nAfter."}]
        for chunks in cuts(f"Before.\n{call}\nAfter.", rng):
            assert matches({"expect": expected}, read(chunks)), (call, chunks)


@pytest.mark.parametrize("prose", PROSE)
def test_ordinary_text_comes_out_unaltered(prose):
    for chunks in cuts(prose, random.Random(0)):
        assert "".join(event["text"] for event in read(chunks)) == prose


def test_text_without_triggers_is_never_held_back():
    reader = TextReader()
    for char in "Plain words, 1 < 2 & 3 > 2; (ok) – naïve: 50% #tag @you *x* _y_ |z| ~5 ^6 $7 'q' \"r\"":
        events = reader.feed(char)
        assert char == "<" or "".join(event.text for event in events).endswith(char)


def test_text_is_held_back_by_32_characters_and_a_name_at_most():
    text = "".join(PROSE)
    reader, out = TextReader(), 0
    for fed, char in enumerate(text, 1):
        out += sum(len(event.text) for event in reader.feed(char))
        assert fed - out <= 32 + 64, text[out:fed]


@pytest.mark.parametrize("tools", [None, ["get_weather", "search"]], ids=["no tools", "tools"])
def test_text_full_of_triggers_waits_for_40_characters_at_most(tools):
    for case in load("false_positive"):
        reader, out = TextReader(case.get("tools", tools)), 0
        for fed, char in enumerate(case["input"], 1):
            out += sum(len(event.text) for event in reader.feed(char))
            assert fed - out <= 40, case["input"][out:fed]


def test_call_behind_a_thousand_pieces_of_text_is_read_like_any_other():
    pieces = [f"Line {number:04} of a long answer, longer than any token.\n" for number in range(1000)]
    call, event = make_call(random.Random(0), "set_lamp", "hermes")
    expected = [{"type": "text", "text": "".join(pieces)}, event]
    assert matches({"expect": expected}, read([*pieces, call]))


def test_text_behind_a_call_that_cannot_be_read_and_never_ends_comes_out():
    text = "".join(f"Sentence {number} goes on. " for number in range(1000))
    events = read(['<tool_call>{"name": "f", "arguments": {oops\n', text])
    assert matches({"expect": [{"type": "malformed", "name": "f"}, {"type": "text", "text": text}]}, events)
