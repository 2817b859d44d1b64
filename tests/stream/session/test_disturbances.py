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
from tests.support.turns import RATE, Tape, run_turn
from tests.support.virtual_clock import VirtualClock

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


class Source:
    """A stream that is open before it is read, and takes a moment to close."""

    def __init__(self, clock):
        self._clock, self._events = clock, iter(TURN)
        self.closed = False

    def __aiter__(self):
        return self

    async def __anext__(self):
        if (step := next(self._events, None)) is None:
            raise StopAsyncIteration
        at_s, event = step
        await self._clock.sleep_until(at_s)
        return event

    async def aclose(self):
        await self._clock.sleep(0.001)
        self.closed = True


class Played:
    """A session that is disturbed by `disturb(session, task)` after `at_s`."""

    def __init__(self, disturb, *, at_s=None, listeners=()):
        self.tape, self.events, self.journal = Tape(), [], None
        self.clock, self.mixer = VirtualClock(), cues.Mixer(RATE)
        self.source = Source(self.clock)
        router = CueRouter(cues.load_bank(), self.mixer)
        for listener in listeners:
            router.spans.subscribe(listener)
        self.session = VoiceSession(
            mixer=self.mixer,
            router=router,
            speaker=VoiceLikeSpeaker(),
            sink=self.tape,
            clock=self.clock,
            on_event=fails,
        )
        asyncio.run(self.clock.drive(self._play(disturb, at_s)))

    async def _play(self, disturb, at_s):
        turn = asyncio.create_task(self.session.run(self.source))
        await asyncio.sleep(0)
        if at_s is not None:
            await self.clock.sleep(at_s)
        disturb(self.session, turn)
        (outcome,) = await asyncio.gather(turn, return_exceptions=True)
        assert outcome is self.session.journal or turn.cancelled()
        self.journal = self.session.journal
        self.n_tasks = len(asyncio.all_tasks())


def interrupted(session, _turn):
    session.barge_in()


def cancelled(_session, turn):
    turn.cancel()


def interrupted_and_cancelled(session, turn):
    session.barge_in()
    turn.cancel()


DISTURBANCES = [interrupted, cancelled, interrupted_and_cancelled]


@pytest.mark.parametrize("disturb", DISTURBANCES)
@pytest.mark.parametrize("at_s", [None, 0.5, 1.1, 2.2, 3.3], ids=["at once", "before", "at the cue", "in it", "later"])
def test_an_ended_turn_fades_and_closes_its_source_whoever_ends_it(disturb, at_s):
    played = Played(disturb, at_s=at_s)
    assert played.source.closed
    assert played.n_tasks == 2  # this one and the clock's driver
    end = round((at_s or 0.0) * RATE) + 240  # what is due is put out first: one frame of lead
    assert last_sound(played.tape.mixed, 0.0) <= end + FADE_AND_A_FRAME
    assert not played.mixer.active
    assert find_clicks(played.tape.mixed).tolist() == []


@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_of_an_ended_turn_the_history_has_only_what_was_heard(disturb):
    played = Played(disturb, at_s=2.2)
    (message,) = played.session.history.messages
    assert message["content"] == " ".join(heard.text for heard in played.journal.heard)
    assert TEXT.startswith(message["content"])
    assert len(message["content"]) < len(TEXT) / 2


def test_a_listener_that_fails_ends_neither_the_turn_nor_the_barge_in(caplog):
    spans = []
    played = Played(interrupted, at_s=1.1, listeners=[fails, spans.append])
    assert played.journal.interrupted
    assert last_sound(played.tape.mixed, 0.0) <= round(1.1 * RATE) + 240 + FADE_AND_A_FRAME
    # The next listener gets the cue and its end.
    assert [span.cue for span in spans if span.cue == "tool_call"] == ["tool_call", "tool_call"]
    assert "the screen has gone" in caplog.text


def test_speech_and_cues_are_the_same_with_a_listener_that_fails():
    told = run_turn(TURN)
    played = Played(lambda _session, _turn: None)
    assert np.array_equal(played.tape.mixed, told.tape.mixed)


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
    async def go():
        clock, mixer = VirtualClock(), cues.Mixer(RATE)
        session = VoiceSession(mixer=mixer, router=CueRouter({}, mixer), speaker=Faulty(), sink=Tape(), clock=clock)
        with pytest.raises(ZeroDivisionError):
            await clock.drive(session.run(Source(clock)))
        return session

    session = asyncio.run(go())
    assert session.history.messages[0]["content"] == " ".join(heard.text for heard in session.journal.heard)
    assert len(session.journal.heard) < len(TEXT.split()) / 2


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
        refused = session.run(Source(VirtualClock()))
        with pytest.raises(StreamError, match="already"):
            refused.send(None)

    played = Played(second, at_s=0.5)
    assert np.array_equal(played.tape.mixed, run_turn(TURN).tape.mixed)


class SlowToClose(Source):
    async def aclose(self):
        await self._clock.sleep(5.0)


@pytest.mark.parametrize("turns_of_the_loop", range(2, 8))
def test_a_turn_that_is_cancelled_again_while_it_ends_leaves_the_session_ready(turns_of_the_loop):
    async def go(clock, tape):
        mixer = cues.Mixer(RATE)
        router = CueRouter(cues.load_bank(), mixer)
        session = VoiceSession(mixer=mixer, router=router, speaker=VoiceLikeSpeaker(), sink=tape, clock=clock)
        turn = asyncio.create_task(session.run(SlowToClose(clock)))
        await clock.sleep(0.5)
        turn.cancel()
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait({turn})
        assert turn.cancelled()
        assert clock.now() < 1.0
        assert (await session.run(Source(clock))).spoken_text.split() == TEXT.split()

    clock = VirtualClock()
    asyncio.run(clock.drive(go(clock, Tape())))


def test_a_sound_of_the_callers_own_does_not_hold_up_a_cancelled_turn():
    def interrupted_over_a_loop(session, turn):
        session.barge_in()
        played.append(session._mixer.play(cues.load_bank()["working"], loop=True))
        turn.cancel()

    played = []
    tape = Played(interrupted_over_a_loop, at_s=1.1).tape
    assert played
    assert len(tape.mixed) < 3 * RATE
