"""A voice that lasts longer than its connections."""

import asyncio

import numpy as np
import pytest

from stream.errors import SpeakerError
from stream.events import TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.speech.lasting_speaker import LastingSpeaker
from stream.speech.speaker import Speech
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.turns import RATE, run_turn
from tests.support.virtual_loop import LoopClock, run_virtually


class Line(VoiceLikeSpeaker):
    """A speaker with a connection: what happens to it is on record."""

    def __init__(self):
        super().__init__()
        self.clock = LoopClock()
        self.opened_s = self.closed_s = None
        self.spoken, self.sent, self.pings = [], [], []

    async def start(self):
        self.opened_s = self.clock.now()

    async def send(self, text):
        self.sent.append(text)
        await super().send(text)

    async def speak(self, phrase):
        self.spoken.append(phrase)
        async for speech in super().speak(phrase):
            yield speech

    async def aclose(self):
        self.closed_s = self.clock.now()


class KeptAlive(Line):
    async def keep_alive(self):
        self.pings.append(self.clock.now())


class DiesAtFirstText(Line):
    """The first connection of all dies when it is to speak."""

    async def speak(self, phrase):
        if self.first:
            raise SpeakerError("the line is dead")
        async for speech in super().speak(phrase):
            yield speech


class EndsAtFirstText(Line):
    """The first connection of all is closed by the server when it is to speak."""

    async def __aiter__(self):
        if self.first:
            await self._queue.get()
            return
        async for speech in super().__aiter__():
            yield speech


class DiesInMidPhrase(Line):
    """The first connection of all dies while it speaks."""

    async def speak(self, phrase):
        async for speech in super().speak(phrase):
            yield speech
            if self.first:
                raise SpeakerError("the line is dead")


class BreaksOff(Line):
    """The first connection of all breaks at a peak of its sound, and the next begins at one."""

    async def speak(self, phrase):
        tone = 0.5 * np.cos(0.1 * np.pi * np.arange(4810)).astype(np.float32)
        yield Speech(tone)
        if self.first:
            raise SpeakerError("the line is dead")
        yield Speech(tone * np.linspace(-1.0, 0.0, 4810, dtype=np.float32), phrase=phrase)


class OpensSlowly(DiesInMidPhrase):
    """It takes a while to connect again, and to send."""

    async def start(self):
        await self.clock.sleep(0.3)
        await super().start()

    async def send(self, text):
        await self.clock.sleep(0.0 if self.first else 0.01)
        await super().send(text)


class DiesWhenClosed(Line):
    """The connection raises when it is closed."""

    async def __aiter__(self):
        async for speech in super().__aiter__():
            yield speech
        raise SpeakerError("closed")


class DiesTwice(Line):
    """The first connection dies late before its first phrase, the second within its second one."""

    async def speak(self, phrase):
        if self.first:
            await self.clock.sleep(0.8)
            raise SpeakerError("the line is dead")
        async for speech in super().speak(phrase):
            yield speech
            if self.spoken == ["Hello.", phrase]:
                raise SpeakerError("the line is dead")


