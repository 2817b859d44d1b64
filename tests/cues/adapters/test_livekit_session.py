"""LiveKit sessions that attach, close, change their output, and call what does not exist."""

import asyncio

import numpy as np
import pytest
from livekit.agents import Agent, AgentSession, APIConnectionError, function_tool
from livekit.agents.llm import FunctionToolCall
from livekit.agents.voice import io

from cues.adapters.livekit import SessionCues, attach
from cues.errors import CueTypeError, CueValueError
from stream.events import ToolCallStart
from stream.routing.rules import CueRules
from tests.support.listening import RATE, first_sound, last_sound, new_clicks, steady_voice
from tests.support.livekit_session import ListSink, ScriptedLLM, VoiceLikeTTS, call_of, say
from tests.support.virtual_loop import LoopClock, run_virtually


class Wrapper(io.AudioOutput):
    """An output in the middle of a chain, as the synchronizer of transcripts and the recorder are."""

    def __init__(self, sink):
        super().__init__(label="wrapper", capabilities=io.AudioOutputCapabilities(pause=True), next_in_chain=sink)

    @property
    def sample_rate(self):
        return self.next_in_chain.sample_rate

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        await self.next_in_chain.capture_frame(frame)

    def flush(self):
        super().flush()
        self.next_in_chain.flush()

    def clear_buffer(self):
        self.next_in_chain.clear_buffer()


class NeverSubscribed(ListSink):
    """A room's output to which no one listens: it takes no frame."""

    async def capture_frame(self, _frame):
        await asyncio.get_running_loop().create_future()


def in_session(script, answers=(), tools=(), *, sink=ListSink, wrapped=True):
    """Run `script(session, sink, clock)` with a started session; the tasks that outlive it fail."""

    async def go():
        clock = LoopClock()
        session = AgentSession(llm=ScriptedLLM(list(answers), clock.sleep), tts=VoiceLikeTTS())
        end = sink(clock)
        session.output.audio = Wrapper(end) if wrapped else end

        async def all_of_it():
            await session.start(Agent(instructions="test", tools=list(tools)))
            await script(session, end, clock)
            await session.aclose()

        await all_of_it()
        await asyncio.sleep(0)
        assert [task for task in asyncio.all_tasks() if "cues" in repr(task.get_coro())] == []

    run_virtually(go)


def cues_of(handle):
    return [span.cue for span in handle.router.spans if span.cue != "working"]


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "alone"])
def test_closing_the_session_ends_what_the_adapter_started(wrapped):
    async def script(session, sink, clock):
        handle = attach(session, clock=clock)
        handle.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(1.0)

    in_session(script, wrapped=wrapped)


def test_attaching_twice_keeps_the_cues_and_nests_nothing():
    async def script(session, sink, clock):
        handle = attach(session, clock=clock)
        assert attach(session) is handle
        with pytest.raises(CueValueError, match="has cues already"):
            attach(session, bank={})
        with pytest.raises(CueValueError, match="has cues already"):
            await handle.start(agent_session=session)
        chain = [type(output).__name__ for output in outputs_of(session)]
        assert chain.count("CueOutput") == 1
        handle.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(1.0)
        assert handle.router.stats.played == 1

    in_session(script)


def outputs_of(session):
    output = session.output.audio
    while output is not None:
        yield output
        output = output.next_in_chain


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "alone"])
def test_a_closed_handle_gives_the_session_its_output_back_and_may_be_followed_by_another(wrapped):
    async def script(session, sink, clock):
        handle = SessionCues(clock=clock)
        with pytest.raises(CueTypeError, match="have not been started"):
            _ = handle.router
        await handle.start(room=None, agent_session=session)
        output = session.output.audio
        await say(output, steady_voice(2.0))
        await clock.sleep(0.5)
        await handle.aclose()
        await handle.aclose()
        assert list(outputs_of(session))[-1] is sink
        assert (first_sound(sink.signal()), new_clicks(sink.signal(), np.zeros(1))) != (None, [])
        heard = sink.signal()
        assert 0.45 * RATE < last_sound(heard, 0.0) < 0.6 * RATE
        assert new_clicks(heard, np.zeros_like(heard)) == []
        assert (await output.wait_for_playout()).interrupted
        again = attach(session, clock=clock)
        again.router.handle(ToolCallStart("read_file", "1"))
        await clock.sleep(1.0)
        assert len(sink.signal()) > len(heard)
        assert handle.router.stats.played == 0

    in_session(script, wrapped=wrapped)


