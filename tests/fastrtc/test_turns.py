"""The turns of every pipeline in FastRTC: its own emptying loop, and a handler that reports what its model streams."""

import asyncio

import numpy as np
import pytest
from fastrtc import AsyncStreamHandler
from fastrtc.utils import player_worker_decode

from cues.adapters.fastrtc import with_cues
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from tests.support.turn_matrix import (
    HANGS,
    IN_PROFILES,
    PROFILES,
    RATE,
    STATES,
    VOICE,
    WHOLE_TURNS,
    Played,
    play_barge_in,
    play_gap,
    play_hang,
    play_whole_turn,
    play_whole_turn_in_profile,
)


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
            which = {"tool_name": call.name, "tool_call_id": str(number)}
            for event in (ToolCallStart(**which), ToolCallEnd(**which), Finish("tool_calls")):
                self.cues.handle(event)
            await asyncio.sleep(1e6 if call.ends == "never" else call.runs_s)
            self.cues.handle(ToolResult(**which, is_error=call.ends != "success", content=call.ends))
        await asyncio.sleep(self._turn.think_s)
        self.cues.handle(TextDelta(self._turn.answer))
        self.cues.handle(Finish("stop"))
        await asyncio.sleep(self._turn.voice_s)
        for piece in np.array_split(VOICE, 10):
            self._items.put_nowait((RATE, piece.reshape(1, -1)))


class FastRTCTalk:
    holds_s = 0.06

    def __init__(self, turn, clock, **options):
        self._inner = Assistant(turn)
        self._outer = with_cues(self._inner, clock=clock, **options)
        self.router, self.played, self._answering = self._outer.router, Played(clock), None

    async def __aenter__(self):
        decoding = player_worker_decode(
            self._emit, asyncio.Queue(), asyncio.Event(), None, lambda _: None, False, RATE, RATE // 50
        )
        self._decoding = asyncio.create_task(decoding)
        return self

    async def _emit(self):
        item = await self._outer.emit()
        if item is not None:
            self.played.add(item[1])
        return item

    async def ask(self):
        self._answering = asyncio.create_task(self._inner.answer())

    async def interrupt(self):
        self._answering.cancel()
        self._inner.clear_queue()

    async def __aexit__(self, *_):
        self._answering.cancel()
        self._decoding.cancel()
        self._outer.shutdown()


@pytest.mark.parametrize(("name", "thinking"), WHOLE_TURNS)
def test_no_dead_air_up_to_the_first_word(name, thinking):
    play_whole_turn(FastRTCTalk, name, thinking=thinking)


@pytest.mark.parametrize(("name", "profile"), IN_PROFILES)
def test_no_dead_air_in_any_profile(name, profile):
    play_whole_turn_in_profile(FastRTCTalk, name, profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_model_that_hangs_without_a_call_is_heard_to_work_after_four_seconds(profile):
    play_gap(FastRTCTalk, profile)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state, profile):
    play_barge_in(FastRTCTalk, state, profile)


@pytest.mark.parametrize("name", HANGS)
@pytest.mark.parametrize("profile", [*PROFILES, "silent"])
def test_a_hang_ends_with_the_error_cue(name, profile, caplog):
    if profile == "silent":
        play_hang(FastRTCTalk, name, caplog, sounds=False)
    else:
        play_hang(FastRTCTalk, name, caplog, profile=profile)
