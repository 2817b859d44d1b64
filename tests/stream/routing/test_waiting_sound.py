"""The waiting sound: one loop from the first call, or the question, to the first audible sample of the answer.

Everything is read from the mixed samples, on the mixer's own time.
"""

import threading
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import cues
import stream
from stream.events import (
    AudioDelta,
    Finish,
    Interrupted,
    InvalidToolCall,
    ServerError,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallCancelled,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    TranscriptDelta,
)
from stream.routing.router import CueRouter, CueRules
from stream.routing.rules import Limits
from stream.routing.turn_state import NEVER
from tests.support.listening import first_sound, steady_voice
from tests.support.model_server import TOOLS, chat, says
from tests.support.routing import RATE, Pipeline
from tests.support.threads import run_together

PATIENCE_S, PERIOD_S, SILENCE_S = 3.5, 2.4, 4.0
SILENT = CueRules(tool_call=None, success=None, error=None, incomplete=None, malformed=None, invented=None, failed=None)


class Line(Pipeline):
    """A pipeline with the built-in cues."""

    def __init__(self, *, bank=None, **options):
        super().__init__(cues.load_bank() if bank is None else bank, **options)

    def working(self, cue="working"):
        """The waiting sounds that were begun: (start, end) in seconds."""
        return [
            (s.start_s, s.end_s) for s in self.router.spans if s.cue == cue and s.start_samples < self.mixer.position
        ]


def call(call_id="1", name="read_file"):
    return ToolCallStart(name, call_id), ToolCallEnd(name, call_id)


def result(call_id="1", name="read_file", *, is_error=False):
    return ToolResult(tool_name=name, tool_call_id=call_id, is_error=is_error, content="x")


@pytest.mark.parametrize("lead_s", [0.1, 0.3])
@pytest.mark.parametrize("frame_s", [0.02, 0.2, 0.5])
def test_a_loop_that_the_answer_kept_from_sounding_leaves_no_span(frame_s, lead_s):
    line = Line(rules=SILENT, limits=Limits(), frame=round(frame_s * RATE))
    got = {}
    line.router.spans.subscribe(lambda span: got.update({span.number: span}))
    line.handle(*call(), result())
    for _ in range(round((PATIENCE_S - 0.5) / frame_s)):
        line.pass_s(frame_s)
        line.router.poll()
    line.pass_s(PATIENCE_S - line.mixer.position / RATE - lead_s)
    line.router.poll()
    line.handle(TextDelta("It is sunny."), Finish("stop"))
    speech = steady_voice(0.5)
    assert np.array_equal(line.say(speech), speech)
    line.router.poll()
    assert line.working() == []
    assert [span for span in got.values() if span.start_samples != span.end_samples] == []


def longest_silence_s(samples):
    heard = np.flatnonzero(np.abs(samples) > 1e-4)
    edges = np.concatenate([[0], heard, [len(samples)]])
    return np.diff(edges).max() / RATE


@pytest.mark.parametrize("frame", [240, 480, 1920, 24000])
def test_one_sound_carries_through_three_chained_calls_to_the_first_word(frame):
    line = Line(frame=frame)
    for call_id, runs_s, is_error in (("1", 5.0, False), ("2", 12.0, False), ("3", 2.0, True)):
        line.handle(*call(call_id), Finish("tool_calls"))
        line.pass_s(runs_s)
        line.handle(result(call_id, is_error=is_error))
        line.pass_s(1.0)
    line.handle(TextDelta("It"))
    line.pass_s(4.0)  # a slow voice
    answer = line.mixer.position
    speech = steady_voice(2.0)
    line.say(speech)
    line.handle(Finish("stop"))
    line.pass_s(10.0)
    (working,) = line.working()
    assert working[0] == pytest.approx(0.18 + PATIENCE_S, abs=0.05)
    assert answer / RATE <= working[1] <= answer / RATE + 0.1
    assert longest_silence_s(line.out[:answer]) <= PATIENCE_S + PERIOD_S
    assert not line.out[answer + len(speech) :].any()
    assert [s.cue for s in line.router.spans if s.cue != "working"] == [
        *["tool_call", "success"] * 2,
        "tool_call",
        "error",
    ]