@pytest.mark.parametrize(
    ("first", "wrapped", "rate"),
    [(ListSink, True, 16000), (ListSink, False, RATE), (NeverSubscribed, True, RATE), (NeverSubscribed, False, 16000)],
)
def test_an_avatar_that_replaces_the_output_has_the_cues(first, wrapped, rate):
    async def script(session, sink, clock):
        handle = attach(session, clock=clock, rules=CueRules(working=None))
        await say(session.output.audio, steady_voice(2.0))
        await clock.sleep(0.5)
        avatar = ListSink(clock, rate)
        session.output.replace_audio_tail(avatar)
        await clock.sleep(0.5)
        n_room = len(sink.frames)
        handle.router.handle(ToolCallStart("read_file", "1"))
        await say(session.output.audio, steady_voice(1.0, rate=rate), rate=rate)
        await clock.sleep(2.0)
        assert len(sink.frames) == n_room
        assert session.output.audio.sample_rate == handle.output.sample_rate == rate
        assert {len(frame) for _, frame in avatar.frames} == {rate // 50}
        # Speech of one second is not made longer; the cue is in it, and the avatar hears where its segment ends.
        assert len(np.concatenate([frame for _, frame in avatar.frames])) / rate == pytest.approx(1.0, abs=0.05)
        assert cues_of(handle) == ["tool_call"]
        assert "flush" in avatar.told

    in_session(script, sink=first, wrapped=wrapped)


@function_tool
async def read_file(path: str) -> str:
    """Read a file."""
    return "text"


@pytest.mark.parametrize(
    "first",
    [
        call_of("no_such_tool", {"path": "a"}),
        FunctionToolCall(name="read_file", arguments="[1, 2", call_id="call_00000002"),
        APIConnectionError("no model at that address", retryable=False),
    ],
    ids=["unknown tool", "arguments that aren't an object", "no model"],
)
def test_a_call_that_the_framework_refuses_and_a_model_that_fails_sound_as_an_error(first):
    async def script(session, sink, clock):
        handle = attach(session, clock=clock)
        session.generate_reply(user_input="go")
        await clock.sleep(5.0)
        assert cues_of(handle) == ["error"]
        assert not handle.router.waits

    in_session(script, [[first], ["I cannot do that."]], [read_file])


@function_tool
async def sleep_long(text: str) -> str:
    """Sleep for longer than the framework waits for an interrupted tool."""
    await asyncio.sleep(30.0)
    return text


@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "alone"])
@pytest.mark.parametrize("is_off_first", [True, False], ids=["off before the cues", "off after the cues"])
def test_while_the_audio_is_off_no_cue_is_kept_for_later(wrapped, is_off_first):
    async def script(session, sink, clock):
        if is_off_first:
            session.output.set_audio_enabled(False)
        handle = attach(session, clock=clock)
        session.output.set_audio_enabled(False)
        for _ in range(2):
            session.generate_reply(user_input="go")
            await clock.sleep(8.0)
        assert sink.frames == []
        session.output.set_audio_enabled(True)
        await clock.sleep(8.0)
        assert not any(frame.any() for _, frame in sink.frames)
        assert list(handle.router.spans) == []
        session.generate_reply(user_input="go")
        await clock.sleep(8.0)
        assert cues_of(handle) == ["tool_call", "success"]
        assert any(frame.any() for _, frame in sink.frames)

    fails, works = ([[call_of(name, {"path": "a"})], ["So it is."]] for name in ("no_such_tool", "read_file"))
    in_session(script, [*fails, *works, *works], [read_file], wrapped=wrapped)


def test_a_call_that_still_runs_when_the_audio_is_on_again_has_its_waiting_sound_and_outcome():
    async def script(session, sink, clock):
        handle = attach(session, clock=clock)
        session.output.set_audio_enabled(False)
        session.generate_reply(user_input="sleep")
        await clock.sleep_until(10.0)
        session.output.set_audio_enabled(True)
        await clock.sleep_until(40.0)
        assert [span.cue for span in handle.router.spans] == ["working", "success"]
        assert sink.frames[0][0] >= 10.0

    in_session(script, [[call_of("sleep_long", {"text": "a"})], ["So it is."]], [sleep_long])


class LateSubscriber(ListSink):
    """A room's output to which someone listens from 10 s on: until then it keeps the first frame waiting."""

    async def capture_frame(self, frame):
        await self._clock.sleep_until(10.0)
        await super().capture_frame(frame)


def test_cues_of_before_anybody_listened_are_not_kept_for_later():
    async def script(session, _sink, clock):
        handle = attach(session, clock=clock, rules=CueRules(working=None))
        await say(session.output.audio, steady_voice(0.5))
        await clock.sleep_until(5.0)
        for number in range(3):
            handle.router.handle(ToolCallStart("read_file", str(number)))
            await clock.sleep(1.0)
        await clock.sleep_until(12.0)
        assert cues_of(handle) == []
        handle.router.handle(ToolCallStart("read_file", "4"))
        await clock.sleep_until(14.0)
        assert cues_of(handle) == ["tool_call"]

    in_session(script, sink=LateSubscriber)


@pytest.mark.parametrize("said", [[], ["One moment. "]], ids=["call alone", "words before the call"])
@pytest.mark.parametrize("later_s", [0.0, 2.0], ids=["at once", "later"])
def test_the_question_after_an_interrupted_tool_is_a_turn_of_its_own_though_the_tool_runs_on(said, later_s):
    async def script(session, sink, clock):
        handle = attach(session, clock=clock)
        session.generate_reply(user_input="sleep")
        await clock.sleep_until(8.0)
        session.interrupt(force=True)
        await clock.sleep(later_s)
        session.generate_reply(user_input="something else")
        await clock.sleep_until(28.0)
        assert handle.router.is_over
        before, of_question = (span for span in handle.router.spans if span.cue == "working")
        assert before.end_samples / RATE == pytest.approx(8.1, abs=0.1)
        # The model takes 8 s, of which 4 pass before the waiting sound.
        assert (of_question.end_samples - of_question.start_samples) / RATE == pytest.approx(4.0, abs=0.2)
        assert cues_of(handle) == ["tool_call"]

    in_session(script, [[0.5, *said, call_of("sleep_long", {"text": "a"})], [8.0, "Here I am."]], [sleep_long])


def test_nothing_is_awaited_after_a_queued_reply_whose_tool_asks_for_no_answer():
    @function_tool
    async def show() -> None:
        """Show it on the screen."""
        await asyncio.sleep(0.3)

    async def script(session, _sink, clock):
        router = attach(session, clock=clock).router
        session.generate_reply(instructions="Greet.")
        session.generate_reply(instructions="Show the order.")
        await clock.sleep(20.0)
        assert [span.cue for span in router.spans] == ["tool_call", "success"]
        assert router.is_over

    in_session(script, [[2.0, "Good evening."], [0.5, call_of("show", {}, "1")]], [show])
