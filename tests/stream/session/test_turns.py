"""The sound of a turn when tools are called, fail, take long, and everything around them breaks."""

import asyncio
import json
from functools import partial

import numpy as np
import pytest

from stream.errors import SpeakerError
from stream.events import (
    Finish,
    Interrupted,
    ReasoningDelta,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.routing.rules import CueRules, Limits
from stream.session.history import heard_text
from stream.speech.lasting_speaker import LastingSpeaker
from stream.speech.speaker import Speech, Word
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.listening import last_sound, new_clicks
from tests.support.routing import spoken
from tests.support.turns import RATE, run_turn
from tests.support.virtual_loop import LoopClock

FRAME = 240
READY = "unmute.response.text.delta.ready"


def said(text, at_s=0.0, every_s=0.03):
    """Text as a model streams it."""
    return [(at_s + n * every_s, TextDelta(f"{word} ")) for n, word in enumerate(text.split())]


def call(at_s, call_id="1", name="read_file"):
    return [
        (at_s, ToolCallStart(name, call_id)),
        (at_s + 0.2, ToolCallEnd(name, call_id, arguments_json='{"path": "a"}')),
    ]


def answered(at_s, call_id="1", name="read_file", *, is_error=False):
    return [(at_s, ToolResult(tool_name=name, tool_call_id=call_id, is_error=is_error, content="x"))]


LONG = "Let me look that up in the big book of birds, and then tell you all about the finches in it."
IN_MID_SENTENCE = [*said(LONG), *call(0.8), (1.1, Finish("tool_calls")), *answered(2.5), *said("Here it is.", 2.6)]
TEN_CALLS = [
    *said(LONG),
    *sorted((step for n in range(10) for step in call(0.8 + 0.01 * n, str(n))), key=lambda step: step[0]),
    (1.2, Finish("tool_calls")),
    *sorted((step for n in range(10) for step in answered(2.5 + 0.05 * n, str(n))), key=lambda step: step[0]),
    *said("All ten are here.", 3.2),
]
FAILING = [
    *said(LONG),
    *call(0.8),
    (1.1, Finish("tool_calls")),
    *answered(2.5, is_error=True),
    *said("That did not work.", 2.7),
]


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (IN_MID_SENTENCE, ["tool_call", "success"]),
        (TEN_CALLS, ["tool_call", "success", "success"]),
        (FAILING, ["tool_call", "error"]),
    ],
    ids=["in mid-sentence", "ten calls", "failing"],
)
def test_a_turn_has_its_cues_in_time_without_a_click_and_its_speech_is_as_without_them(turn, expected):
    told, silent = run_turn(turn), run_turn(turn, bank={})
    # Ten results within half a second are two sounds: the same cue coalesces for 300 ms.
    assert told.cues == expected
    assert all(0.0 <= delay <= 2000.0 * FRAME / RATE for delay in told.journal.call_delays_ms)
    assert new_clicks(told.tape.mixed, told.tape.speech) == []
    assert np.array_equal(np.trim_zeros(told.tape.speech), np.trim_zeros(silent.tape.speech))
    assert np.array_equal(silent.tape.mixed, silent.tape.speech)
    assert len(told.tape.mixed) == len(told.tape.speech) == told.journal.output_samples


def test_the_waiting_sound_makes_way_for_speech_that_is_still_queued():
    told = run_turn([*said(LONG * 2), *call(0.8), (1.1, Finish("tool_calls")), *answered(20.0)])
    (working,) = told.spans("working")
    speech_end_s = last_sound(told.tape.speech) / RATE
    assert speech_end_s > 4.5
    assert working.start_s >= speech_end_s + 0.9


def test_a_turn_that_was_cut_leaves_the_next_one_whole():
    turn = [*said("Now then."), *call(0.3, "9"), *answered(1.0, "9")]
    told = run_turn([IN_MID_SENTENCE, turn], barge_in_s=0.9)
    assert told.journal.heard_text == "Now then."
    assert told.cues == ["tool_call", "success"]
    assert [message["role"] for message in told.history.messages] == ["assistant"]
    assert told.history.messages[0]["content"].endswith("Now then.")


