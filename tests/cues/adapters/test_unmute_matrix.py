"""The turn matrix in unmute: its loops and its queue, whose speech comes in bursts after a pause, on a virtual clock.

`bench/unmute_package.py` plays turns in unmute itself, in real time.
"""

import asyncio
import functools
from dataclasses import replace

import numpy as np
import pytest

from cues.adapters.unmute import ModelError, UnmuteCues
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.rules import CueRules, Limits
from tests.support.listening import new_clicks, steady_voice
from tests.support.turn_matrix import (
    CHAIN,
    INTERRUPTED,
    PATIENCE_S,
    PERIOD_S,
    RATE,
    STATES,
    THINKING,
    TURNS,
    Call,
    Heard,
    Turn,
    check_silent_after,
    check_whole_turn,
)
from tests.support.virtual_loop import LoopClock, run_virtually

FRAME = 1920
AHEAD_S = 0.32
SPEECH = steady_voice(2.0)


class Voice:
    """unmute's text-to-speech and `_tts_loop`: its `RealtimeQueue` lets frames go when their time is near or past."""

    def __init__(self, queue, voice_s):
        self._queue, self._voice_s = queue, voice_s
        self._start_s, self._n_sent = None, 0

    async def speak(self, speech):
        await asyncio.sleep(self._voice_s)
        now_s = asyncio.get_running_loop().time
        self._start_s = now_s() if self._start_s is None else self._start_s
        for start in range(0, len(speech), FRAME):
            await asyncio.sleep(max(self._n_sent / RATE - AHEAD_S - (now_s() - self._start_s), 0.0))
            await self._queue.put((RATE, speech[start : start + FRAME]))
            self._n_sent += FRAME


async def answer(turn, finish="stop"):
    """The events of a turn whose tools the server runs, in time."""
    for n, call in enumerate(turn.calls):
        await asyncio.sleep(turn.think_s)
        yield ToolCallStart(call.name, str(n))
        yield ToolCallEnd(call.name, str(n))
        if finish == "tool_calls":
            break
        await asyncio.sleep(call.runs_s if call.ends != "never" else 1e6)
        yield ToolResult(tool_name=call.name, tool_call_id=str(n), is_error=call.ends != "success", content=call.ends)
    else:
        await asyncio.sleep(turn.think_s)
        yield TextDelta(turn.answer)
    yield Finish(finish)


def _played(turn, *, lasts_s, interrupt_s, finish, limits, options):
    """Output of `emit`, laid out as it is heard: a frame that comes after the last one has ended begins at once."""

    async def go():
        clock = LoopClock()
        cues_, queue = UnmuteCues(clock=clock, limits=limits, **options), asyncio.Queue()
        emitted, errors = [], []

        async def respond():
            voice, speaking = Voice(queue, turn.voice_s), None
            cues_.begin_response()
            events = cues_.in_time(answer(turn, finish))
            try:
                async for event in events:
                    if isinstance(event, TextDelta):
                        speaking = asyncio.create_task(voice.speak(SPEECH))
                cues_.end_response()
                if speaking is not None:
                    await speaking
            except ModelError as error:
                errors.append(error.event)
                await cues_.finish()
            finally:
                await events.aclose()
                if speaking is not None:
                    speaking.cancel()

        async def emit():
            while True:
                item = await cues_.next_item(queue)
                if item is not None:
                    emitted.append((clock.now(), item[1]))

        tasks = [asyncio.create_task(respond()), asyncio.create_task(emit())]
        if interrupt_s is not None:
            await asyncio.sleep(interrupt_s)
            cues_.interrupt()
            tasks[0].cancel()
        await asyncio.sleep(lasts_s - (interrupt_s or 0.0))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        heard, placed = np.zeros(round((lasts_s + 10.0) * RATE), dtype=np.float32), []
        end = 0
        for at_s, frame in emitted:
            start = max(end, round(at_s * RATE))
            end = start + len(frame)
            heard[start:end] = frame
            placed.append((at_s, start, frame))
        return heard, tuple(cues_.router.spans), placed, errors, cues_.router

    return run_virtually(go)


@functools.cache
def _speech_of(turn, lasts_s, interrupt_s, limits):
    options = {"bank": {}}
    return _played(turn, lasts_s=lasts_s, interrupt_s=interrupt_s, finish="stop", limits=limits, options=options)[0]


def in_heard_time(spans, placed):
    """Spans count emitted samples; this is when they are heard."""
    ends = np.cumsum([len(frame) for *_, frame in placed])
    starts = np.array([start for _, start, _ in placed])

    def at(sample):
        n = min(int(np.searchsorted(ends, sample, side="right")), len(ends) - 1)
        return int(starts[n] + sample - (ends[n] - len(placed[n][2])))

    return tuple(
        replace(s, start_samples=at(s.start_samples), end_samples=None if s.end_samples is None else at(s.end_samples))
        for s in spans
        if s.start_samples < ends[-1]
    )