def test_a_cue_that_does_not_loop_comes_every_two_seconds():
    pipeline = Pipeline(cues.load_bank(), rules=replace(SILENT, working="attention"))
    pipeline.handle(ToolCallStart("slow"))
    sound = np.abs(pipeline.pass_s(12.0)).reshape(-1, RATE // 10).max(axis=1) > 1e-3
    onsets_s = np.flatnonzero(np.diff(sound.astype(int)) == 1) / 10
    np.testing.assert_allclose(onsets_s, [3.5, 5.5, 7.5, 9.5, 11.5], atol=0.15)


def test_the_sound_is_silent_while_a_cue_sounds_and_keeps_its_beat():
    line = Line()
    line.handle(*call())
    line.pass_s(6.0)
    ticks_from = round(line.working()[0][0] * RATE)
    line.pass_s(ticks_from / RATE + 2 * PERIOD_S - line.mixer.position / RATE - 0.1)
    start = line.mixer.position
    line.handle(*call("2"))
    alone = Line(rules=CueRules(working=None))
    alone.pass_s(start / RATE)
    alone.handle(*call("2"))
    # The tick that is due in the middle of the cue is not heard, and the next one comes on its beat.
    assert np.array_equal(line.pass_s(0.18), alone.pass_s(0.18))
    later = line.pass_s(4.0)
    next_tick = line.mixer.position - len(later) + first_sound(later)
    assert (next_tick - ticks_from) / RATE % PERIOD_S == pytest.approx(0.0, abs=0.02)


def test_text_does_not_end_the_sound_but_the_first_audible_sample_does():
    line = Line()
    line.handle(*call(), result())
    line.pass_s(5.0)
    line.handle(TextDelta("Here it is"))
    hiss = (1e-3 * np.sin(np.arange(3 * RATE))).astype(np.float32)  # -60 dBFS: a synthetic voice before its first word
    line.say(hiss)
    assert line.router.phase == "answering"
    line.say(steady_voice(1.0))
    line.router.poll()
    ((_, end_s),) = line.working()
    assert line.router.phase == "done"
    assert 8.0 <= end_s <= 8.1


def test_speech_of_before_the_call_postpones_the_sound_and_does_not_end_the_wait():
    line = Line(rules=SILENT)
    line.handle(TextDelta("Let me look."))
    line.handle(*call())
    line.say(steady_voice(5.0))
    line.pass_s(PATIENCE_S + 1.0)
    ((start_s, _),) = line.working()
    assert start_s == pytest.approx(5.0 + PATIENCE_S, abs=0.05)


def test_speech_that_was_queued_when_the_result_came_is_not_the_answer():
    line = Line(rules=SILENT)
    line.handle(*call())
    line.router.speech(line.mixer.position + 2 * RATE)
    line.handle(result())
    line.say(steady_voice(2.0))
    line.pass_s(PATIENCE_S + 1.0)
    assert len(line.working()) == 1
    line.say(steady_voice(0.5))
    assert not line.pass_s(6.0).any()


def test_a_remark_while_the_tool_runs_ends_the_sound_only_for_a_while():
    line = Line(rules=SILENT)
    line.handle(*call())
    line.pass_s(5.0)
    line.say(steady_voice(2.0))
    line.pass_s(PATIENCE_S + 0.1)
    assert len(line.working()) == 2
    assert line.working()[0][1] <= 5.1


def test_a_call_whose_end_nobody_reports_stops_at_the_first_speech_and_stays_silent():
    # A loop that hands over the starts of calls alone.
    line = Line()
    line.handle(ToolCallStart("get_weather", "1"))
    line.pass_s(6.0)
    line.say(speech := steady_voice(3.0))
    assert np.array_equal(line.say(speech), speech)
    assert not line.pass_s(70.0).any()


def test_a_sound_that_nobody_ends_stops_after_a_minute():
    line = Line(frame=2400)
    line.handle(*call())
    line.pass_s(57.0)
    assert line.pass_s(3.0).any()
    assert not line.pass_s(30.0).any()
    assert line.handle(result()) == ["success"]  # The call itself is not forgotten.


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "cancelled"])
def test_a_finish_that_announces_no_calls_ends_the_sound(reason):
    line = Line()
    line.handle(*call())
    line.pass_s(5.0)
    line.handle(Finish(reason))
    line.pass_s(0.05)
    assert not line.pass_s(10.0).any()


