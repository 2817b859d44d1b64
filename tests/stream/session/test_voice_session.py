"""A turn: speech and cues where they belong, and nothing lost when something breaks."""

import numpy as np
import pytest

import cues
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import CueRules
from stream.speech.speaker import Speech
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.turns import RATE, run_turn

CUE = cues.Cue(
    name="tool_call",
    samples=(0.1 * np.hanning(3600) * np.sin(np.arange(3600) * 0.2)).astype(np.float32),
    sample_rate=RATE,
)
SPOKEN = [
    (0.02 * n, TextDelta(("" if n == 0 else " ") + word)) for n, word in enumerate(["Let", "me", "look.", "Papa!"])
]
CALL = [(0.2, ToolCallStart("read_file", "1")), (0.3, ToolCallEnd("read_file", "1")), (0.31, Finish("tool_calls"))]
ANSWER = [
    (1.5, ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content="x")),
    (1.6, TextDelta("Done.")),
    (1.7, Finish("stop")),
]


def run(script, bank=None, **options):
    """The record of a turn, what was put out, and the speech alone."""
    bank = {"tool_call": CUE} if bank is None else bank
    told = run_turn(script, bank=bank, rules=CueRules(working=None), **options)
    return told.journal, told.tape.mixed, told.tape.speech


def test_a_turn_speaks_the_text_and_the_cue_sounds_over_the_speech():
    journal, mixed, speech = run([*SPOKEN, *CALL, *ANSWER])
    assert journal.spoken_text == "Let me look. Papa! Done."
    assert [heard.text for heard in journal.heard] == ["Let", "me", "look.", "Papa!", "Done."]
    assert [sounded.cue for sounded in journal.sounded] == ["tool_call"]
    assert len(mixed) == len(speech) == journal.output_samples
    onset = journal.sounded[0].onset_samples
    assert np.array_equal(mixed[:onset], speech[:onset])
    assert np.abs(mixed - speech)[onset : onset + 3600].max() > 0.02


def test_the_speech_is_the_same_with_cues_as_without():
    with_cues, without = run([*SPOKEN, *CALL, *ANSWER]), run([*SPOKEN, *CALL, *ANSWER], bank={})
    assert np.array_equal(with_cues[2], without[2])
    assert np.array_equal(without[1], without[2])
    assert with_cues[0].speech_samples == without[0].speech_samples


def test_a_word_is_marked_at_the_sample_where_it_is_heard():
    journal, _, speech = run(SPOKEN)
    first = journal.heard[0].onset_samples
    assert not speech[:first].any()
    assert speech[first : first + 4800].any()


def test_text_before_a_call_is_spoken_at_once_without_waiting_for_its_mark():
    journal, _, _ = run([(0.0, TextDelta("Let me see")), *CALL, (9.0, Finish("stop"))])
    assert [heard.text for heard in journal.heard] == ["Let", "me", "see"]
    assert journal.heard[0].onset_samples < 0.5 * RATE


def test_an_error_in_the_source_is_raised_after_what_was_said_was_spoken():
    phrases = []

    class Mine(VoiceLikeSpeaker):
        async def speak(self, phrase):
            phrases.append(phrase)
            async for speech in super().speak(phrase):
                yield speech

    with pytest.raises(ZeroDivisionError):
        run([*SPOKEN, (0.5, ZeroDivisionError())], speaker=Mine())
    assert phrases[-1] == "Papa!"


def test_an_empty_answer_ends_at_once():
    journal, _, _ = run([(0.0, Finish("stop"))])
    assert (journal.spoken_text, journal.heard, journal.sounded) == ("", [], [])


def test_the_record_is_json_ready_and_complete():
    record = run([*SPOKEN, *CALL, *ANSWER])[0].as_dict()
    assert record["cues"][0]["for"] == "ToolCallStart"
    assert record["cues"][0]["onset_s"] == pytest.approx(record["cues"][0]["onset_sample"] / RATE, abs=1e-4)
    assert [event["type"] for event in record["events"]].count("TextDelta") == len(SPOKEN) + 1
    assert record["events"][-1] == {"type": "Finish", "arrival_s": 1.7, "known_s": 1.7, "reason": "stop"}


def test_speech_that_arrives_in_time_has_no_gap():
    class Steady(VoiceLikeSpeaker):
        async def speak(self, _):
            for _piece in range(10):
                yield Speech(np.full(2400, 0.1, dtype=np.float32))

    _, _, speech = run([(0.0, TextDelta("Go."))], speaker=Steady())
    sounding = np.flatnonzero(speech)
    assert len(sounding) == 24000
    assert sounding[-1] - sounding[0] == 24000 - 1
