"""Time between the turns of a session, in which no frame is written: it passes for the user, and for the router."""

import asyncio

import cues
from stream.events import Finish, StreamFailed, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter, CueRules
from stream.session import VoiceSession
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.turns import RATE, Source, Tape
from tests.support.virtual_loop import LoopClock, run_virtually

CALL = [(0.0, ToolCallStart("set_lamp", "1")), (0.0, ToolCallEnd("set_lamp", "1"))]
FAILS = [
    *CALL,
    (0.4, ToolResult(tool_name="set_lamp", tool_call_id="1", is_error=True, content="")),
    (0.4, Finish("stop")),
]
SUCCEEDS = [
    *CALL,
    (2.0, ToolResult(tool_name="set_lamp", tool_call_id="1", is_error=False, content="")),
    (2.0, Finish("stop")),
]


class LateClock(LoopClock):
    """A clock that was made later than the loop."""

    def __init__(self):
        self._made_s = super().now()

    def now(self):
        return super().now() - self._made_s


def talk(router, mixer, clock=None):
    return VoiceSession(mixer=mixer, router=router, speaker=VoiceLikeSpeaker(), sink=Tape(), clock=clock or LoopClock())


def cues_of(turns, *, pause_s, sessions=1, **options):
    """The cues of each turn; the user needs `pause_s` between them."""

    async def go():
        mixer = cues.Mixer(RATE)
        router = CueRouter(cues.load_bank(), mixer, **options)
        heard = []
        for _ in range(sessions):
            session = talk(router, mixer, LateClock())
            for turn in turns:
                journal = await session.run(Source(turn))
                heard.append([sounded.cue for sounded in journal.sounded])
                await asyncio.sleep(pause_s)
        return heard

    return run_virtually(go)


def test_short_turns_that_are_seconds_apart_are_no_burst():
    assert cues_of([FAILS] * 8, pause_s=3.0) == [["tool_call", "error"]] * 8


def test_short_turns_that_follow_each_other_at_once_are_a_burst():
    assert cues_of([FAILS] * 4, pause_s=0.0)[-1] != ["tool_call", "error"]


def test_the_cues_of_a_minute_are_those_of_a_minute_of_the_user():
    heard = cues_of([SUCCEEDS] * 9, pause_s=7.0, rules=CueRules(profile="normal"))
    assert heard == [*[["tool_call"]] * 6, [], *[["tool_call"]] * 2]


def test_another_session_over_the_same_router_does_not_set_its_time_back():
    heard = cues_of([FAILS] * 4, pause_s=3.0, sessions=2)
    assert heard == [["tool_call", "error"]] * 8


def test_a_cue_at_the_end_of_a_turn_does_not_sound_until_the_next_one():
    async def go():
        mixer = cues.Mixer(RATE)
        router = CueRouter(cues.load_bank(), mixer)
        session = talk(router, mixer)
        await session.run(Source([(0.0, StreamFailed("gone"))]))
        sounded = [router.sounded()]
        await asyncio.sleep(1.0)
        sounded.append(router.sounded())
        return sounded

    assert run_virtually(go) == [True, False]


def test_a_turn_that_is_cut_off_and_its_pause_count_once():
    async def go():
        mixer = cues.Mixer(RATE)
        router = CueRouter(cues.load_bank(), mixer)
        session = talk(router, mixer)
        times_s = []
        for _ in range(3):
            turn = asyncio.create_task(session.run(Source(SUCCEEDS)))
            await asyncio.sleep(0.5)
            turn.cancel()  # the fade is written at once, ahead of time
            await asyncio.wait({turn})
            await asyncio.sleep(3.0)
            times_s.append((router._player.now_s, LoopClock().now()))
        return times_s

    assert all(abs(counted_s - passed_s) < 0.05 for counted_s, passed_s in run_virtually(go))


def test_a_router_that_was_made_with_a_clock_keeps_it():
    now = [0]
    heard = cues_of([FAILS] * 4, pause_s=60.0, now_samples=lambda: now[0])
    assert heard[-1] == []
