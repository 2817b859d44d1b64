"""Words to phrases."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.speech.voice_like import VoiceLikeSpeaker


def spoken(words):
    """The phrases that a speaker of phrases makes of the words."""
    phrases = []

    class Listed(VoiceLikeSpeaker):
        async def speak(self, phrase):
            phrases.append(phrase)
            return
            yield

    async def go():
        speaker = Listed()
        for word in words:
            await speaker.send(word)
        await speaker.finish()
        async for _ in speaker:
            pass

    asyncio.run(go())
    return phrases


@pytest.mark.parametrize(
    ("words", "phrases"),
    [
        (
            ["Well,", " yes:", " it", " is", " 3.5", " km", ' ("far").', " Go"],
            ["Well,", "yes:", 'it is 3.5 km ("far").', "Go"],
        ),
        (["東京。", " 行く", " よ!"], ["東京。", "行く よ!"]),
        (["今天北京的天气很", "好，", "「是吗？」", "明天"], ["今天北京的天气很好，", "「是吗？」", "明天"]),
        ([" word"] * 30, [" ".join(["word"] * n) for n in (12, 12, 6)]),
        ([" ", "\n"], []),
    ],
    ids=[
        "where a reader takes breath",
        "marks of other scripts",
        "text without spaces",
        "no mark in twelve words",
        "white space",
    ],
)
def test_a_phrase_ends_at_a_mark_or_after_twelve_words(words, phrases):
    assert spoken(words) == phrases


@given(st.lists(st.text(alphabet="ab,. ", min_size=1, max_size=6), max_size=40))
def test_no_word_is_lost_or_moved(words):
    words = [f" {word}" for word in words]
    assert " ".join(spoken(words)).split() == "".join(words).split()
