"""Whole words for text-to-speech, and events in their places among them."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import Finish, TextDelta, ToolCallStart, words, words_sync

CALL = ToolCallStart("lock", "", 0)


def texts(*events):
    return [event.text if isinstance(event, TextDelta) else event for event in words_sync(events)]


def test_space_before_a_word_belongs_to_it():
    assert texts(TextDelta("Good mor"), TextDelta("ning, "), TextDelta("Ada.")) == ["Good", " morning,", " Ada."]


def test_run_of_white_space_is_one_space_even_over_deltas():
    assert texts(TextDelta("a \n"), TextDelta("\t b")) == ["a", " b"]


def test_other_event_flushes_and_passes_at_once_with_no_space_lost():
    assert texts(TextDelta("Let me see. "), CALL, TextDelta("Done now")) == [
        "Let", " me", " see.", CALL, " Done", " now",
    ]  # fmt: skip
    assert texts(TextDelta("Hel"), CALL, TextDelta("lo")) == ["Hel", CALL, "lo"]
    assert texts(TextDelta("Hi"), CALL, TextDelta(" there"), Finish("stop")) == ["Hi", CALL, " there", Finish("stop")]


def test_channel_stays_with_its_words():
    events = list(words_sync([TextDelta("a b", "text"), TextDelta("c", "json")]))
    assert events == [TextDelta("a", "text"), TextDelta(" b", "text"), TextDelta("c", "json")]


@given(st.text(alphabet="ab \n", max_size=30), st.integers(1, 7))
def test_words_do_not_depend_on_the_deltas(text, size):
    deltas = [TextDelta(text[start : start + size]) for start in range(0, len(text), size)]
    assert texts(*deltas) == texts(TextDelta(text))
    assert "".join(texts(*deltas)).split() == text.split()


@pytest.mark.parametrize("text", ["", "one", " one two  three "])
def test_asynchronous_twin_gives_the_same(text):
    async def source():
        for char in text:
            yield TextDelta(char)
        yield CALL

    async def collect():
        return [event async for event in words(source())]

    assert asyncio.run(collect()) == list(words_sync([*map(TextDelta, text), CALL]))


def test_halves_of_a_surrogate_pair_become_a_character_and_a_lonely_one_can_be_encoded():
    told = list(words_sync([TextDelta("ha \ud83d"), TextDelta("\ude00! so \ud83d it")]))
    assert [event.text for event in told] == ["ha", " \U0001f600!", " so", " \ufffd", " it"]