@pytest.mark.parametrize("silence_s", [4.0, np.inf])
def test_a_turn_that_is_cut_before_anything_was_heard_ends_with_the_frame_that_was_written(silence_s):
    told = run_turn(said("Now then.", 2.0), barge_in_s=0.5, rules=CueRules(silence_s=silence_s))
    assert not told.tape.mixed.any()
    # The frames due by then run ahead by `lead_ms` of 10: those that begin at 0, 10, … 500 ms.
    assert told.journal.output_samples == 51 * FRAME


def test_a_result_of_the_cut_turn_is_silent_in_the_next_one():
    turn = [*said("Now then."), *answered(0.5, "1", is_error=True)]
    assert run_turn([IN_MID_SENTENCE, turn], barge_in_s=0.9).cues == []


def test_a_word_is_marked_at_the_sample_where_it_is_heard():
    told = run_turn(said("Let me look. Papa!"))
    first = told.journal.heard[0].onset_samples
    assert not told.tape.speech[:first].any()
    assert told.tape.speech[first : first + 4800].any()


def test_text_before_a_call_is_spoken_at_once_without_waiting_for_its_mark():
    journal = run_turn([(0.0, TextDelta("Let me see")), *call(0.2), (9.0, Finish("stop"))]).journal
    assert [heard.text for heard in journal.heard] == ["Let", "me", "see"]
    assert journal.heard[-1].onset_samples < RATE  # the last word, too: nothing holds it until the tool has run


@pytest.mark.parametrize("pieces", [["Let", " me", " see", "."], ["Let me see "], ["Let", " me", " see"]])
def test_text_is_spoken_while_the_server_holds_the_call_back_until_it_is_complete(pieces):
    texts = [(0.05 * n, TextDelta(piece)) for n, piece in enumerate(pieces)]
    journal = run_turn([*texts, *call(5.0), (9.0, Finish("stop"))]).journal
    assert [heard.text.strip(".") for heard in journal.heard] == ["Let", "me", "see"]
    assert journal.heard[0].onset_samples < (RATE if pieces[-1] != " see" else 1.3 * RATE)


def test_the_last_word_of_a_model_that_hangs_is_heard():
    told = run_turn([(0.0, TextDelta("One two three.")), (99.0, Finish("stop"))], limits=Limits(model_s=2.0))
    assert told.journal.heard_text == "One two three."
    assert told.journal.failure is not None


@pytest.mark.parametrize("pause_s", [0.2, 0.7])
def test_a_word_with_a_pause_inside_is_one_word_to_what_waits_for_it(pause_s):
    pieces = [TextDelta(piece) for piece in ("Here is Rei", "kja", "vik.")]
    script = [(pause_s * n, piece) for n, piece in enumerate(pieces)]
    told = run_turn([*script, *call(3.0), *answered(40.0), (41.0, Finish("stop"))])
    assert told.journal.failure is None
    assert told.journal.spoken_text == "Here is Reikjavik."
    if pause_s < 0.5:
        assert [heard.text for heard in told.journal.heard] == ["Here", "is", "Reikjavik."]


@pytest.mark.parametrize("barge_in_s", [None, 0.4])
def test_a_turn_ends_when_all_that_a_limiter_delays_has_gone_out(barge_in_s):
    told = run_turn(said("One word more."), limiter=True, barge_in_s=barge_in_s)
    latency = told.mixer.latency_samples
    assert np.flatnonzero(told.tape.mixed)[-1] == np.flatnonzero(told.tape.speech)[-1] + latency
    assert not told.mixer.holds_sound


def test_an_error_in_the_source_is_raised_after_what_was_said_was_spoken():
    told = run_turn([*said("Let me look. Papa!"), (0.5, ZeroDivisionError())], raises=ZeroDivisionError)
    assert told.journal.heard_text == "Let me look. Papa!"


