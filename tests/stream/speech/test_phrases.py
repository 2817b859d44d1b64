"""Words to phrases."""

import asyncio

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


def test_a_phrase_ends_where_a_reader_takes_breath():
    words = ["Well,", " yes:", " it", " is", " 3.5", " km", ' ("far").', " Go"]
    assert spoken(words) == ["Well,", "yes:", 'it is 3.5 km ("far").', "Go"]


def test_marks_of_other_scripts_end_a_phrase_too():
    assert spoken(["東京。", " 行く", " よ!"]) == ["東京。", "行く よ!"]


def test_a_listener_does_not_wait_for_a_mark_that_never_comes():
    assert [len(phrase.split()) for phrase in spoken([" word"] * 30)] == [12, 12, 6]


def test_white_space_alone_is_no_phrase():
    assert spoken([" ", "\n"]) == []


@given(st.lists(st.text(alphabet="ab,. ", min_size=1, max_size=6), max_size=40))
def test_no_word_is_lost_or_moved(words):
    words = [f" {word}" for word in words]
    assert " ".join(spoken(words)).split() == "".join(words).split()
