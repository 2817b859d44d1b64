"""Cues that are speech: in turn, never over words, and none of the answer's time."""

import asyncio
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cues
from cues import Cue
from stream import CueRules, Finish, InvalidToolCall, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.errors import SpeakerError, StreamError
from stream.session import phrases
from stream.speech.espeak import EspeakSpeaker
from stream.speech.speaker import PhraseSpeaker, Speech
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.turns import RATE, run_turn
from tests.support.virtual_loop import LoopClock, run_virtually

FADE = 5 * RATE // 1000
PAUSE = RATE // 2


def square(seconds, level):
    """A sound whose magnitude is `level` from its first sample to its last."""
    return np.resize(np.float32([level] * 20 + [-level] * 20), round(seconds * RATE))


def spoken(name, *levels, loop=False):
    """A cue of phrases of 0.9 s, told apart by their level."""
    said = [np.append(square(0.9, level), np.zeros(PAUSE, dtype=np.float32)) for level in levels]
    parts = tuple(Cue(name=name, samples=samples, sample_rate=RATE) for samples in said)
    return Cue(name=name, samples=np.concatenate(said), sample_rate=RATE, loop=loop, phrases=parts)


BANK = cues.load_bank("") | {
    "working": spoken("working", 0.05, 0.06, 0.07, loop=True),
    "tool_call": spoken("tool_call", 0.09, 0.1),
}
SILENT = ("working", "tool_call", "agent", "success", "error", "failed", "incomplete", "malformed", "invented")
RULES = CueRules(success=None, error=None, failed=None, incomplete=None, malformed=None, invented=None)


class LateSpeaker(PhraseSpeaker):
    """Speaks a word in 0.2 s, and begins each phrase after a while."""

    name = "late"

    def __init__(self, late_s):
        super().__init__()
        self._late_s = late_s

    async def speak(self, phrase):
        await LoopClock().sleep(self._late_s)
        yield Speech(square(0.2 * len(phrase.split()), 0.3))


def call(number):
    return [
        ToolCallStart(tool_name="look", tool_call_id=str(number)),
        ToolCallEnd(tool_name="look", tool_call_id=str(number), arguments_json="{}", status="ok"),
    ]


def result(number):
    return [ToolResult(tool_name="look", tool_call_id=str(number), is_error=False, content="")]


TEXT = [TextDelta("It is a finch."), TextDelta(" Look."), TextDelta(" Well")]
steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.02, 0.3, 1.1, 4.0, 7.3]),
        st.one_of(
            st.sampled_from(TEXT).map(lambda event: [event]), st.integers(0, 2).map(call), st.integers(0, 2).map(result)
        ),
    ),
    max_size=9,
)


def timed(turn):
    """A turn of (seconds from the step before, events) as `run_turn` takes it."""
    script, now_s = [], 0.0
    for after_s, events in turn:
        now_s += after_s
        script += [(now_s, event) for event in events]
    return [*script, (now_s + 1.0, Finish(reason="stop"))]


