"""Streams from the grammar: nothing lost, nothing leaked, whatever the cuts and wherever the stream breaks off."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream import TextReader
from stream.readers.text.table import ROWS
from tests.stream.comparing import as_case_events, load, matches, normalise, random_splits
from tests.stream.grammar import DIALECTS, PROSE, SECRET, make_call, make_soup, make_stream

FRAGMENTS = [
    *(text for row in ROWS for text in row.markers + row.closers), *PROSE,
    "</think>", "`", "\n", " ", "name", '{"name": "f", "arguments": {"a": 1}}', '{"name": "f"', '{"a": 1}', "[f(a=1)]",
    '"', ":", ",", ";", "}", "]", "(", ")", "<function=f>", "<parameter=a>", "</parameter>", '<invoke name="f">',
    "<arg_key>k</arg_key>", "[ARGS]", "functions.f:0", "to=functions.f ", "analysis", "commentary ", "json", "final",
    "call:f{", "<escape>",
    "é", "\\", "\x00", "\u2028", "null", "-1.5e3", "'", '"""', "assistantfinal", "<|", "</", '{"tool_calls": [',
    '{"arguments": {"x": "y"}, ',
]  # fmt: skip
SEEDS = st.integers(0, 2**63)


def read(chunks, finish="stop", **options):
    reader = TextReader(**options)
    events = []
    for chunk in chunks:
        events += reader.feed(chunk)
    return as_case_events(events + reader.close(finish))


def cuts(text, rng):
    yield [text]
    yield list(text)
    yield from random_splits(text, rng, 2)


@settings(max_examples=250)
@given(SEEDS)
def test_calls_among_text_come_out_whole_over_every_chunking(seed):
    rng = random.Random(seed)
    text, expected = make_stream(rng)
    for chunks in cuts(text, rng):
        assert matches({"expect": expected}, read(chunks)), (text, chunks)


@settings(max_examples=250)
@given(SEEDS, st.sampled_from(["stop", "length", None]))
def test_stream_that_breaks_off_speaks_no_argument_and_reads_the_same_over_every_chunking(seed, finish):
    rng = random.Random(seed)
    text, _ = make_stream(rng)
    text = text[: rng.randint(0, len(text))]
    whole, *others = (normalise(read(chunks, finish), reasoning=True) for chunks in cuts(text, rng))
    assert all(other == whole for other in others), text
    assert SECRET not in "".join(event["text"] for event in whole if event["type"] == "text"), text


@settings(max_examples=250)
@given(SEEDS, st.sampled_from(["stop", "length", None]), st.sampled_from([None, ["f"], ["f", "name"]]))
def test_marker_soup_reads_the_same_over_every_chunking(seed, finish, tools):
    rng = random.Random(seed)
    text = make_soup(rng, FRAGMENTS)
    whole, *others = (normalise(read(chunks, finish, tools=tools)) for chunks in cuts(text, rng))
    assert all(other == whole for other in others), text


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
