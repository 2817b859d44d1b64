"""Router, mixer and pacer without a session: the page's loop of your own."""

import numpy as np

import cues
from stream.events import ToolCallStart, ToolResult
from stream.routing.router import CueRouter


class Loop:
    """Mixer, pacer and router on a clock that is moved by hand."""

    def __init__(self):
        self.now_s = 0.0
        self.mixer = cues.Mixer()
        self.pacer = cues.Pacer(self.mixer, clock=lambda: self.now_s)
        self.router = CueRouter(cues.load_bank(), self.mixer, now_samples=lambda: round(self.now_s * 24000))
        self.frames, self.copies = [], []

    def pass_s(self, seconds):
        for _ in range(round(seconds / 0.01)):
            self.now_s += 0.01
            due = self.pacer.due()
            self.frames += due
            self.copies += [frame.copy() for frame in due]
            self.router.poll()

    def speak(self, seconds):
        self.pacer.push(0.1 * np.sin(np.arange(round(seconds * 24000)) * 0.1))
        self.router.speech(self.mixer.position + self.pacer.queued_samples)


def working(loop):
    return [span for span in loop.router.spans if span.cue == "working"]


def test_a_call_whose_outcome_nobody_tells_keeps_the_loop_alive_until_the_turn_is_ended():
    loop = Loop()
    loop.router.handle(ToolCallStart("get_weather", "1"))
    loop.pass_s(20.0)
    assert loop.pacer.wait_s() is not None
    loop.router.cancel()
    loop.pass_s(1.0)
    assert loop.pacer.wait_s() is None


def test_after_every_outcome_there_is_nothing_to_wait_for():
    loop = Loop()
    loop.router.handle(ToolCallStart("get_weather", "1"))
    loop.router.handle(ToolResult(tool_name="get_weather", tool_call_id="1", is_error=False, content=""))
    loop.speak(1.0)
    loop.pacer.end()
    loop.pass_s(3.0)
    assert loop.pacer.wait_s() is None


def test_the_waiting_sound_makes_way_for_speech_that_the_router_is_told_of():
    loop = Loop()
    loop.router.handle(ToolCallStart("get_weather", "1"))
    loop.pass_s(3.0)
    loop.speak(5.0)
    until = loop.mixer.position + loop.pacer.queued_samples
    loop.pass_s(9.0)
    assert [span.start_samples > until for span in working(loop)] == [True]


def test_short_turns_that_are_seconds_apart_are_no_burst():
    loop, heard = Loop(), []
    loop.router.tell(on_played=lambda played: heard.append(played.cue))
    for number in range(6):
        loop.router.begin_turn()
        loop.router.handle(ToolCallStart("set_lamp", str(number)))
        loop.pass_s(0.4)
        loop.router.handle(ToolResult(tool_name="set_lamp", tool_call_id=str(number), is_error=True, content=""))
        loop.router.end_stream()
        loop.pass_s(4.0)  # the output stands still
    assert heard == ["tool_call", "error"] * 6
    assert not loop.router.sounded()
