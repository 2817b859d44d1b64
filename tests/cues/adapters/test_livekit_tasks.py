"""LiveKit's tasks: a tool asks the user for something, and the user's answer is what it waits for."""

import asyncio

import pytest
from livekit.agents import Agent, AgentSession, AgentTask, RunContext, function_tool, vad
from livekit.agents.beta.workflows import GetEmailTask

from cues.adapters.livekit import DeafToCues, attach
from stream.routing.rules import CueRules
from tests.support.listening import RATE
from tests.support.livekit_session import Detector, ListSink, Microphone, ScriptedLLM, VoiceLikeTTS, call_of
from tests.support.virtual_loop import LoopClock, run_virtually

ASKED = [[0.3, call_of("book", {}, "1")], ["What is your email?"]]
GIVEN = [0.5, call_of("give", {"email": "a"}, "2")]


class Email(AgentTask[str]):
    """Asks for an email, and is given it by a call, or by itself after `after_s`."""

    def __init__(self, after_s=None):
        super().__init__(instructions="Ask for it.")
        self.after_s = after_s

    async def on_enter(self):
        self.session.generate_reply()
        if self.after_s:
            asyncio.get_running_loop().call_later(self.after_s, self.complete, "a")

    @function_tool
    async def give(self, email: str) -> None:
        """Give the email."""
        self.complete(email)

    @function_tool
    async def note(self) -> None:
        """Take a note, of which nobody speaks."""

    @function_tool
    async def check(self) -> str:
        """Take long."""
        await asyncio.sleep(8.0)
        return "It exists."


class NoisyRoom(Detector):
    """Takes what it hears from 8 s to 9 s for the user; no word is in it."""

    def stream(self):
        return _Noise(self)


class _Noise(vad.VADStream):
    async def _main_task(self):
        n_frames = 0
        async for _ in self._input_ch:
            n_frames += 1
            kind = {400: "start_of_speech", 450: "end_of_speech"}.get(n_frames)
            if kind:
                at = {"samples_index": 0, "timestamp": self._vad.clock.now()}
                event = vad.VADEvent(vad.VADEventType(kind), **at, speech_duration=1.0, silence_duration=0.5)
                self._event_ch.send_nowait(event)


def booking(task, more_s=0.0):
    """A tool that awaits `task()`, and runs for `more_s` after it."""

    @function_tool
    async def book() -> str:
        """Book a table."""
        given = await task() if task else await asyncio.sleep(30.0)
        await asyncio.sleep(more_s)
        return f"booked for {given}"

    return book


def talk(answers, tool, *turns, until_s=40.0, detector=Detector, profile="full"):
    """Ask `answers` to book, then say something at each of `turns`; returns the sink, the router and the detector."""

    async def go():
        clock = LoopClock()
        sink, hears = ListSink(clock), detector(clock)
        turns_by = {"turn_detection": "manual"}  # a noise alone is no turn, as with a recognizer
        model = ScriptedLLM(list(answers), clock.sleep)
        session = AgentSession(llm=model, tts=VoiceLikeTTS(), vad=hears, turn_handling=turns_by)
        session.input.audio, session.output.audio = Microphone(), sink
        await session.start(Agent(instructions="test", tools=[tool]))
        handle = attach(session, clock=clock, rules=CueRules(profile=profile))
        session.input.audio = DeafToCues(session.input.audio, handle.router)
        for at_s in (0.0, *turns):
            await clock.sleep_until(at_s)
            session.generate_reply(user_input="So it is.")
        await clock.sleep_until(until_s)
        await session.aclose()
        return sink, handle.router, hears

    return run_virtually(go)


def sounds(sink, since_s, until_s):
    return any(frame.any() for at_s, frame in sink.frames if since_s <= at_s < until_s)