def _shift(mixed, speech):
    """By how many samples the answer is later for the frames of cues before it: 80 ms of them are on their way."""
    loud = np.flatnonzero(np.abs(speech) > 1e-3)
    if not len(loud):
        return 0
    middle = slice(loud[0] + RATE // 2, loud[0] + RATE)
    piece, longer = speech[middle], mixed[middle.start : middle.stop + RATE // 10]
    return int(np.argmax(np.correlate(longer, piece, "valid")))


def play(turn, *, lasts_s=None, interrupt_s=None, finish="stop", limits=None, **options):
    limits = limits or Limits()
    total = sum(turn.think_s + min(call.runs_s, 40.0) for call in turn.calls) + min(turn.think_s, 40.0)
    lasts_s = lasts_s or total + turn.voice_s + 8.0
    mixed, spans, placed, errors, router = _played(
        turn, lasts_s=lasts_s, interrupt_s=interrupt_s, finish=finish, limits=limits, options=options
    )
    speech = _speech_of(turn, lasts_s, interrupt_s, limits) if finish == "stop" else np.zeros_like(mixed)
    speech = np.roll(speech, _shift(mixed, speech))
    return Heard(mixed, speech, in_heard_time(spans, placed)), placed, errors, router


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("thinking", [True, False], ids=["thinking", "from the first call"])
def test_no_dead_air_from_the_question_to_the_first_word(name, thinking):
    turn = TURNS[name]
    if not (thinking or turn.calls):
        return
    expected = ("error",) if name == "unknown tool" else turn.cues
    heard, *_ = play(turn, rules=THINKING if thinking else CueRules(), tools=["search"])
    check_whole_turn(Turn((), cues=expected), heard)
    assert new_clicks(heard.mixed, heard.speech) == []


@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(state):
    at_s = STATES[state]
    heard, _, _, router = play(INTERRUPTED, lasts_s=25.0, interrupt_s=at_s, rules=THINKING)
    assert heard.mixed[round((at_s - PERIOD_S) * RATE) : round(at_s * RATE)].any()
    # What the client has is played: 360 ms at most, and the fade.
    check_silent_after(heard, round((at_s + 0.3) * RATE))
    assert router.phase == "done"


@pytest.mark.parametrize(
    ("turn", "limits", "fails"),
    [
        (Turn((Call("search", 0.0, "never"),)), Limits(tool_s=20.0), True),
        (Turn((), think_s=1e6), Limits(model_s=20.0), True),
        (Turn((Call("search", 5.0),), voice_s=1e6), Limits(speech_s=20.0), False),
    ],
    ids=["tool", "model", "voice"],
)
def test_a_hang_is_waited_for_with_a_sound_and_ends_with_the_error_cue(turn, limits, fails):
    heard, _, errors, _ = play(turn, lasts_s=40.0, rules=THINKING, limits=limits)
    assert heard.cues[-1] == "error"
    error = [span for span in heard.spans if span.cue == "error"][-1]
    assert heard.longest_silence_s(until=error.start_samples) <= PATIENCE_S + PERIOD_S
    check_silent_after(heard, error.end_samples)
    assert [error.code for error in errors] == (["stalled"] if fails else [])


def test_calls_that_nobody_runs_end_with_the_response():
    heard, *_ = play(CHAIN, finish="tool_calls", lasts_s=30.0)
    assert heard.cues == ("tool_call",)
    check_silent_after(heard, heard.spans[0].end_samples)


def test_after_a_long_tool_a_cue_is_as_late_as_ever_because_speech_is_kept_to_360_ms():
    # Speech before and after a tool of 12 s: the queue of the text-to-speech then lets two seconds go at once.
    async def go():
        clock = LoopClock()
        cues_, queue, emitted = UnmuteCues(clock=clock), asyncio.Queue(), []
        cues_.begin_response()

        async def emit():
            while True:
                item = await cues_.next_item(queue)
                if item is not None:
                    emitted.append((clock.now(), item[1]))

        emitting = asyncio.create_task(emit())
        voice = Voice(queue, 0.0)
        await voice.speak(SPEECH)
        cues_.handle(ToolCallStart("search", "1"))
        cues_.handle(ToolCallEnd("search", "1"))
        await asyncio.sleep(12.0)
        cues_.handle(ToolResult(tool_name="search", tool_call_id="1", is_error=False, content=""))
        cues_.handle(TextDelta("Here."))
        burst_s = clock.now()
        await voice.speak(SPEECH)
        assert clock.now() - burst_s < 0.01
        await asyncio.sleep(0.5)
        called_at, called_s = sum(len(frame) for _, frame in emitted), clock.now()
        cues_.handle(ToolCallStart("search", "2"))
        await asyncio.sleep(5.0)
        emitting.cancel()
        span = [span for span in cues_.router.spans if span.cue == "tool_call"][-1]
        end_s, ahead = 0.0, []
        for at_s, frame in emitted:
            end_s = max(end_s, at_s) + len(frame) / RATE
            ahead.append(end_s - at_s)
        assert span.start_samples == called_at
        unheard = [e for (at_s, _), e in zip(emitted, ahead, strict=True) if at_s <= called_s][-1]
        return max(ahead), unheard

    most_ahead_s, unheard_s = run_virtually(go)
    assert most_ahead_s <= 0.3 + 1e-6
    assert unheard_s <= 0.3 + 1e-6