def runs(mask):
    """First sample and length of each stretch in which `mask` is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2], edges[1::2] - edges[::2], strict=True))


def phrases_heard(tape):
    """The level of each phrase that was heard, in percent, in order."""
    alone = np.abs(tape.mixed - tape.speech)
    return [round(100 * alone[start : start + length].max()) for start, length in runs(alone > 1e-5)]


# A phrase of the waiting sound is stopped in the frame before the answer's first word.
STOPPED_AS_WORDS_BEGIN = [(0.02, call(0)), (0.02, [TEXT[2]]), (1.1, [TEXT[0]]), (7.3, [TEXT[0]])]


@settings(max_examples=40, deadline=None)
@example(turns=[STOPPED_AS_WORDS_BEGIN], late_s=4.2)
@given(turns=st.lists(steps, min_size=1, max_size=2), late_s=st.sampled_from([0.05, 0.4, 4.2]))
def test_no_two_voices_sound_at_once_and_the_answer_is_as_early_as_without_phrases(turns, late_s):
    scripts = [timed(turn) for turn in turns]
    told = run_turn(scripts, speaker=LateSpeaker(late_s), bank=BANK, rules=RULES)
    without = run_turn(scripts, speaker=LateSpeaker(late_s), rules=CueRules(**dict.fromkeys(SILENT)))
    tape, phrase = told.tape, np.abs(told.tape.mixed - told.tape.speech)
    both = (np.abs(tape.speech) > 0.01) & (phrase > 1e-5)
    assert max((length for _, length in runs(both)), default=0) <= FADE
    assert max(phrase, default=0.0) < 0.1 + 1e-6  # no two phrases, either
    words, expected = np.flatnonzero(tape.speech), np.flatnonzero(without.tape.speech)
    assert len(words) == len(expected)
    if len(scripts) == 1:
        assert np.array_equal(words, expected)
    heard = phrases_heard(tape)
    for others in ({9, 10}, {5, 6, 7}):
        # A phrase that was cut off as it began had its turn, at a level of its own.
        own = [level for level in heard if level not in others]
        assert all(one != following or one < 5 for one, following in pairwise(own))
    assert told.history.messages == without.history.messages


def test_phrases_are_taken_in_turn_through_a_session_and_end_with_the_answers_first_word():
    waiting = timed([(0.0, call(0)), (12.0, result(0)), (0.3, [TEXT[0]])])
    cut = timed([(0.0, call(1)), (0.3, result(1)), (0.0, [TextDelta("It is a finch. ")])])
    told = run_turn([waiting, waiting, cut], speaker=LateSpeaker(0.3), bank=BANK, rules=RULES)
    assert phrases_heard(told.tape) == [9, 5, 6, 10, 7, 5, 9]
    phrase = np.abs(told.tape.mixed - told.tape.speech) > 1e-5
    start, length = runs(phrase)[-1]
    answer = runs(np.abs(told.tape.speech) > 0.01)[-1][0]
    assert answer < start + length <= answer + FADE
    span = max(told.router.spans, key=lambda span: span.start_samples)
    assert span.cue == "tool_call"
    assert (span.start_samples, span.end_samples) == pytest.approx((start, start + length), abs=FADE)


def test_a_phrase_waits_for_words_that_are_on_their_way_and_gives_way_to_more():
    words = [(0.0, [TEXT[0]]), (0.0, call(0))]
    told = run_turn(timed([*words, (3.0, result(0))]), speaker=LateSpeaker(0.4), bank=BANK, rules=RULES)
    ((first, length),) = runs(np.abs(told.tape.speech) > 0.01)
    (phrase, _), *_ = runs(np.abs(told.tape.mixed - told.tape.speech) > 1e-5)
    assert phrase == pytest.approx(first + length + RATE // 4, abs=FADE)
    for late_s in (0.1, 0.4):  # in the longer pause between the texts a phrase would begin
        told = run_turn(timed([*words, (0.5, [TEXT[1]])]), speaker=LateSpeaker(late_s), bank=BANK, rules=RULES)
        assert np.array_equal(told.tape.mixed, told.tape.speech)


def failed(number):
    return [ToolResult(tool_name="look", tool_call_id=str(number), is_error=True, content="")]


@pytest.mark.parametrize(
    ("end", "levels"),
    [(failed(2), [3]), ([StreamFailed("the server is gone")], [3]), (result(2), [9])],
    ids=["a tool fails", "the model fails", "all is well"],
)
def test_of_the_phrases_that_wait_for_words_one_is_heard_and_a_failure_before_a_call(end, levels):
    bank = {**BANK, "error": spoken("error", 0.03), "tool_call": spoken("tool_call", 0.09)}
    rules = CueRules(success=None, working=None)
    calls = [step for number in range(3) for step in ((0.9, call(number)), (0.1, result(number)))][:5]
    turn = timed([(0.0, [TextDelta("word " * 25)]), *calls, (0.1, end)])
    told = run_turn(turn, speaker=LateSpeaker(0.1), bank=bank, rules=rules)
    assert phrases_heard(told.tape) == levels


MALFORMED = ToolCallEnd(tool_name="look", tool_call_id="2", arguments_json="{", status="malformed")
UNKNOWN = InvalidToolCall("look", "2", 0, "schema", "no")


@pytest.mark.parametrize("fault", [[MALFORMED], [UNKNOWN], failed(2)], ids=["malformed", "invalid", "its tool fails"])
def test_a_call_that_fails_is_told_of_though_the_next_one_is_well(fault):
    bank = {**BANK, "error": spoken("error", 0.03), "success": spoken("success", 0.02)}
    steps = [(0.3, call(2)[:1]), (0.0, fault), (0.6, call(1)), (0.6, result(1))]
    turn = timed([(0.0, [TextDelta("word " * 25)]), *steps])
    told = run_turn(turn, speaker=LateSpeaker(0.1), bank=bank, rules=CueRules(working=None))
    assert phrases_heard(told.tape) == [3]


@pytest.mark.parametrize("name", ["error", "of_my_own"])
@pytest.mark.parametrize(("text", "later_s"), [("", 0.0), ("", 0.1), ("word " * 12, 0.0)])
def test_a_stream_that_breaks_within_a_call_has_the_phrase_of_a_failure_once(text, later_s, name):
    bank = {**BANK, "error": spoken(name, 0.03)}
    cut = [
        ToolCallStart(tool_name="look", tool_call_id="1"),
        ToolCallEnd(tool_name="look", tool_call_id="1", arguments_json='{"pa', status="incomplete"),
    ]
    failure = StreamFailed("the stream ended without a finish reason", code="unfinished")
    told = run_turn(
        timed([(0.0, [TextDelta(text)]), (0.3, cut), (later_s, [failure])]), speaker=LateSpeaker(0.1), bank=bank
    )
    assert phrases_heard(told.tape)[-1:] == [3]
    assert [cue.cue for cue in told.journal.sounded].count("error") == 1


def test_no_phrase_of_a_call_follows_a_turn_that_has_failed():
    turn = timed([(0.0, [TextDelta("word " * 25)]), (0.5, call(0)), (0.5, [StreamFailed("the server is gone")])])
    told = run_turn(turn, speaker=LateSpeaker(0.1), bank=BANK, rules=CueRules(working=None))
    assert [cue.cue for cue in told.journal.sounded] == ["error"]


@pytest.mark.parametrize("speaker", [EspeakSpeaker("en-us"), VoiceLikeSpeaker()], ids=lambda speaker: speaker.name)
def test_a_speaker_makes_phrases_as_loud_as_speech_and_can_speak_on(speaker):
    async def go():
        await speaker.start()
        try:
            made = await phrases(speaker, {"working": ["One moment.", "Still looking."], "tool_call": ["Let me see."]})
            again = await phrases(speaker, {"working": ["One moment."]}, language="en", speech_lufs=-26.0)
        finally:
            await speaker.aclose()
        return made, again

    made, again = asyncio.run(go())
    bank = cues.load_bank("") | made
    assert [len(bank[name].phrases) for name in ("working", "tool_call")] == [2, 1]
    assert bank["working"].loop
    assert not bank["tool_call"].loop
    for phrase in (*made["working"].phrases, *made["tool_call"].phrases):
        voiced = phrase.samples[: np.flatnonzero(phrase.samples)[-1]]
        assert cues.integrated_lufs(voiced, RATE) == pytest.approx(-20.0, abs=2.5)
    assert again["working"].measured.m100_max_lufs == pytest.approx(
        made["working"].measured.m100_max_lufs - 6.0, abs=0.1
    )


def test_after_a_phrase_that_failed_the_next_answer_is_its_own():
    class FailsOnce(LateSpeaker):
        n_spoken = 0

        async def speak(self, phrase):
            self.n_spoken += 1
            if self.n_spoken == 1:
                raise SpeakerError("the line is dead")
            async for speech in super().speak(phrase):
                yield speech

    async def go():
        speaker = FailsOnce(0.1)
        with pytest.raises(SpeakerError, match="the line is dead"):
            await phrases(speaker, {"working": ["One moment, please."]})
        return await phrases(speaker, {"working": ["Wait."]})

    (phrase,) = run_virtually(go)["working"].phrases
    assert np.count_nonzero(phrase.samples) == pytest.approx(0.2 * RATE, rel=0.1)


@pytest.mark.parametrize(
    ("texts", "language", "names"),
    [(None, "de", ["working"]), ({"working": None, "agent": ["I ask."]}, "en-us", ["working", "agent"])],
    ids=["all stock phrases", "for one cue"],
)
def test_stock_phrases_are_spoken_where_none_are_given(texts, language, names):
    made = asyncio.run(phrases(VoiceLikeSpeaker(), texts, language=language))
    assert list(made) == names
    assert len(made["working"].phrases) == 2


class Mute(VoiceLikeSpeaker):
    async def speak(self, phrase):
        yield Speech(np.zeros(10 * len(phrase), dtype=np.float32))


@pytest.mark.parametrize(
    ("speaker", "texts", "language", "error", "match"),
    [
        (VoiceLikeSpeaker(), {"working": "One moment."}, "en", StreamError, "list of phrases"),
        (VoiceLikeSpeaker(), {"working": [" "]}, "en", StreamError, "list of phrases"),
        (VoiceLikeSpeaker(), {"agent": None}, "en", StreamError, "no stock phrases in 'en' for agent"),
        (VoiceLikeSpeaker(), None, "tlh", StreamError, "no stock phrases in 'tlh'"),
        (Mute(), None, "en", SpeakerError, "has said nothing for 'One moment.'"),
        (LateSpeaker(60.0), None, "en", SpeakerError, "within 20 s"),
    ],
)
def test_phrases_that_cannot_be_spoken_raise(speaker, texts, language, error, match):
    with pytest.raises(error, match=match):
        run_virtually(lambda: phrases(speaker, texts, language=language))