def test_an_empty_answer_ends_at_once():
    journal = run_turn([(0.0, Finish("stop"))]).journal
    assert (journal.spoken_text, journal.heard, journal.sounded) == ("", [], [])


def test_the_record_is_json_ready_and_complete():
    record = json.loads(json.dumps(run_turn([*IN_MID_SENTENCE, (3.0, Finish("stop"))]).journal.as_dict()))
    assert record["cues"][0]["for"] == "ToolCallStart"
    assert record["cues"][0]["onset_s"] == pytest.approx(record["cues"][0]["onset_sample"] / RATE, abs=1e-4)
    assert [event["type"] for event in record["events"]].count("TextDelta") == len(f"{LONG} Here it is.".split())
    last = {"type": "Finish", "arrival_s": 3.0, "known_s": 3.0, "reason": "stop", "reasoning_details": []}
    assert record["events"][-1] == last


def test_speech_that_arrives_in_time_has_no_gap():
    class Steady(VoiceLikeSpeaker):
        async def speak(self, _):
            for _piece in range(10):
                yield Speech(np.full(2400, 0.1, dtype=np.float32))

    speech = run_turn([(0.0, TextDelta("Go."))], speaker=Steady()).tape.speech
    sounding = np.flatnonzero(speech == np.float32(0.1))
    assert len(sounding) == 24000
    assert sounding[-1] - sounding[0] == 24000 - 1
    assert not speech[sounding[-1] + 240 :].any()  # it ends in mid-sound, and fades


def test_the_transcript_has_one_event_a_call_and_all_that_was_said():
    told = run_turn(TEN_CALLS)
    records = told.events
    calls = [record for record in records if record["type"] == "unmute.tool_call"]
    read = {"type": "unmute.tool_call", "tool_name": "read_file", "arguments": '{"path": "a"}', "status": "ok"}
    assert calls == [read] * 10
    ready = "".join(record["delta"] for record in records if record["type"] == "unmute.response.text.delta.ready")
    assert ready == f"{LONG} All ten are here."
    heard = [record for record in records if record["type"] == "response.text.delta"]
    assert [record["delta"] for record in heard] == f"{LONG} All ten are here.".split()
    assert [record["at_s"] for record in heard] == sorted(record["at_s"] for record in heard)
    assert [record["type"] for record in records[-2:]] == ["response.text.done", "response.audio.done"]


@pytest.mark.parametrize(("status", "arguments"), [("incomplete", '{"path"'), ("malformed", '{"path": }')])
def test_the_transcript_says_which_calls_were_cut_off_or_cannot_be_read(status, arguments):
    told = run_turn(
        [(0.1, ToolCallStart("read_file", "1")), (0.2, ToolCallEnd("read_file", "1", 0, arguments, status))]
    )
    calls = [event for event in told.events if event["type"] == "unmute.tool_call"]
    assert calls == [{"type": "unmute.tool_call", "tool_name": "read_file", "arguments": arguments, "status": status}]


def test_every_transcript_event_is_json():
    told = run_turn(FAILING, barge_in_s=4.0)
    assert {event["type"] for event in told.events} >= {"cues.span", "cues.tool_result", "unmute.tool_call"}
    assert json.loads(json.dumps(told.events)) == told.events


def test_spans_cover_exactly_where_a_cue_sounds_and_are_published_before_it_ends():
    told = run_turn(IN_MID_SENTENCE)
    alone = run_turn(IN_MID_SENTENCE, bank={})
    n = min(len(told.tape.mixed), len(alone.tape.mixed))
    spans = [span for span in told.router.spans if span.cue != "working"]
    assert [span.cue for span in spans] == ["tool_call", "success"]
    # After the ducking has gone (hold and release: half a second) nothing but speech is left.
    quiet = np.ones(n, dtype=bool)
    for span in spans:
        quiet[span.start_samples : span.end_samples + round(0.55 * RATE)] = False
    assert np.array_equal(told.tape.mixed[:n][quiet], alone.tape.mixed[:n][quiet])
    assert told.router.spans.overlaps(spans[0].start_samples, spans[0].start_samples + 1)