@pytest.mark.parametrize("task", [Email, GetEmailTask], ids=["a task", "one of LiveKit's"])
@pytest.mark.parametrize("said", [[], ["Sure. "]], ids=["call alone", "words before the call"])
@pytest.mark.parametrize("profile", ["full", "minimal"])
def test_while_a_task_listens_nothing_sounds_and_the_user_is_heard(task, said, profile):
    answers = [[0.3, *said, ASKED[0][1]], ASKED[1]]
    sink, _, detector = talk(answers, booking(task), profile=profile)
    assert sounds(sink, 1.0, 2.0), "the question"
    assert not sounds(sink, 3.5, 40.0)
    assert not any(detector.deaf(3.5, 40.0))


def test_neither_a_noise_nor_a_user_who_is_away_begins_the_wait_of_a_task():
    sink, *_ = talk(ASKED, booking(Email), detector=NoisyRoom)
    assert not sounds(sink, 3.5, 40.0)


def test_a_tool_without_a_task_is_waited_for_after_a_noise():
    sink, router, _ = talk([[0.3, "Let me see. ", ASKED[0][1]], ["Booked."]], booking(None), detector=NoisyRoom)
    assert sounds(sink, 5.0, 7.0)
    assert not sounds(sink, 8.1, 9.0)
    assert sounds(sink, 13.0, 30.0)
    assert {span.cue for span in router.spans} == {"tool_call", "working", "success"}


@pytest.mark.parametrize("after_s", [None, 12.0], ids=["by a call", "by itself"])
def test_the_wait_begins_again_when_the_tool_runs_on_after_its_task(after_s):
    turns = () if after_s else (12.0,)
    answers = [*ASKED, *([] if after_s else [GIVEN]), ["Booked."]]
    sink, *_ = talk(answers, booking(lambda: Email(after_s), 10.0), *turns)
    assert not sounds(sink, 3.5, 12.0)
    assert sounds(sink, 17.0, 19.0)
    assert not sounds(sink, 25.0, 40.0)


def test_the_user_waits_for_a_tool_of_the_task_itself():
    sink, *_ = talk([*ASKED, [0.5, call_of("check", {}, "2")], ["Is it a?"]], booking(Email), 10.0)
    assert not sounds(sink, 3.5, 10.0)
    assert sounds(sink, 14.5, 18.0)
    assert not sounds(sink, 21.0, 40.0)


def test_a_call_without_an_answer_in_a_task_has_its_whole_cue():
    _, router, _ = talk([*ASKED, [0.5, call_of("note", {}, "2")]], booking(Email), 10.0)
    lengths = {}
    for span in router.spans:
        lengths.setdefault(span.cue, []).append(span.end_samples - span.start_samples)
    assert set(lengths) == {"tool_call", "success"}
    assert lengths["tool_call"][0] == lengths["tool_call"][1]
    assert min(lengths["success"]) > 0.1 * RATE


class Billing(Agent):
    """Greets, if `greets`, once it has looked for `after_s`."""

    def __init__(self, *, greets, after_s):
        super().__init__(instructions="Greet.")
        self.greets, self.after_s = greets, after_s

    async def on_enter(self):
        await asyncio.sleep(self.after_s)
        if self.greets:
            self.session.generate_reply()


@pytest.mark.parametrize("after_s", [0.0, 0.5])
@pytest.mark.parametrize("greets", [True, False])
@pytest.mark.parametrize("returned", [True, False])
def test_one_waiting_sound_lasts_over_a_change_of_the_agent_and_ends_if_that_one_says_nothing(
    greets, after_s, returned
):
    @function_tool
    async def book(context: RunContext) -> Agent | None:
        """Hand over."""
        await asyncio.sleep(5.0)
        agent = Billing(greets=greets, after_s=after_s)
        return agent if returned else context.session.update_agent(agent)

    sink, router, _ = talk([[0.3, ASKED[0][1]], [4.0, "I am billing."]], book)
    (working,) = (span for span in router.spans if span.cue == "working")
    assert working.start_s == pytest.approx(4.0, abs=0.1)
    assert working.end_samples / RATE == pytest.approx(5.3 + (after_s + 4.0 if greets else 0.7), abs=0.15)
    assert sounds(sink, 9.4, 11.0) == greets
    assert router.is_over
