"""A turn, with a clock that is passed in: speech and cues where they belong, and nothing lost when something breaks."""

import asyncio

import numpy as np
import pytest

import cues
from stream.errors import SpeakerError
from stream.events import Finish, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter, CueRules
from stream.session import VoiceSession
from stream.speech.speaker import Speech
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.virtual_clock import VirtualClock

RATE = 24000
CUE = cues.Cue(
    name="tool_call",
    samples=(0.1 * np.hanning(3600) * np.sin(np.arange(3600) * 0.2)).astype(np.float32),
    sample_rate=RATE,
)


class Tape:
    """A sink that keeps everything."""

    def __init__(self):
        self.mixed, self.speech = [], []

    def write(self, mixed, speech):
        self.mixed.append(np.array(mixed))
        self.speech.append(np.array(speech))

    def arrays(self):
        return np.concatenate(self.mixed), np.concatenate(self.speech)


def run(script, speaker=None, bank=None, **options):
    """Run a turn whose events come as (seconds, event); returns the journal and what was put out."""

    async def go():
        clock = VirtualClock()

        async def events():
            for at_s, event in script:
                await clock.sleep(at_s - clock.now())
                if isinstance(event, Exception):
                    raise event
                yield event

        mixer, tape = cues.Mixer(RATE), Tape()
        router = CueRouter({"tool_call": CUE} if bank is None else bank, mixer, rules=CueRules(working=None))
        voice = speaker or VoiceLikeSpeaker()
        session = VoiceSession(mixer=mixer, router=router, speaker=voice, sink=tape, clock=clock, **options)
        journal = await clock.drive(session.run(events()))
        return journal, tape

    return asyncio.run(go())


SPOKEN = [
    (0.02 * n, TextDelta(("" if n == 0 else " ") + word)) for n, word in enumerate(["Let", "me", "look.", "Papa!"])
]
CALL = [(0.2, ToolCallStart("read_file", "1")), (0.3, ToolCallEnd("read_file", "1")), (0.31, Finish("tool_calls"))]
ANSWER = [
    (1.5, ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content="x")),
    (1.6, TextDelta("Done.")),
    (1.7, Finish("stop")),
]


def test_a_turn_speaks_the_text_and_the_cue_sounds_over_the_speech():
    journal, tape = run([*SPOKEN, *CALL, *ANSWER])
    mixed, speech = tape.arrays()
    assert journal.spoken_text == "Let me look. Papa! Done."
    assert [heard.text for heard in journal.heard] == ["Let", "me", "look.", "Papa!", "Done."]
    assert [sounded.cue for sounded in journal.sounded] == ["tool_call"]
    assert len(mixed) == len(speech) == journal.output_samples
    onset = journal.sounded[0].onset_samples
    assert np.array_equal(mixed[:onset], speech[:onset])
    assert np.abs(mixed - speech)[onset : onset + 3600].max() > 0.02


def test_the_cue_begins_within_a_frame_and_the_lead_of_its_event():
    journal, _ = run([*SPOKEN, *CALL], frame_samples=240, lead_ms=10.0)
    assert 0.0 <= journal.call_delays_ms[0] <= 20.0


def test_the_speech_is_the_same_with_cues_as_without():
    with_cues, without = run([*SPOKEN, *CALL, *ANSWER]), run([*SPOKEN, *CALL, *ANSWER], bank={})
    assert np.array_equal(with_cues[1].arrays()[1], without[1].arrays()[1])
    assert np.array_equal(without[1].arrays()[0], without[1].arrays()[1])
    assert with_cues[0].speech_samples == without[0].speech_samples


def test_a_word_is_marked_at_the_sample_where_it_is_heard():
    journal, tape = run(SPOKEN)
    speech = tape.arrays()[1]
    first = journal.heard[0].onset_samples
    assert not speech[:first].any()
    assert speech[first : first + 4800].any()


def test_text_before_a_call_is_spoken_at_once_without_waiting_for_its_mark():
    journal, _ = run([(0.0, TextDelta("Let me see")), *CALL, (9.0, Finish("stop"))])
    assert [heard.text for heard in journal.heard] == ["Let", "me", "see"]
    assert journal.heard[0].onset_samples < 0.5 * RATE


def test_what_was_said_before_a_failure_is_kept_and_spoken():
    journal, tape = run([*SPOKEN, (0.5, StreamFailed("connection lost", code="unfinished"))])
    assert journal.failure == "connection lost"
    assert journal.heard[-1].text == "Papa!"
    assert np.abs(tape.arrays()[0]).max() > 0.1


def test_an_error_in_the_source_is_raised_after_what_was_said_was_spoken():
    tape_of = {}

    class Mine(VoiceLikeSpeaker):
        async def speak(self, phrase):
            tape_of["phrase"] = phrase
            async for speech in super().speak(phrase):
                yield speech

    with pytest.raises(ZeroDivisionError):
        run([*SPOKEN, (0.5, ZeroDivisionError())], speaker=Mine())
    assert tape_of["phrase"] == "Papa!"


def test_a_speaker_that_dies_is_a_failure_of_the_turn_and_its_speech_is_kept():
    class Dying(VoiceLikeSpeaker):
        async def speak(self, phrase):
            async for speech in super().speak(phrase):
                yield speech
            raise SpeakerError("out of breath")

    journal, tape = run([*SPOKEN, *CALL], speaker=Dying())
    assert journal.failure == "out of breath"
    assert np.abs(tape.arrays()[1]).max() > 0.1
    assert [sounded.cue for sounded in journal.sounded] == ["tool_call"]


def test_an_empty_answer_ends_at_once():
    journal, _ = run([(0.0, Finish("stop"))])
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

    _, tape = run([(0.0, TextDelta("Go."))], speaker=Steady())
    speech = tape.arrays()[1]
    sounding = np.flatnonzero(speech)
    assert len(sounding) == 24000
    assert sounding[-1] - sounding[0] == 24000 - 1