# Things break.


class Dying(VoiceLikeSpeaker):
    """Speaks one phrase and dies."""

    async def speak(self, phrase):
        async for speech in super().speak(phrase):
            yield speech
        raise SpeakerError("out of breath")


class Deaf(VoiceLikeSpeaker):
    """Hangs when it is given text, as a connection does that nobody reads."""

    async def send(self, _text):
        await asyncio.Event().wait()


def test_a_voice_that_dies_loses_no_cue_and_the_history_keeps_what_was_heard():
    told = run_turn(IN_MID_SENTENCE, speaker=Dying())
    assert told.journal.failure == "out of breath"
    assert told.cues == ["tool_call", "success", "error"]  # The last one because the answer is never heard.
    assert told.journal.heard_text == "Let me look that up in the big book of birds,"
    assert told.history.messages[0]["content"] == told.journal.heard_text
    assert new_clicks(told.tape.mixed, told.tape.speech) == []


def test_a_voice_that_takes_no_text_holds_no_cue_back_and_is_given_up():
    told = run_turn(IN_MID_SENTENCE, speaker=Deaf(), limits=Limits(speech_s=5.0))
    assert told.cues == ["tool_call", "success", "error"]
    assert told.journal.call_delays_ms[0] <= 2000.0 * FRAME / RATE
    assert told.journal.failure == "the speaker has sent nothing for 5 s"
    assert told.history.messages == []
    assert len(told.tape.mixed) < 15 * RATE


class Endless(VoiceLikeSpeaker):
    """Speaks all, and does not end."""

    async def finish(self):
        await self.flush()


class Stuck(VoiceLikeSpeaker):
    """Ends, but hangs in its own end."""

    async def finish(self):
        await super().finish()
        await asyncio.Event().wait()


@pytest.mark.parametrize("speaker", [Endless, Stuck])
def test_a_voice_that_speaks_all_and_then_hangs_is_given_up(speaker):
    told = run_turn(said("Let me look."), speaker=speaker(), limits=Limits(speech_s=5.0))
    assert told.journal.failure == "the speaker has sent nothing for 5 s"
    assert told.journal.heard_text == "Let me look."
    assert told.cues == []


class Halting(VoiceLikeSpeaker):
    """Speaks one phrase, and hangs or dies in the next."""

    def __init__(self, fault):
        super().__init__()
        self._fault, self._has_spoken = fault, False

    async def speak(self, phrase):
        if self._has_spoken:
            await self._fault()
        self._has_spoken = True
        async for speech in super().speak(phrase):
            yield speech


async def hangs():
    await asyncio.Event().wait()


async def dies():
    raise SpeakerError("out of breath")


ERROR_KINDS = pytest.mark.parametrize(
    "options",
    [{}, {"rules": CueRules(placement="after_words")}, {"bank": {"error": spoken("error")}}],
    ids=["tone", "after words", "phrase"],
)


@ERROR_KINDS
@pytest.mark.parametrize(("fault", "says"), [(hangs, "the speaker has sent nothing for 5 s"), (dies, "out of breath")])
def test_a_voice_that_stops_in_the_middle_of_an_answer_ends_the_turn_with_the_error_cue(fault, says, options):
    told = run_turn(said("Let me look. There it is."), speaker=Halting(fault), limits=Limits(speech_s=5.0), **options)
    assert told.journal.heard_text == "Let me look."
    assert told.journal.failure == says
    assert told.cues == ["error"]
    assert [event["message"] for event in told.events if event["type"] == "error"] == [says]
    assert new_clicks(told.tape.mixed, told.tape.speech) == []


