"""A turn when listeners fail, its task is cancelled, or its speaker hangs: the sound, and the truth."""

import asyncio

import numpy as np
import pytest

import cues
from cues.meters.clicks import find_clicks
from stream.errors import StreamError, StreamValueError
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter
from stream.routing.rules import Limits
from stream.session import VoiceSession
from stream.speech.speaker import Speech, Word
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.listening import last_sound
from tests.support.turns import RATE, Source, Tape, barge_in, run_turn
from tests.support.virtual_loop import LoopClock, run_virtually

TEXT = "The finches of these islands have beaks of every shape, and I will now look up which of them eats what."
FADE_AND_A_FRAME = round(0.04 * RATE)


def said(text, at_s=0.0):
    return [(at_s + 0.03 * n, TextDelta(f"{word} ")) for n, word in enumerate(text.split())]


TURN = [
    *said(TEXT),
    (1.03, ToolCallStart("get_weather", "1")),
    (1.2, ToolCallEnd("get_weather", "1", arguments_json="{}")),
    (4.0, ToolResult(tool_name="get_weather", tool_call_id="1", is_error=False, content="x")),
    (4.1, Finish("stop")),
]


def fails(_news):
    raise RuntimeError("the screen has gone")


def cancelled(_session, turn):
    turn.cancel()


def interrupted_and_cancelled(session, turn):
    session.barge_in()
    turn.cancel()


DISTURBANCES = [barge_in, cancelled, interrupted_and_cancelled]


@pytest.mark.parametrize("disturb", DISTURBANCES)
@pytest.mark.parametrize("at_s", [0.0, 0.5, 1.1, 2.2, 3.3], ids=["at once", "before", "at the cue", "in it", "later"])
def test_an_ended_turn_fades_and_closes_its_source_whoever_ends_it(disturb, at_s):
    told = run_turn(TURN, disturb=disturb, barge_in_s=at_s, on_event=fails)
    assert told.source_closed
    assert told.leaked == set()
    end = round(at_s * RATE) + 240  # what is due is put out first: one frame of lead
    assert last_sound(told.tape.mixed, 0.0) <= end + FADE_AND_A_FRAME
    assert not told.mixer.active
    assert find_clicks(told.tape.mixed).tolist() == []


@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_of_an_ended_turn_the_history_has_only_what_was_heard(disturb):
    told = run_turn(TURN, disturb=disturb, barge_in_s=2.2)
    (message,) = told.history.messages
    assert message["content"] == " ".join(heard.text for heard in told.journal.heard)
    assert TEXT.startswith(message["content"])
    assert len(message["content"]) < len(TEXT) / 2


def test_a_listener_that_fails_ends_neither_the_turn_nor_the_barge_in(caplog):
    spans = []
    told = run_turn(TURN, barge_in_s=1.1, listeners=[fails, spans.append], on_event=fails)
    assert told.journal.interrupted
    assert last_sound(told.tape.mixed, 0.0) <= round(1.1 * RATE) + 240 + FADE_AND_A_FRAME
    # The next listener gets the cue and its end.
    assert [span.cue for span in spans if span.cue == "tool_call"] == ["tool_call", "tool_call"]
    assert "the screen has gone" in caplog.text


def test_speech_and_cues_are_the_same_with_a_listener_that_fails():
    assert np.array_equal(run_turn(TURN, on_event=fails).tape.mixed, run_turn(TURN).tape.mixed)


class HangsOnce(VoiceLikeSpeaker):
    """Hangs in its first phrase, and speaks the others."""

    hung = False

    async def speak(self, phrase):
        if not self.hung:
            self.hung = True
            await asyncio.Event().wait()
        async for speech in super().speak(phrase):
            yield speech


def test_after_a_speaker_that_hung_the_next_answer_is_spoken_and_nothing_else():
    turns = [said("This hangs. This is stale."), said("A new answer.")]
    told = run_turn(turns, speaker=HangsOnce(), limits=Limits(speech_s=3.0))
    assert [heard.text for heard in told.journal.heard] == ["A", "new", "answer."]
    assert told.history.messages == [{"role": "assistant", "content": "A new answer."}]


class Faulty(VoiceLikeSpeaker):
    """Speaks a second and fails with what is no `SpeakerError`."""

    async def speak(self, phrase):
        async for speech in super().speak(phrase):
            yield Speech(speech.samples[:RATE], tuple(word for word in speech.words if word.start_samples < RATE))
        raise ZeroDivisionError


def test_a_faulty_speaker_is_raised_and_the_history_has_only_what_was_heard():
    told = run_turn(TURN, speaker=Faulty(), bank={}, raises=ZeroDivisionError)
    assert told.history.messages[0]["content"] == " ".join(heard.text for heard in told.journal.heard)
    assert len(told.journal.heard) < len(TEXT.split()) / 2


class Erratic(VoiceLikeSpeaker):
    """Tells times of words that go back, and some before the speech began."""

    async def speak(self, phrase):
        async for speech in super().speak(phrase):
            starts = [
                (word.start_samples, -50_000, word.start_samples - 9000)[n % 3] for n, word in enumerate(speech.words)
            ]
            words = tuple(Word(word.text, start) for word, start in zip(speech.words, starts, strict=True))
            yield Speech(speech.samples, words)


