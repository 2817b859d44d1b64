"""The turn matrix in FastRTC: its own emptying loop, and a handler that reports what its model streams."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from fastrtc import AsyncStreamHandler
from fastrtc.utils import player_worker_decode

from cues.adapters.fastrtc import with_cues
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import CueRules
from tests.support.listening import new_clicks, steady_voice
from tests.support.paced_turns import Played
from tests.support.turn_matrix import (
    ASKED_S,
    HANGS,
    INTERRUPTED,
    RATE,
    STATES,
    THINKING,
    TURNS,
    check_barge_in,
    check_hang,
    check_whole_turn,
    lasts_s,
)
from tests.support.virtual_loop import LoopClock, run_virtually

VOICE = steady_voice(2.0)


class Assistant(AsyncStreamHandler):
    """Plays a turn as a handler does that reads a model's stream, runs its tools and speaks."""

    def __init__(self, turn):
        super().__init__(output_sample_rate=RATE)
        self._turn, self._items = turn, asyncio.Queue()

    async def receive(self, frame): ...

    async def emit(self):
        return await self._items.get()

    def copy(self):
        return Assistant(self._turn)

    async def answer(self):
        self.cues.begin_turn()
        for number, call in enumerate(self._turn.calls):
            await asyncio.sleep(self._turn.think_s)
            self.cues.handle(ToolCallStart(call.name, str(number)))
            self.cues.handle(ToolCallEnd(call.name, str(number)))
            self.cues.handle(Finish("tool_calls"))
            await asyncio.sleep(1e6 if call.ends == "never" else call.runs_s)
            failed = call.ends != "success"
            self.cues.handle(
                ToolResult(tool_name=call.name, tool_call_id=str(number), is_error=failed, content=call.ends)
            )
        await asyncio.sleep(self._turn.think_s)
        self.cues.handle(TextDelta(self._turn.answer))
        self.cues.handle(Finish("stop"))
        await asyncio.sleep(self._turn.voice_s)
        for piece in np.array_split(VOICE, 10):
            self._items.put_nowait((RATE, piece.reshape(1, -1)))


def play(turn, *, lasts_s, interrupt_s=None, **options):
    """Output of `emit`, and the router."""

    async def go():
        clock = LoopClock()
        inner = Assistant(turn)
        outer = with_cues(inner, clock=clock, tools=["search"], **options)
        played = Played(clock)

        async def emit():
            item = await outer.emit()
            if item is not None:
                played.add(item[1])
            return item

        decoding = player_worker_decode(
            emit, asyncio.Queue(), asyncio.Event(), None, lambda _: None, False, RATE, RATE // 50
        )
        loop = asyncio.create_task(decoding)
        await asyncio.sleep(ASKED_S)
        answering = asyncio.create_task(inner.answer())
        if interrupt_s is not None:
            await asyncio.sleep(interrupt_s)
            answering.cancel()
            inner.clear_queue()
        await asyncio.sleep(lasts_s - (interrupt_s or 0.0))
        answering.cancel()
        loop.cancel()
        outer.shutdown()
        return played.heard(outer.router.spans, None if interrupt_s else VOICE, asked_s=ASKED_S), outer.router

    return run_virtually(go)


@pytest.mark.parametrize("name", TURNS)
def test_no_dead_air_from_the_question_to_the_first_word(name):
    turn = TURNS[name]
    if name == "unknown tool":
        turn = replace(turn, cues=("error",))  # The tools are declared: the name alone decides.
    heard, router = play(turn, lasts_s=lasts_s(turn), rules=THINKING)
    check_whole_turn(turn, heard)
    assert new_clicks(heard.mixed, heard.speech) == []
    assert router.is_over


@pytest.mark.parametrize("name", [name for name, turn in TURNS.items() if turn.calls])
def test_without_a_sound_for_thinking_there_is_no_dead_air_from_the_first_call_on(name):
    turn = TURNS[name]
    if name == "unknown tool":
        turn = replace(turn, cues=("error",))
    heard, _ = play(turn, lasts_s=lasts_s(turn))
    check_whole_turn(turn, replace(heard, asked=heard.spans[0].start_samples))


@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state):
    heard, router = play(INTERRUPTED, lasts_s=90.0, interrupt_s=STATES[state], rules=THINKING)
    check_barge_in(heard, state)
    assert router.is_over


@pytest.mark.parametrize(("turn", "limits"), HANGS.values(), ids=HANGS.keys())
@pytest.mark.parametrize("sounds", [True, False], ids=["waiting sound", "silent"])
def test_a_hang_ends_with_the_error_cue(turn, limits, sounds, caplog):
    rules = THINKING if sounds else CueRules(working=None)
    heard, _ = play(turn, lasts_s=45.0, interrupt_s=40.0, rules=rules, limits=limits)
    check_hang(heard, caplog.text, sounds=sounds)
