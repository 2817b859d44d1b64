"""The turn matrix in LiveKit: a whole `AgentSession`, whose model calls tools and whose voice is slow."""

import asyncio
from dataclasses import replace

import pytest
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, Agent, AgentSession, function_tool, tts

from cues.adapters.livekit import attach
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.routing.rules import CueRules, Limits
from tests.support.listening import new_clicks, steady_voice
from tests.support.livekit_session import ListSink, ScriptedLLM, call_of
from tests.support.paced_turns import Played
from tests.support.turn_matrix import (
    ASKED_S,
    INTERRUPTED,
    RATE,
    STATES,
    THINKING,
    TURNS,
    Call,
    Turn,
    check_barge_in,
    check_hang,
    check_whole_turn,
    lasts_s,
)
from tests.support.virtual_loop import LoopClock, run_virtually

VOICE = float_of_pcm16(pcm16_of_float(steady_voice(2.0)))


class SlowVoice(tts.TTS):
    """Speaks `VOICE` for any text, `delay_s` later."""

    def __init__(self, delay_s):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1)
        self.delay_s = delay_s

    def synthesize(self, text, *, conn_options=DEFAULT_API_CONNECT_OPTIONS):
        return _SlowStream(tts=self, input_text=text, conn_options=conn_options)


class _SlowStream(tts.ChunkedStream):
    async def _run(self, output_emitter):
        await asyncio.sleep(self._tts.delay_s)
        output_emitter.initialize(request_id="1", sample_rate=RATE, num_channels=1, mime_type="audio/pcm")
        output_emitter.push(pcm16_of_float(VOICE))
        output_emitter.flush()


class Sink(ListSink):
    """The end of the chain."""

    def __init__(self, clock):
        super().__init__(clock)
        self.played = Played(clock)

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        self.played.add(float_of_pcm16(bytes(frame.data)))


def tools_of(turn):
    calls = iter([call for call in turn.calls if call.ends != "invented"])

    @function_tool
    async def search(text: str) -> str:
        """Search."""
        call = next(calls)
        if call.ends == "timeout":
            async with asyncio.timeout(call.runs_s):
                await asyncio.sleep(1e6)
        await asyncio.sleep(1e6 if call.ends == "never" else call.runs_s)
        if call.ends == "error":
            raise RuntimeError("no such page")
        return "found"

    return [search]


def play(turn, *, lasts_s, interrupt_s=None, **options):
    """Frames of the sink, and the router."""
    answers = [[turn.think_s, call_of(call.name, {"text": "a"}, f"call_{n}")] for n, call in enumerate(turn.calls)] + [
        [turn.think_s, turn.answer]
    ]

    async def go():
        clock = LoopClock()
        session = AgentSession(llm=ScriptedLLM(answers), tts=SlowVoice(turn.voice_s))
        sink = session.output.audio = Sink(clock)
        await session.start(Agent(instructions="test", tools=tools_of(turn)))
        handle = attach(session, clock=clock, **options)
        await asyncio.sleep(ASKED_S)
        session.generate_reply(user_input="How is the weather?")
        if interrupt_s is not None:
            await asyncio.sleep(interrupt_s)
            session.interrupt(force=True)
        await asyncio.sleep(lasts_s - (interrupt_s or 0.0))
        heard = sink.played.heard(handle.router.spans, None if interrupt_s else VOICE, asked_s=ASKED_S)
        was_over = handle.router.phase == "done"
        closing = asyncio.create_task(session.aclose())
        await asyncio.wait([closing], timeout=30.0)
        closing.cancel()
        return heard, was_over

    return run_virtually(go)


@pytest.mark.parametrize("name", TURNS)
def test_no_dead_air_from_the_question_to_the_first_word(name):
    turn = TURNS[name]
    if name == "unknown tool":
        turn = replace(turn, cues=("error",))  # The framework refuses it, before it is a call.
    heard, was_over = play(turn, lasts_s=lasts_s(turn), rules=THINKING)
    check_whole_turn(turn, heard)
    assert new_clicks(heard.mixed, heard.speech) == []
    assert was_over


@pytest.mark.parametrize("name", [name for name, turn in TURNS.items() if turn.calls])
def test_without_a_sound_for_thinking_there_is_no_dead_air_from_the_first_call_on(name):
    turn = TURNS[name]
    if name == "unknown tool":
        turn = replace(turn, cues=("error",))
    heard, _ = play(turn, lasts_s=lasts_s(turn))
    check_whole_turn(turn, replace(heard, asked=heard.spans[0].start_samples))


@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state):
    heard, was_over = play(INTERRUPTED, lasts_s=90.0, interrupt_s=STATES[state], rules=THINKING)
    check_barge_in(heard, state)
    assert was_over


@pytest.mark.parametrize(
    ("turn", "limits"),
    [
        (Turn((Call("search", 0.0, "never"),)), Limits(tool_s=20.0)),
        (Turn((), think_s=1e6), Limits(model_s=20.0)),
        (Turn((Call("search", 5.0),), voice_s=1e6), Limits(model_s=20.0)),
    ],
    ids=["tool", "model", "voice"],
)
@pytest.mark.parametrize("sounds", [True, False], ids=["waiting sound", "silent"])
def test_a_hang_ends_with_the_error_cue(turn, limits, sounds, caplog):
    rules = THINKING if sounds else CueRules(working=None)
    heard, _ = play(turn, lasts_s=45.0, interrupt_s=40.0, rules=rules, limits=limits)
    check_hang(heard, caplog.text, sounds=sounds)