def test_words_whose_times_go_back_are_told_in_order():
    told = run_turn(said(TEXT), speaker=Erratic())
    assert [heard.text for heard in told.journal.heard] == TEXT.split()
    onsets = [heard.onset_samples for heard in told.journal.heard]
    assert onsets == sorted(onsets)


def test_frames_longer_than_the_lead_are_refused_before_any_turn():
    mixer = cues.Mixer()
    with pytest.raises(cues.CueValueError, match="lead_ms"):
        VoiceSession(
            mixer=mixer,
            router=CueRouter({}, mixer),
            speaker=VoiceLikeSpeaker(),
            sink=Tape(),
            frame_samples=480,
            lead_ms=10,
        )


def test_a_mixer_of_another_sample_rate_is_refused():
    mixer = cues.Mixer(48000)
    with pytest.raises(StreamValueError, match=r"48000 Hz; it must have the speaker's 24000 Hz"):
        VoiceSession(mixer=mixer, router=CueRouter({}, mixer), speaker=VoiceLikeSpeaker(), sink=Tape())


class FailsToFinish(VoiceLikeSpeaker):
    """Takes text, and fails at its end with what is no `SpeakerError`."""

    async def finish(self):
        raise ZeroDivisionError


def test_a_speaker_that_cannot_finish_ends_the_turn():
    with pytest.raises(ZeroDivisionError):
        run_turn([*said("A short answer."), (0.2, Finish("stop"))], speaker=FailsToFinish())


class CancelsItself(VoiceLikeSpeaker):
    """Raises `CancelledError` in one of its methods, though nobody cancelled it."""

    def __init__(self, where):
        super().__init__()
        self.where = where

    async def send(self, text):
        if self.where == "send":
            raise asyncio.CancelledError
        await super().send(text)

    async def speak(self, phrase):
        if self.where == "speak":
            raise asyncio.CancelledError
        async for speech in super().speak(phrase):
            yield speech


@pytest.mark.parametrize("where", ["send", "speak"])
def test_of_a_speaker_that_cancels_itself_nothing_counts_as_heard(where):
    told = run_turn([*said("A short answer."), (0.2, Finish("stop"))], speaker=CancelsItself(where))
    assert "cancelled" in told.journal.failure
    assert told.history.messages == []


def test_a_second_turn_at_once_is_refused_and_the_first_goes_on():
    def second(session, _turn):
        with pytest.raises(StreamError, match="already"):
            session.run(Source([])).send(None)

    told = run_turn(TURN, disturb=second, barge_in_s=0.5)
    assert np.array_equal(told.tape.mixed, run_turn(TURN).tape.mixed)


def test_a_speaker_that_hangs_as_it_drops_its_text_ends_the_turn_as_failed():
    class Hanging(VoiceLikeSpeaker):
        async def cancel(self):
            await asyncio.sleep(1e6)

    told = run_turn(TURN, speaker=Hanging(), barge_in_s=0.5, limits=Limits(speech_s=3.0))
    assert told.journal.interrupted
    assert told.journal.failure == "the speaker has not dropped its text within 3 s"
    assert told.leaked == set()


@pytest.mark.parametrize("turns_of_the_loop", range(2, 8))
def test_a_turn_that_is_cancelled_again_while_it_ends_leaves_the_session_ready(turns_of_the_loop):
    async def go():
        mixer = cues.Mixer(RATE)
        router = CueRouter(cues.load_bank(), mixer)
        session = VoiceSession(mixer=mixer, router=router, speaker=VoiceLikeSpeaker(), sink=Tape(), clock=LoopClock())
        turn = asyncio.create_task(session.run(Source(TURN, closing_s=5.0)))
        await asyncio.sleep(0.5)
        turn.cancel()
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait({turn})
        assert turn.cancelled()
        assert LoopClock().now() < 1.0
        assert (await session.run(Source(TURN))).spoken_text.split() == TEXT.split()

    run_virtually(go)


def test_a_sound_of_the_callers_own_does_not_hold_up_a_cancelled_turn():
    def interrupted_over_a_loop(session, turn):
        session.barge_in()
        session._mixer.play(cues.load_bank()["working"], loop=True)
        turn.cancel()

    told = run_turn(TURN, disturb=interrupted_over_a_loop, barge_in_s=1.1)
    assert told.mixer.active
    assert len(told.tape.mixed) < 3 * RATE


def test_a_clock_that_jumps_an_hour_writes_no_hour_of_frames_and_the_answer_goes_on():
    class Jumping(LoopClock):
        def now(self):
            now_s = super().now()
            return now_s + 3600.0 * (now_s > 2.0)

    jumped, usual = (run_turn(TURN, clock=clock) for clock in (Jumping(), LoopClock()))
    assert jumped.journal.heard_text == usual.journal.heard_text
    assert len(jumped.tape.mixed) == pytest.approx(len(usual.tape.mixed), abs=RATE)