@pytest.mark.parametrize("gap_s", [1.0, 5.0])
@pytest.mark.parametrize("is_one", [True, False], ids=["arguments that take long", "a second call"])
def test_a_sound_that_begins_while_calls_still_come_does_not_show_that_the_server_ran_them(gap_s, is_one):
    line = Line()
    line.handle(*(call()[:1] if is_one else call()))
    line.pass_s(gap_s)
    line.handle(*(call()[1:] if is_one else call("2", "write_file")), Finish("stop"))
    assert line.router.waits
    assert line.pass_s(6.0)[4 * RATE // 2 :].any()


@pytest.mark.parametrize("reason", ["tool_calls", "function_call", "tool_use", "STOP", "completed", "stop"])
def test_after_an_answer_that_ends_with_calls_their_outcomes_are_awaited(reason):
    line = Line()
    line.handle(*call(), Finish(reason))
    assert line.pass_s(6.0)[4 * RATE // 2 :].any()
    assert line.router.waits
    assert line.handle(result()) == ["success"]


@pytest.mark.parametrize(
    "events",
    [
        (*call(), TextDelta("Sunny."), Finish("stop")),
        (ToolCallStart("read_file", "1"), ToolCallEnd("read_file", "1", status="incomplete"), Finish("stop")),
        (*call(), Finish("length")),
    ],
    ids=["text after the call", "cut off", "length"],
)
def test_stop_announces_calls_only_if_it_is_the_answers_end_with_complete_calls(events):
    line = Line()
    line.handle(*events)
    line.pass_s(0.5)
    assert not line.pass_s(10.0).any()


def test_a_call_that_the_model_wrote_as_text_is_awaited_whatever_words_follow_it():
    line = Line()
    line.handle(*(replace(event, from_text=True) for event in call()), TextDelta("Let me see."), Finish("stop"))
    assert line.router.waits
    assert line.pass_s(6.0)[4 * RATE // 2 :].any()
    assert line.handle(result()) == ["success"]


@pytest.mark.parametrize("endpoint", ["chat", "ollama"])
def test_the_tools_that_a_runner_runs_are_waited_for_at_both_endpoints(endpoint):
    server = says([["call", "list_directory", {"path": "/"}]], [["say", "Two files."]])
    exchange = chat(server, endpoint=endpoint, wrap=lambda connection: stream.ToolRunner(connection, TOOLS))
    at = next(n for n, event in enumerate(exchange.events) if isinstance(event, ToolResult))
    assert exchange.of(Finish)[0].reason == {"chat": "tool_calls", "ollama": "stop"}[endpoint]
    line = Line()
    line.handle(*exchange.events[:at])
    assert line.router.waits
    assert line.pass_s(6.0)[4 * RATE // 2 :].any()
    assert line.handle(*exchange.events[at:]) == ["success"]
    line.pass_s(0.5)
    assert not line.pass_s(10.0).any()  # Without a session, the last finish reason ends it.


@pytest.mark.parametrize("name", ["list_directory", "no_such_tool"])
@pytest.mark.parametrize("endpoint", ["chat", "ollama"])
def test_after_a_call_that_is_refused_the_next_answer_is_awaited(endpoint, name):
    server = says([["call", name, {"path": 5}]], [["say", "Two files."]])
    exchange = chat(server, endpoint=endpoint, wrap=lambda connection: stream.ToolRunner(connection, TOOLS))
    for first in (InvalidToolCall, ToolResult):  # before and after the model is told why
        at = next(n for n, event in enumerate(exchange.events) if isinstance(event, first)) + 1
        end = next(n for n, event in enumerate(exchange.events) if isinstance(event, Finish))
        line = Line()
        line.handle(*exchange.events[: max(at, end + 1)])
        line.pass_s(1.0)
        assert line.pass_s(6.0).any()
        line.handle(*exchange.events[max(at, end + 1) :])
        line.pass_s(0.5)
        assert not line.pass_s(10.0).any()


@pytest.mark.parametrize(
    "answer", [TextDelta("Sunny."), AudioDelta(bytes(960), "audio/pcm;rate=24000")], ids=["text", "voice"]
)
def test_words_behind_the_outcome_of_a_call_are_the_answer_where_one_finish_ends_both(answer):
    line = Line(limits=Limits())
    line.handle(*call(), result(), answer, Finish("turn_complete"))  # as Gemini Live tells it
    for voice in np.split(np.append(steady_voice(1.0), np.zeros(70 * RATE, np.float32)), 71 * 50):
        line.say(voice)
        line.router.poll()
        assert line.router.overdue() is None
    assert line.router.is_over
    assert line.working() == []


@pytest.mark.parametrize("reason", ["completed", "STOP", "tool_use"])
def test_words_behind_the_outcome_of_a_call_announce_another_answer_where_results_go_with_the_next_request(reason):
    line = Line(limits=Limits())
    line.handle(*call(), result(), TextDelta("Just a moment."), Finish(reason))
    assert line.router.phase == "answering"
    line.say(steady_voice(1.0))
    line.router.poll()
    assert not line.router.is_over


@pytest.mark.parametrize("tool_s", [0.5, 6.0])
@pytest.mark.parametrize(("text", "waits"), [("", True), ("It is a finch.", False)])
def test_stop_behind_the_result_of_a_call_announces_another_answer_unless_words_came_between(text, waits, tool_s):
    line = Line()
    line.handle(*call())
    line.pass_s(tool_s)
    line.handle(result(), *([TextDelta(text)] if text else []), Finish("stop"))
    line.pass_s(1.0)
    assert line.pass_s(6.0).any() == waits
    line.router.end_stream()
    line.pass_s(0.5)
    assert not line.pass_s(6.0).any()


@pytest.mark.parametrize("from_text", [True, False])
def test_words_behind_a_refused_call_are_the_answer_only_if_it_was_not_written_as_text(from_text):
    line = Line()
    line.handle(*(replace(event, from_text=from_text) for event in call()[:1]))
    line.handle(InvalidToolCall("read_file", "1", 0, "schema", "path is missing"))
    line.handle(TextDelta("Let me see."), Finish("stop"))
    line.pass_s(1.0)
    assert line.pass_s(6.0).any() == from_text


@pytest.mark.parametrize("text", ["I cannot.", ""])
@pytest.mark.parametrize("between", [(Finish("stop"),), (result(is_error=True),)], ids=["finish", "result"])
def test_an_answer_after_a_refused_call_is_none_that_announces_calls(text, between):
    line = Line()
    line.handle(*(replace(event, from_text=True) for event in call()))
    line.handle(InvalidToolCall("read_file", "1", 0, "schema", "path is missing"), *between)
    line.handle(*([TextDelta(text)] if text else []), Finish("stop"))
    line.pass_s(0.5)
    assert not line.pass_s(10.0).any()


def test_thinking_begins_with_the_question_and_goes_on_as_working():
    line = Line(rules=CueRules(thinking="working"))
    line.router.begin_turn()
    line.pass_s(5.0)
    line.handle(*call())
    line.pass_s(3.0)
    line.handle(result(), TextDelta("So"))
    line.pass_s(2.0)
    line.say(steady_voice(0.5))
    ((start_s, end_s),) = line.working()
    assert start_s == pytest.approx(PATIENCE_S, abs=0.05)
    assert 10.0 <= end_s <= 10.1


@pytest.mark.parametrize("begun", ["no text", "text"])
def test_a_turn_without_a_call_is_heard_to_work_after_four_seconds_and_until_the_first_word(begun):
    line = Line()
    line.router.begin_turn()
    line.pass_s(1.0)
    if begun == "text":
        line.handle(TextDelta("So"))
    assert not line.pass_s(2.9).any()
    line.pass_s(6.0)
    answer_s = line.mixer.position / RATE
    line.handle(TextDelta("So"))
    line.say(steady_voice(0.5))
    line.router.poll()
    ((start_s, end_s),) = line.working()
    assert start_s == pytest.approx(SILENCE_S, abs=0.02)
    assert answer_s <= end_s <= answer_s + 0.1
    line.handle(Finish("stop"))
    assert not line.pass_s(20.0).any()


@pytest.mark.parametrize(
    "rules", [CueRules(working=None), CueRules(silence_s=np.inf), CueRules(thinking="")], ids=["none", "never", "empty"]
)
@pytest.mark.parametrize("limits", [None, Limits()], ids=["alone", "limits"])
def test_a_turn_without_a_call_is_silent_where_the_rules_have_no_sound_for_it(rules, limits):
    line = Line(rules=rules, limits=limits)
    line.router.begin_turn()
    assert not line.pass_s(20.0).any()


@pytest.mark.parametrize("limits", [None, Limits()], ids=["alone", "limits"])
@pytest.mark.parametrize("gap_s", [0.5, 3.9])
def test_a_silent_call_after_a_gap_is_awaited_as_without_a_sound_for_gaps(gap_s, limits):
    heard = []
    for silence_s in (4.0, np.inf):
        line = Line(rules=CueRules(silence_s=silence_s, tool_call=None), limits=limits)
        for _ in range(2):
            line.router.begin_turn()
            line.pass_s(gap_s)
            line.handle(TextDelta("So"))
            line.say(steady_voice(0.5))
            line.router.poll()
            line.pass_s(gap_s)
            line.handle(*call(), Finish("tool_calls"))
            line.pass_s(8.0)
            line.handle(result(), TextDelta("It"))
            line.pass_s(gap_s)
            line.say(steady_voice(0.5))
            line.handle(Finish("stop"))
        heard.append(line.out)
    assert np.array_equal(*heard)


def test_text_alone_brings_no_sound():
    line = Line()
    line.handle(TextDelta("So"))
    line.say(steady_voice(0.5))
    assert not line.pass_s(20.0).any()


def test_an_answer_that_stops_in_its_middle_is_heard_to_work_until_it_goes_on():
    line = Line(limits=Limits())
    line.router.begin_turn()
    line.handle(TextDelta("So"))
    line.say(steady_voice(0.5))
    line.router.poll()
    line.pass_s(8.0)
    for _ in range(2):
        line.handle(TextDelta(" it"))
        line.say(steady_voice(0.5))
        line.router.poll()
        line.pass_s(1.0)
    ((start_s, end_s),) = line.working()
    assert (start_s, end_s) == (pytest.approx(0.5 + SILENCE_S, abs=0.02), pytest.approx(8.5, abs=0.1))
    line.handle(Finish("stop"))
    assert not line.pass_s(20.0).any()


def test_a_call_after_a_gap_that_sounded_is_awaited_where_the_answer_just_stops():
    line = Line()
    line.router.begin_turn()
    line.pass_s(6.0)
    line.handle(*call(), Finish("stop"))
    line.pass_s(6.0)
    assert line.handle(result()) == ["success"]


@pytest.mark.parametrize(
    "answer", [TextDelta("So"), AudioDelta(b"\0\0", "audio/pcm"), TranscriptDelta("So", "assistant")]
)
def test_the_first_token_ends_thinking_and_the_sound_goes_on_until_the_first_word(answer):
    line = Line(rules=CueRules(thinking="working"))
    line.router.begin_turn()
    line.pass_s(5.0)
    line.handle(TranscriptDelta("What?", "user"))
    assert line.router.phase == "thinking"
    line.handle(answer)
    assert line.router.phase == "answering"
    assert line.pass_s(3.0).any()


def test_a_sound_of_its_own_for_thinking_goes_on_when_a_tool_is_called():
    bank = {**cues.load_bank(), "mine": cues.Cue(name="mine", samples=cues.load_bank()["working"].samples, loop=True)}
    line = Line(bank=bank, rules=CueRules(thinking="mine"))
    line.router.begin_turn()
    line.pass_s(5.0)
    line.handle(*call())
    line.pass_s(5.0)
    assert len(line.working("mine")) == 1
    assert line.working() == []


@pytest.mark.parametrize("end", ["barge in", "hush", "cancel", "cancelled call", "interrupted", "failed"])
@pytest.mark.parametrize("moment", ["thinking", "working", "answering"])
@pytest.mark.parametrize("limits", [None, Limits()], ids=["no limits", "limits"])
def test_every_end_of_a_turn_silences_every_phase(end, moment, limits):
    rules = CueRules(thinking="working", error=None, failed=None, success=None)
    line = Line(rules=rules, **({} if limits is None else {"limits": limits}))
    line.router.begin_turn()
    line.pass_s(5.0)
    if moment != "thinking":
        line.handle(*call())
        line.pass_s(1.0)
    if moment == "answering":
        line.handle(result())
        line.pass_s(1.0)
    assert line.router.phase == moment
    {
        "barge in": line.router.barge_in,
        "hush": line.router.hush,
        "cancel": line.router.cancel,
        "cancelled call": lambda: line.handle(ToolCallCancelled("1")),
        "interrupted": lambda: line.handle(Interrupted()),
        "failed": lambda: line.handle(StreamFailed("gone")),
    }[end]()
    line.pass_s(0.05)
    assert not line.pass_s(10.0).any()
    assert line.router.phase == "done"


def test_a_late_result_of_a_turn_that_was_interrupted_brings_no_sound():
    line = Line()
    line.handle(*call())
    line.router.barge_in()
    line.pass_s(0.1)
    line.handle(result())
    assert not line.pass_s(10.0).any()


def test_a_call_that_the_server_takes_back_makes_no_sound_at_its_end():
    line = Line()
    line.handle(*call("1"), *call("2"))
    assert line.handle(ToolCallCancelled("1")) == []
    assert line.router.waits
    assert line.handle(ToolCallCancelled("2")) == []
    assert not line.router.waits


def test_a_fault_in_a_session_that_goes_on_sounds_and_ends_no_call():
    line = Line()
    line.handle(*call())
    assert line.handle(ServerError("rate limit")) == ["error"]
    assert line.router.waits


@pytest.mark.parametrize(("status", "cue"), [("completed", "success"), ("failed", "error")])
def test_a_servers_own_tool_sounds_by_its_name_and_ends_itself_alone(status, cue):
    line = Line(rules=CueRules(tools=(("web_*", "agent"),)))
    assert line.handle(TaskStatus("t1", "working", "web_search")) == ["agent"]
    line.pass_s(0.5)
    assert line.handle(TaskStatus("t2", "working", "code")) == ["tool_call"]
    line.pass_s(0.5)
    assert line.handle(TaskStatus("t1", status, "web_search")) == [cue]
    assert line.router.waits
    line.pass_s(1.0)
    assert line.handle(TaskStatus("t2", "completed", "code")) == ["success"]
    assert not line.router.waits


def test_a_remark_while_a_server_runs_its_tool_does_not_end_the_wait():
    line = Line(rules=SILENT)
    line.handle(TaskStatus("t1", "working", "web_search"), TextDelta("One moment."))
    line.say(steady_voice(1.0))
    line.pass_s(PATIENCE_S + 0.1)
    assert len(line.working()) == 1


@pytest.mark.parametrize(
    ("before", "limit_s", "message"),
    [
        ((), 10.0, "the model has sent nothing for 10 s"),
        (call()[:1], 30.0, "the model has sent nothing for 30 s"),
        (call(), 30.0, "the model has sent nothing for 30 s"),
        ((*call(), result()), 10.0, "the model has sent nothing for 10 s"),
        ((*call(), result(), TextDelta("So")), 5.0, "the speaker has sent nothing for 5 s"),
        ((*call(), result(), TextDelta("So"), Finish("stop")), 5.0, "the speaker has sent nothing for 5 s"),
        ((*call(), TextDelta("So"), Finish("stop")), 5.0, "the speaker has sent nothing for 5 s"),
    ],
    ids=["thinking", "arguments", "working", "answering", "text", "finished", "finished without the result"],
)
def test_the_limit_of_each_phase_fails_the_turn_with_the_error_cue(before, limit_s, message):
    line = Line(rules=CueRules(thinking="working"), limits=Limits(model_s=10.0, tool_s=30.0, speech_s=5.0))
    line.router.begin_turn()
    line.handle(*before)
    line.pass_s(limit_s)
    assert line.router.overdue() is None
    line.pass_s(0.1)
    failed = line.router.overdue()
    assert (failed.message, failed.code) == (message, "stalled")
    assert line.handle(failed) == ["error"]
    line.pass_s(1.0)
    assert line.router.overdue() is None
    assert not line.pass_s(10.0).any()


DONE = ["stop", "completed", "end_turn", "STOP", "turn_complete", "max_output_tokens", "MAX_TOKENS"]


@pytest.mark.parametrize("before", [(), (*call(), Finish("completed"), result())], ids=["plain", "after a call"])
@pytest.mark.parametrize("reason", DONE)
def test_a_finished_turn_is_never_overdue(reason, before):
    line = Line(limits=Limits())
    line.handle(*call("0"))
    line.router.barge_in()
    line.router.begin_turn()
    line.handle(*before)
    line.pass_s(0.5)
    line.handle(TextDelta("So"), Finish(reason))
    line.say(steady_voice(0.5))
    line.pass_s(0.02)
    assert line.pass_s(100.0).any() is np.False_
    assert line.router.overdue() is None


@pytest.mark.parametrize(
    "events",
    [(*call(), result()), (*call(name="serch"), result(name="serch", is_error=True)), call(name="serch")],
    ids=["whose result came first", "of an unknown tool", "whose result is still to come"],
)
def test_after_an_answer_with_a_call_the_model_is_awaited(events):
    line = Line(limits=Limits(model_s=10.0), tools=["read_file"])
    line.router.begin_turn()
    line.handle(TextDelta("Let me look."), *events, Finish("completed"))
    line.pass_s(10.1)
    assert line.router.overdue().message == "the model has sent nothing for 10 s"


def test_a_model_that_stalls_in_its_answer_is_overdue():
    line = Line(limits=Limits(model_s=10.0))
    line.router.begin_turn()
    line.handle(TextDelta("So"))
    line.say(steady_voice(0.5))
    line.pass_s(10.0)
    assert line.router.overdue().message == "the model has sent nothing for 10 s"


HASTY = CueRules(working_after_s=0.0, sustained_per_s=1000.0, thinking="thinking")


def mixed_meanwhile(line, *acts):
    """Run each act in a thread, while another mixes speech with pauses until the first act has ended."""
    over, voice = threading.Event(), steady_voice(1.0)

    def mix():
        while not over.is_set():
            for start in range(0, len(voice), 480):
                line.mixer.mix(voice[start : start + 480] if start % 4800 < 960 else np.zeros(480, np.float32))

    def first():
        try:
            acts[0]()
        finally:
            over.set()

    run_together(first, mix, *(lambda act=act: act(over) for act in acts[1:]))


def is_silent_and_idle(line):
    line.router.barge_in()
    line.pass_s(0.2)
    return not line.mixer.active and not line.pass_s(5.0).any()


def test_each_call_of_the_router_leaves_no_sound_behind_while_others_mix_read_and_subscribe():
    seconds, got = count(step=RATE // 2), []  # a time in which no cue is one too many
    line = Line(rules=HASTY, limits=Limits(model_s=3.0), now_samples=seconds.__next__)
    router, rng = line.router, np.random.default_rng(0)
    calls = [
        router.begin_turn, router.cancel, router.barge_in, router.hush, router.end_stream, router.alive, router.poll,
        lambda: line.handle(*call()), lambda: line.handle(result()), lambda: line.handle(TextDelta("So")),
        lambda: router.end_call("1"), lambda: (failed := router.overdue()) and line.handle(failed),
        lambda: router.speech(line.mixer.position + 100), lambda: router.mute("working"), router.unmute,
        lambda: setattr(router, "muted", not router.muted), lambda: (router.phase, router.is_over, router.waits),
    ]  # fmt: skip

    def act():
        for number in rng.integers(len(calls), size=4000):
            calls[number]()

    def read(over):
        while not over.is_set():
            now = line.mixer.position
            assert router.spans.overlaps(now, now + 1) in (True, False)
            assert all(span.start_samples <= (span.end_samples or NEVER) for span in router.spans)
            assert len(router.spans) <= 257
            assert router.stats.played >= 0
            unsubscribe = router.spans.subscribe(got.append)
            unsubscribe()

    mixed_meanwhile(line, act, read)
    assert router.stats.played > 100
    assert is_silent_and_idle(line)


def test_any_threads_may_call_one_router_at_once():
    line = Line(rules=HASTY, limits=Limits(model_s=3.0))
    router = line.router
    router.tell(on_played=lambda _: router.poll())

    def handle(number):
        for n in range(200):
            line.handle(*call(f"{number}-{n}"), TextDelta("So"), result(f"{number}-{n}"))
            router.overdue()

    mixed_meanwhile(line, lambda: handle(0), lambda _: handle(1), lambda _: handle(2))
    assert not router.waits
    assert is_silent_and_idle(line)


def test_two_routers_on_one_mixer_each_wait_for_their_own_answer():
    line = Line(rules=SILENT)
    other = CueRouter(cues.load_bank(), line.mixer, rules=SILENT)
    for event in call("7"):
        other.handle(event)
    line.handle(*call())
    line.pass_s(5.0)
    line.handle(result(), TextDelta("So"))
    line.say(steady_voice(0.5))
    line.pass_s(PATIENCE_S + 0.1)
    other.poll()
    line.router.poll()
    assert (line.router.phase, other.phase) == ("done", "working")
    assert len([span for span in other.spans if span.cue == "working"]) == 2
    assert len(line.working()) == 1


def test_a_waiting_sound_that_begins_sooner_than_announced_is_announced_again():
    line = Line(rules=replace(SILENT, silence_s=0.5))
    line.handle(*call(), result())
    line.pass_s(0.1)
    line.router.begin_turn()  # its silence is shorter than what remains of the patience after a call
    begins = line.mixer.position + first_sound(line.pass_s(1.0))
    assert line.router.spans.overlaps(begins, begins + 1)
    assert line.router.sounded()