class DiesInSecondPhrase:
    """A voice of one's own that speaks a phrase for each `flush`; the first connection of all dies in its second."""

    name = "own"

    def __init__(self):
        self.spoken, self._held, self._phrases = [], "", asyncio.Queue()

    async def start(self): ...

    async def send(self, text):
        self._held += text

    async def flush(self):
        self._phrases.put_nowait(self._held)
        self._held = ""

    async def finish(self):
        await self.flush()
        self._phrases.put_nowait(None)

    async def __aiter__(self):
        while (phrase := await self._phrases.get()) is not None:
            if phrase.strip():
                self.spoken.append(phrase.strip())
                yield Speech(np.full(RATE // 2, 0.1, dtype=np.float32))
                if self.first and len(self.spoken) == 2:
                    raise SpeakerError("the line is dead")
                yield Speech(np.zeros(RATE // 10, dtype=np.float32), phrase=phrase.strip())

    async def aclose(self): ...


class AlwaysDies(Line):
    async def speak(self, _phrase):
        raise SpeakerError("the line is dead")
        yield


def conversation(kind, turns, **options):
    """Run turns with a lasting speaker of `kind`; what came of it, and the speakers that were made."""
    lines = []

    def make():
        lines.append(kind())
        lines[-1].first = len(lines) == 2  # The very first was only asked for its name.
        return lines[-1]

    told = run_turn(turns, speaker=LastingSpeaker(make, clock=LoopClock()), bank={}, **options)
    return told, lines[1:]


LONG_TOOL = [
    (0.0, TextDelta("Wait a little.")),
    (0.5, ToolCallStart("slow", "1")),
    (30.0, ToolResult(tool_name="slow", tool_call_id="1", is_error=False, content="")),
    (30.1, TextDelta("Here it is.")),
]


def test_after_a_long_pause_another_connection_is_opened_and_the_first_is_closed():
    told, (first, second) = conversation(Line, LONG_TOOL)
    assert first.spoken == ["Wait a little."]
    assert second.spoken == ["Here it is."]
    assert second.opened_s == pytest.approx(30.1, abs=0.02)
    assert first.closed_s is not None
    assert second.closed_s is not None
    assert told.journal.heard_text == "Wait a little. Here it is."
    assert told.leaked == set()


def test_text_is_said_once_also_if_an_idle_connection_fails_while_it_is_closed():
    told, (first, second) = conversation(DiesWhenClosed, LONG_TOOL)
    assert [first.sent, second.sent] == [["Wait", " a", " little."], [" Here", " it", " is."]]
    assert told.journal.heard_text == "Wait a little. Here it is."


def test_a_short_pause_keeps_the_connection():
    turn = [(0.0, TextDelta("Wait. ")), (0.5, ToolCallStart("a", "1")), (4.0, TextDelta("There."))]
    _, lines = conversation(Line, turn)
    assert len(lines) == 1


def test_a_connection_that_can_be_kept_alive_is_kept():
    told, (only,) = conversation(KeptAlive, LONG_TOOL)
    assert only.spoken == ["Wait a little.", "Here it is."]
    assert len(only.pings) == 5
    assert told.leaked == set()


@pytest.mark.parametrize("kind", [DiesAtFirstText, EndsAtFirstText])
def test_text_that_a_dead_connection_did_not_say_is_said_by_the_next(kind):
    told, lines = conversation(kind, [(0.0, TextDelta("Hear me out, ")), (2.0, TextDelta("please."))])
    assert [line.spoken for line in lines] == [[], ["Hear me out,", "please."]]
    assert told.journal.failure is None
    assert told.journal.heard_text == "Hear me out, please."
    assert np.abs(told.tape.speech).max() > 0.1


def test_phrases_after_the_one_in_which_a_connection_died_are_said_by_the_next():
    told, lines = conversation(DiesInMidPhrase, [(0.0, TextDelta("Hear me out, please. I am not done."))])
    assert [" ".join(line.spoken) for line in lines] == ["Hear me out,", "please. I am not done."]
    assert told.journal.failure is None


def before_a_long_tool(*said):
    """Words, a tool that runs until 40 s, and the answer."""
    return [
        *said,
        (said[-1][0] + 0.1, ToolCallStart(tool_name="look", tool_call_id="1")),
        (said[-1][0] + 0.1, ToolCallEnd(tool_name="look", tool_call_id="1", arguments_json="{}", status="ok")),
        (40.0, ToolResult(tool_name="look", tool_call_id="1", is_error=False, content="")),
        (40.1, TextDelta(" There it is.")),
    ]


def test_after_a_connection_that_died_in_mid_phrase_a_long_tool_is_waited_for():
    told, _ = conversation(DiesInMidPhrase, before_a_long_tool((0.0, TextDelta("Hear me out, please."))))
    assert told.journal.failure is None
    assert np.abs(told.tape.speech[40 * 24000 :]).max() > 0.1


def test_after_an_own_voice_died_in_its_second_phrase_a_long_tool_is_waited_for():
    events = before_a_long_tool((0.0, TextDelta("Good morning. ")), (2.0, TextDelta("Let me see. ")))
    told, lines = conversation(DiesInSecondPhrase, events)
    assert [line.spoken for line in lines] == [["Good morning.", "Let me see."], ["There it is."]]
    assert told.journal.failure is None


def test_words_held_back_when_a_connection_died_stay_one_phrase_with_those_after_them():
    text = "Hello. Let me look for the weather in Oslo. It is sunny."
    events = [(0.3 * n, TextDelta(f"{word} ")) for n, word in enumerate(text.split())]
    told, lines = conversation(DiesTwice, events)
    said = [line.spoken for line in lines]
    assert said == [[], ["Hello.", "Let me look for the weather in Oslo."], ["It is sunny."]]
    assert told.journal.failure is None


def test_the_attempts_of_one_answer_are_not_those_of_the_next():
    class DiesThrice(Line):
        n_deaths = 0

        async def speak(self, phrase):
            if DiesThrice.n_deaths < 3:
                DiesThrice.n_deaths += 1
                raise SpeakerError("the line is dead")
            async for speech in super().speak(phrase):
                yield speech

    told, _ = conversation(DiesThrice, [[(0.0, TextDelta("Hear me out."))], [(0.0, TextDelta("It is sunny."))]])
    assert (DiesThrice.n_deaths, told.journal.failure) == (3, None)
    assert told.journal.heard_text == "It is sunny."


def test_a_phrase_that_was_flushed_ends_where_a_connection_that_died_in_it_is_taken_up():
    async def go():
        lines = []

        def make():
            lines.append(DiesInMidPhrase())
            lines[-1].first = len(lines) == 2
            return lines[-1]

        speaker = LastingSpeaker(make, clock=LoopClock())
        await speaker.start()
        await speaker.send("Let me look that up")
        await speaker.flush()
        await speaker.send(" It is 42, and that is all.")
        await speaker.finish()
        async for _ in speaker:
            pass
        return [line.spoken for line in lines[1:]]

    assert run_virtually(go) == [["Let me look that up"], ["It is 42, and that is all."]]


def test_a_connection_that_breaks_off_in_mid_sound_clicks_at_neither_edge():
    told, lines = conversation(BreaksOff, [(0.0, TextDelta("Hear me out, please."))])
    assert len(lines) == 2
    sound = np.trim_zeros(told.tape.speech)
    assert len(sound) > 9600
    assert np.abs(np.diff(sound[1:-1])).max() < 1.05 * 0.5 * 0.1 * np.pi, "no step is larger than those of the sound"


def test_text_without_spaces_is_said_once_by_the_next():
    script = [(0.0, TextDelta("今天北京的天气很好。")), (9.0, TextDelta("明天会更冷。")), (9.1, TextDelta("再见。"))]
    told, lines = conversation(DiesInMidPhrase, script)
    assert [line.spoken for line in lines] == [["今天北京的天气很好。"], ["明天会更冷。", "再见。"]]
    assert told.journal.failure is None


@pytest.mark.parametrize("every_s", [0.03, 0.1, 0.2])
def test_text_that_comes_while_a_connection_is_opened_again_is_said_once_and_in_order(every_s):
    words = [f"word {n}. " for n in range(20)]
    told, lines = conversation(OpensSlowly, [(every_s * n, TextDelta(word)) for n, word in enumerate(words)])
    said = " ".join(phrase for line in lines for phrase in line.spoken)
    assert (said, len(lines), told.journal.failure) == ("".join(words).strip(), 2, None)
    assert told.leaked == set()
    assert all(line.closed_s is not None for line in lines)


def test_a_voice_that_always_dies_is_given_up():
    told, lines = conversation(AlwaysDies, [(0.0, TextDelta("Hear me out."))])
    assert "failed 2 times" in told.journal.failure
    assert len(lines) == 2
    assert all(line.closed_s is not None for line in lines)


def test_every_turn_of_a_conversation_is_spoken_also_after_a_barge_in():
    turns = [[(0.0, TextDelta("This is a long story of birds and bees."))], [(0.5, TextDelta("Yes?"))]]
    told, lines = conversation(Line, turns, barge_in_s=1.0)
    assert told.journal.heard_text == "Yes?"
    assert told.history.messages[0]["content"].endswith("Yes?")
    assert len(told.tape.speech) > 1.5 * RATE
    assert all(line.closed_s is not None for line in lines)


def test_closing_leaves_no_task():
    async def go():
        speaker = LastingSpeaker(KeptAlive, clock=LoopClock())
        await speaker.start()
        await speaker.aclose()
        return len(asyncio.all_tasks())

    assert run_virtually(go) == 1