class Breathless(VoiceLikeSpeaker):
    """Speaks most of a phrase, and hangs or dies."""

    def __init__(self, fault):
        super().__init__()
        self._fault = fault

    async def speak(self, phrase):
        async for speech in super().speak(phrase):
            yield Speech(speech.samples[: RATE // 4])
            await self._fault()


class Mute(Breathless):
    """The same, of a voice that tells nothing of its phrases."""

    async def __aiter__(self):
        async for speech in super().__aiter__():
            yield Speech(speech.samples)


@ERROR_KINDS
@pytest.mark.parametrize("speaker", [Breathless, Mute])
@pytest.mark.parametrize("fault", [hangs, dies])
def test_a_voice_that_stops_within_the_only_phrase_of_an_answer_ends_the_turn_with_the_error_cue(
    speaker, fault, options
):
    told = run_turn(said("Let me look."), speaker=speaker(fault), limits=Limits(speech_s=5.0), **options)
    assert told.cues == ["error"]
    assert [event["message"] for event in told.events if event["type"] == "error"] == [told.journal.failure]
    assert new_clicks(told.tape.mixed, told.tape.speech) == []


def test_cues_that_follow_the_words_of_a_voice_that_has_died_do_not_wait_for_the_end_of_the_turn():
    turn = [*said("Let me look."), *call(0.4), *answered(0.7, is_error=True), (6.0, Finish("stop"))]
    told = run_turn(turn, speaker=Breathless(dies), rules=CueRules(placement="after_words", working=None))
    assert told.cues == ["tool_call", "error", "error"]  # of the tool, and of the voice
    assert [cue.onset_samples / RATE < 2.0 for cue in told.journal.sounded] == [True, True, False]


def test_a_stream_that_breaks_off_sounds_so_and_keeps_what_was_said():
    told = run_turn([*said("Let me look."), (0.5, StreamFailed("connection lost", code="unfinished"))])
    assert told.cues == ["error"]
    assert told.journal.failure == "connection lost"
    assert told.history.messages == [{"role": "assistant", "content": "Let me look."}]


# Placement by word.


class Precise(VoiceLikeSpeaker):
    """Tells where each word ends, as Kyutai's voices do: the times come before the sound."""

    async def speak(self, phrase):
        words = tuple(Word(word, 7200 * n, 7200 * n + 6000) for n, word in enumerate(phrase.split()))
        yield Speech(np.zeros(0, dtype=np.float32), words)
        for _ in words:
            yield Speech(np.full(7200, 0.1, dtype=np.float32))


class Plain(VoiceLikeSpeaker):
    """Tells neither words nor phrases."""

    async def __aiter__(self):
        async for speech in super().__aiter__():
            yield Speech(speech.samples)


@pytest.mark.parametrize("speaker", [Precise, VoiceLikeSpeaker, Plain], ids=["word ends", "phrases", "nothing"])
def test_a_cue_after_the_words_begins_when_the_last_word_has_been_said(speaker):
    turn = [*said("Papa reads the paper."), *call(0.2), *answered(8.0)]
    told = run_turn(turn, speaker=speaker(), rules=CueRules(placement="after_words", success=None, working=None))
    (sounded,) = told.journal.sounded
    end = last_sound(told.tape.speech, 1e-3) + 1
    if speaker is Precise:
        assert sounded.onset_samples == pytest.approx(end - 1200, abs=FRAME)
    elif speaker is VoiceLikeSpeaker:
        assert sounded.onset_samples == pytest.approx(end, abs=FRAME)
    else:  # Without a report, the end of the sound is noticed after 200 ms, and the silence at its end counts.
        assert end <= sounded.onset_samples <= end + 0.7 * RATE
    assert sounded.placement == "after_words"
    assert sounded.delay_ms == pytest.approx((sounded.onset_s - 0.2) * 1000.0, abs=0.1)


def test_a_cue_after_the_words_does_not_wait_where_nobody_speaks():
    told = run_turn([*call(1.0), *answered(3.0)], rules=CueRules(placement="after_words", success=None, working=None))
    assert told.journal.sounded[0].delay_ms <= 20.0


def test_a_cue_in_a_pause_begins_in_one():
    turn = [*said(LONG), *call(0.8), *answered(9.0)]
    told = run_turn(turn, rules=CueRules(placement="in_pause", success=None, working=None))
    (sounded,) = told.journal.sounded
    (span,) = told.spans("tool_call")
    assert sounded.placement == "in_pause"
    assert sounded.onset_samples == span.start_samples >= 0.8 * RATE
    # A pause is found where the speech has been low for a while.
    before = told.tape.speech[span.start_samples - round(0.03 * RATE) : span.start_samples]
    assert np.abs(before).max() < 0.05
    # And that is where the difference begins: the record is what is heard.
    changed = np.flatnonzero(told.tape.mixed != told.tape.speech)
    assert span.start_samples <= changed[0] <= span.start_samples + 24


def test_a_cue_that_waits_for_words_dies_with_its_turn():
    told = run_turn([*said(LONG), *call(0.3)], rules=CueRules(placement="after_words"), barge_in_s=1.0)
    assert told.cues == []
    assert told.spans("tool_call") == []


# Words around calls and data.


CHECK = [(0.0, TextDelta("Let me check")), (0.1, TextDelta(" that")), *call(0.3), (0.6, Finish("tool_calls"))]
TWO_FILES = [*CHECK, *answered(2.5), (2.6, TextDelta("Two")), (2.7, TextDelta(" files."))]


@pytest.mark.parametrize("speaker", [Precise, VoiceLikeSpeaker, Plain], ids=["word ends", "phrases", "nothing"])
def test_words_with_a_call_between_them_are_apart_in_everything_that_is_left_of_a_turn(speaker):
    told = run_turn(TWO_FILES, speaker=speaker())
    text = "Let me check that Two files."
    assert told.journal.spoken_text == told.journal.heard_text == text
    assert told.journal.as_dict()["heard_text"] == text
    assert told.history.messages == [{"role": "assistant", "content": text}]
    said_in = {kind: [e["delta"] for e in told.events if e["type"] == kind] for kind in (READY, "response.text.delta")}
    assert "".join(said_in[READY]) == text
    assert said_in["response.text.delta"] in ([], text.split())
    assert [event["text"] for event in told.events if event["type"] == "response.text.done"] == [text]


class Slow(VoiceLikeSpeaker):
    """Makes speech hardly faster than it is heard."""

    async def speak(self, phrase):
        async for speech in super().speak(phrase):
            for at in range(0, len(speech.samples), 2400):
                await LoopClock().sleep(0.095)
                yield Speech(speech.samples[at : at + 2400])


class SlowAndMute(Slow):
    """The same, and tells nothing of its phrases."""

    async def __aiter__(self):
        async for speech in super().__aiter__():
            yield Speech(speech.samples)


@pytest.mark.parametrize("speaker", [Slow, SlowAndMute, partial(LastingSpeaker, Slow, clock=LoopClock())])
@pytest.mark.parametrize("barge_in_s", [2.5, 3.5])
def test_after_a_barge_in_the_history_has_words_of_a_phrase_that_was_still_being_made(speaker, barge_in_s):
    text = "It is twelve degrees in Oslo today and it will rain in the evening"
    told = run_turn(said(text, 0.1), speaker=speaker(), barge_in_s=barge_in_s)
    heard = told.journal.heard_text
    assert text.startswith(heard)
    n_words = len(heard.split())
    assert 1 <= n_words <= (barge_in_s - 0.1) / 0.25  # a word of the voice lasts longer
    assert told.history.messages[-1]["content"] == heard


def test_a_barge_in_after_a_call_leaves_the_words_before_and_after_it_apart():
    two = next(heard for heard in run_turn(TWO_FILES).journal.heard if heard.text == "Two")
    told = run_turn(TWO_FILES, barge_in_s=two.onset_samples / RATE + 0.05)
    assert told.journal.heard_text == "Let me check that Two"
    assert told.history.messages == [{"role": "assistant", "content": "Let me check that Two"}]


CHINESE = "今天北京的天气很好。气温是二十五度，适合出去散步。明天会更冷。"


@pytest.mark.parametrize("speaker", [Precise, VoiceLikeSpeaker, Plain], ids=["word ends", "phrases", "nothing"])
def test_text_without_spaces_is_spoken_as_it_comes_and_a_cue_waits_for_its_last_phrase(speaker):
    turn = [*((0.1 * n, TextDelta(character)) for n, character in enumerate(CHINESE)), *call(3.3), *answered(30.0)]
    rules = CueRules(placement="after_words", success=None, working=None)
    told = run_turn(turn, speaker=speaker(), rules=rules)
    assert told.journal.spoken_text == told.journal.heard_text == CHINESE
    assert np.flatnonzero(np.abs(told.tape.speech) > 0.01)[0] < 1.5 * RATE
    assert told.journal.sounded[0].onset_samples >= last_sound(told.tape.speech, 1e-3) - 1200 - FRAME


def test_a_barge_in_keeps_the_phrases_of_a_text_without_spaces_that_were_heard():
    turn = [(0.0, TextDelta(CHINESE))]
    third = run_turn(turn).journal.heard[2]
    told = run_turn(turn, barge_in_s=third.onset_samples / RATE + 0.05)
    assert told.journal.heard_text == "今天北京的天气很好。气温是二十五度，适合出去散步。"


@pytest.mark.parametrize(
    ("marks", "heard"),
    [
        (["今天", "北京", "的", "天气", "很", "好", "气温"], "今天北京的天气很好。气温"),
        (["今天北京的天气很好。", "气温是二十五度，"], "今天北京的天气很好。气温是二十五度，"),
        (list("今天北京"), "今天北京"),
    ],
    ids=["words", "phrases", "characters"],
)
def test_the_marks_of_a_voice_are_found_in_a_text_without_spaces(marks, heard):
    assert heard_text(CHINESE, marks) == heard


def test_data_for_a_program_is_nowhere_in_a_turn_and_its_model_is_not_taken_for_one_that_hangs():
    data = [(1.0 + 3.0 * n, TextDelta('{"plan": [1, 2]}, ', "json")) for n in range(10)]
    turn = [(0.0, TextDelta("Here is the plan:")), *data, (30.0, TextDelta("It has two steps."))]
    told = run_turn(turn, limits=Limits(model_s=4.0))
    assert told.journal.failure is None
    assert told.journal.heard_text == "Here is the plan: It has two steps."
    assert not any('plan"' in str(told_of) for told_of in (told.events, told.journal.seen, told.history.messages))


def test_thinking_before_a_call_and_after_it_is_neither_spoken_nor_shown_nor_kept():
    thought = "We need to list files."
    turn = [(0.0, ReasoningDelta(thought)), *CHECK, *answered(2.5), (2.6, ReasoningDelta(thought)), *said("Two.", 2.7)]
    told, plain = run_turn(turn), run_turn([step for step in turn if not isinstance(step[1], ReasoningDelta)])
    assert told.history.messages == [{"role": "assistant", "content": "Let me check that Two."}]
    assert "We need" not in json.dumps(told.events)
    assert [event["type"] for event in told.events] == [event["type"] for event in plain.events]
    assert np.array_equal(told.tape.mixed, plain.tape.mixed)


# Turns that end elsewhere.


@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
def test_calls_that_are_handed_to_a_client_end_with_the_stream(reason):
    told = run_turn([(0.5, ToolCallStart("search", "1")), (0.6, ToolCallEnd("search", "1")), (0.7, Finish(reason))])
    assert told.cues == ["tool_call"]
    assert len(told.tape.mixed) < 1.0 * RATE


def test_an_interruption_that_the_server_reports_is_a_barge_in():
    turn = [(0.1, TextDelta("It is sunny in all of the north today.")), (1.0, Interrupted()), (3.0, TextDelta("No."))]
    told = run_turn(turn)
    assert told.journal.interrupted
    assert [event["type"] for event in told.events].count("unmute.interrupted_by_vad") == 1
    assert not told.tape.mixed[round(1.05 * RATE) :].any()
