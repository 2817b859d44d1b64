"""The router: which cue for what, and when none."""

import numpy as np
import pytest

from cues import Mixer
from stream.events import (
    InvalidToolCall,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    Usage,
)
from stream.routing.router import CueRouter, CueRules
from tests.support.routing import ALL, RATE, Pipeline, bank


@pytest.mark.parametrize(
    ("event", "cue"),
    [
        (ToolCallStart("read_file"), ["tool_call"]),
        (ToolCallStart("spawn_agent"), ["agent"]),
        (ToolCallStart("delegate"), ["agent"]),
        (ToolCallStart("run_sub_agent"), ["agent"]),
        (ToolCallEnd("read_file", arguments_json="{}"), []),
        (ToolCallEnd("read_file", status="incomplete"), ["error"]),
        (ToolCallEnd("read_file", status="malformed"), ["error"]),
        (ToolResult(tool_name="read_file", tool_call_id="", is_error=False, content=""), ["success"]),
        (ToolResult(tool_name="read_file", tool_call_id="", is_error=True, content=""), ["error"]),
        (StreamFailed("gone"), ["error"]),
        (TextDelta("hello"), []),
    ],
    ids=repr,
)
def test_each_event_has_its_cue(event, cue):
    assert Pipeline().handle(event) == cue


def test_the_cue_begins_with_the_next_sample_that_is_put_out():
    pipeline = Pipeline()
    pipeline.pass_s(0.2)
    played = pipeline.router.handle(ToolCallStart("read_file"))
    assert played.onset_samples == pipeline.mixer.position == round(0.2 * RATE)
    assert np.abs(pipeline.pass_s(0.02)).max() > 0


def test_nothing_sounds_after_a_hangup_whatever_is_handled():
    pipeline = Pipeline(rules=CueRules(thinking="working", placements=(("success", "in_pause"),)))
    pipeline.handle(ToolCallStart("read_file", "1"))
    pipeline.pass_s(0.02)
    pipeline.mixer.close()
    answer = [
        ToolResult(tool_name="read_file", tool_call_id="1", is_error=False, content=""),
        ToolCallStart("search", "2"),
        TextDelta("so"),
    ]
    assert pipeline.handle(*answer, StreamFailed("gone")) == []
    pipeline.router.begin_turn()
    pipeline.pass_s(0.02)
    assert not pipeline.pass_s(5.0).any()


def test_patterns_are_tried_in_order_and_a_packs_rules_come_first():
    class PackBank(dict):
        rules = (("read_*", "mine"),)

    rules = CueRules(tools=(("read_file", "agent"), ("*_file", None)))
    assert Pipeline(rules=rules).handle(ToolCallStart("read_file")) == ["agent"]
    assert Pipeline(rules=rules).handle(ToolCallStart("write_file")) == []
    assert Pipeline(rules=rules).handle(ToolCallStart("other")) == ["tool_call"]
    assert Pipeline(PackBank(ALL), rules=rules).handle(ToolCallStart("read_file")) == ["mine"]


def test_a_cue_that_the_bank_lacks_is_silent():
    assert Pipeline(bank("error")).handle(ToolCallStart("read_file")) == []


def test_ten_parallel_calls_sound_once():
    pipeline = Pipeline()
    assert pipeline.handle(*(ToolCallStart("read_file", index=n) for n in range(10))) == ["tool_call"]
    assert pipeline.router.stats.coalesced == 9


def test_the_same_cue_sounds_again_after_300_ms():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("a"))
    pipeline.pass_s(0.28)
    assert pipeline.handle(ToolCallStart("b")) == []
    pipeline.pass_s(0.02)
    assert pipeline.handle(ToolCallStart("c")) == ["tool_call"]


def test_a_burst_is_thinned_to_three_and_then_to_one_a_second():
    pipeline = Pipeline()
    sounded = []
    for _ in range(20):
        sounded += pipeline.handle(ToolCallStart("a"))
        pipeline.pass_s(0.4)
    # Three at once and one a second over the 7.6 s to the last call.
    assert 3 + 7 <= len(sounded) <= 3 + 8
    assert pipeline.router.stats.thinned == 20 - len(sounded)


def test_a_turn_that_fails_sounds_so_also_at_the_end_of_a_burst():
    pipeline = Pipeline(rules=CueRules(coalesce_ms=0))
    sounded = [cue for n in range(4) for cue in pipeline.handle(ToolCallStart("look", str(n)))]
    assert sounded == ["tool_call"] * 3
    assert pipeline.handle(StreamFailed("connection lost", code="connection")) == ["error"]


def test_muted_cues_stay_silent_until_they_are_wanted_again():
    pipeline = Pipeline()
    pipeline.router.muted = True
    assert (
        pipeline.handle(ToolCallStart("a"), ToolResult(tool_name="a", tool_call_id="", is_error=True, content="")) == []
    )
    assert not pipeline.mixer.active
    pipeline.router.muted = False
    assert pipeline.handle(ToolCallStart("b")) == ["tool_call"]
    assert pipeline.router.stats.muted == 2


def test_cues_of_while_the_output_takes_no_frames_are_dropped_but_the_waiting_sound_stays():
    pipeline, is_heard = Pipeline(), False
    pipeline.router.play_while(lambda: is_heard)
    assert pipeline.handle(ToolCallStart("a"), StreamFailed("connection lost", code="connection")) == []
    assert pipeline.handle(ToolCallStart("b")) == []
    is_heard = True
    assert np.abs(pipeline.pass_s(5.0)[-RATE:]).max() > 0.0
    assert [span.cue for span in pipeline.router.spans] == ["working"]
    result = ToolResult(tool_name="b", tool_call_id="", is_error=False, content="")
    assert pipeline.handle(result) == ["success"]


def test_white_space_does_not_end_the_wait():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow"), TextDelta("\n"))
    assert np.abs(pipeline.pass_s(5.0)[-RATE:]).max() > 0.0


def sounded(pipeline):
    return [span.cue for span in pipeline.router.spans]


def test_one_call_told_twice_by_its_id_sounds_once():
    pipeline = Pipeline()
    assert pipeline.handle(ToolCallStart("a", "1")) == ["tool_call"]
    pipeline.pass_s(1.0)
    assert pipeline.handle(ToolCallStart("a", "1")) == []
    pipeline.handle(ToolResult(tool_name="a", tool_call_id="1", is_error=False, content=""))
    pipeline.pass_s(1.0)
    assert pipeline.handle(ToolCallStart("a", "1")) == ["tool_call"]  # Some servers begin anew with every answer.


def test_the_users_own_agents_sound_like_agents():
    rules = CueRules(agent_tools=("research_*",), agent="mine")
    assert Pipeline(rules=rules).handle(ToolCallStart("research_birds")) == ["mine"]
    assert Pipeline(rules=rules).handle(ToolCallStart("spawn_agent")) == ["tool_call"]


@pytest.mark.parametrize("told_first", ["invented", "malformed", "invalid"])
def test_a_failure_that_was_told_is_not_told_again_by_the_result(told_first):
    pipeline = Pipeline(tools=["read_file"])
    if told_first == "invented":
        assert pipeline.handle(ToolCallStart("reed_file", "1")) == ["error"]
    else:
        pipeline.handle(ToolCallStart("read_file", "1"))
        pipeline.pass_s(0.5)
    if told_first == "malformed":
        assert pipeline.handle(ToolCallEnd("read_file", "1", status="malformed")) == ["error"]
    if told_first == "invalid":
        assert pipeline.handle(InvalidToolCall("read_file", "1", 0, "schema", "path is missing")) == ["error"]
    pipeline.pass_s(0.5)
    name = "reed_file" if told_first == "invented" else "read_file"
    assert pipeline.handle(ToolResult(tool_name=name, tool_call_id="1", is_error=True, content="")) == []


def test_a_server_that_says_completed_ends_the_calls_without_a_sound_and_no_task_with_a_name():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow"), TaskStatus("t1", "working", "web_search"))
    assert pipeline.handle(TaskStatus("7", "completed")) == []
    assert pipeline.router.waits
    pipeline.router.end_call("t1")
    pipeline.handle(ToolCallStart("slow"))
    assert pipeline.router.waits
    assert pipeline.handle(TaskStatus("7", "completed")) == []
    assert not pipeline.router.waits
    assert np.abs(pipeline.pass_s(6.0)[RATE:]).max() == 0.0


def test_muting_ends_what_sounds_and_what_waits_and_lasts():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow", "1"))
    pipeline.pass_s(0.02)
    pipeline.router.muted = True
    assert np.abs(pipeline.pass_s(6.0)[round(0.04 * RATE) :]).max() == 0.0
    pipeline.router.cancel()
    assert pipeline.handle(ToolCallStart("b", "2")) == []
    assert pipeline.router.muted


@pytest.mark.parametrize("status", ["incomplete", "malformed"])
def test_a_call_that_cannot_run_makes_way_for_the_next_with_its_id(status):
    pipeline = Pipeline()
    cut = ToolCallEnd(tool_name="slow", tool_call_id="slow:0", arguments_json="", status=status)
    pipeline.handle(ToolCallStart("slow", "slow:0"), cut)
    pipeline.pass_s(1.0)
    assert pipeline.handle(ToolCallStart("slow", "slow:0")) == ["tool_call"]
    pipeline.handle(ToolCallEnd(tool_name="slow", tool_call_id="slow:0", arguments_json="{}", status="ok"))
    assert pipeline.handle(ToolCallStart("slow", "slow:0")) == []
    assert np.abs(pipeline.pass_s(6.0)[RATE:]).max() > 0.0
    done = ToolResult(tool_name="slow", tool_call_id="slow:0", is_error=False, content="")
    assert pipeline.handle(done) == ["success"]


def test_one_cue_can_be_switched_off_and_on_by_its_name():
    pipeline = Pipeline()
    pipeline.router.mute("success", "working")
    pipeline.handle(ToolCallStart("slow", "1"))
    assert np.abs(pipeline.pass_s(6.0)[RATE:]).max() == 0.0
    assert pipeline.handle(ToolResult(tool_name="slow", tool_call_id="1", is_error=False, content="")) == []
    pipeline.router.unmute("success")
    assert pipeline.handle(ToolResult(tool_name="fast", tool_call_id="2", is_error=False, content="")) == ["success"]
    pipeline.router.unmute()
    pipeline.handle(ToolCallStart("slow", "3"))
    assert np.abs(pipeline.pass_s(6.0)[RATE:]).max() > 0.0


def test_a_barge_in_ends_every_cue_and_wants_no_outcome_of_its_calls():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow", "1"), ToolCallStart("nameless"))
    pipeline.pass_s(0.02)
    pipeline.router.barge_in(30.0)
    assert np.abs(pipeline.pass_s(1.0)[round(0.04 * RATE) :]).max() == 0.0
    results = [
        ToolResult(tool_name="slow", tool_call_id="1", is_error=True, content=""),
        ToolResult(tool_name="nameless", tool_call_id="", is_error=True, content=""),
    ]
    assert pipeline.handle(*results) == []
    pipeline.pass_s(1.0)
    assert pipeline.handle(ToolCallStart("slow", "2")) == ["tool_call"]
    assert pipeline.handle(ToolResult(tool_name="slow", tool_call_id="2", is_error=True, content="")) == ["error"]


def test_a_hush_ends_every_cue_and_awaits_the_outcome():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow", "1"))
    pipeline.pass_s(0.02)
    pipeline.router.hush()
    assert np.abs(pipeline.pass_s(6.0)[round(0.04 * RATE) :]).max() == 0.0
    assert pipeline.handle(ToolResult(tool_name="slow", tool_call_id="1", is_error=True, content="")) == ["error"]


def test_a_hush_without_a_fade_ends_the_waiting_sound_alone_and_awaits_the_outcome():
    def told(fade_ms):
        pipeline = Pipeline()
        pipeline.handle(ToolCallStart("slow", "1"))
        pipeline.pass_s(0.02)
        if fade_ms != "no hush":
            pipeline.router.hush(fade_ms)
        return pipeline, pipeline.pass_s(2.0), pipeline.pass_s(6.0)

    pipeline, cue, wait = told(None)
    assert np.array_equal(cue, told("no hush")[1])
    assert told("no hush")[2].any()
    assert not wait.any()
    assert pipeline.handle(ToolResult(tool_name="slow", tool_call_id="1", is_error=True, content="")) == ["error"]


def test_after_the_words_is_in_a_pause_where_nobody_knows_the_words():
    pipeline = Pipeline(rules=CueRules(placement="after_words", working=None))
    assert pipeline.handle(ToolCallStart("a", "1")) == []
    pipeline.pass_s(0.5)
    pipeline.router.poll()
    assert sounded(pipeline) == ["tool_call"]


def test_results_of_several_nameless_calls_are_taken_oldest_first():
    pipeline = Pipeline(rules=CueRules(success=None))
    for _ in range(3):
        pipeline.handle(ToolCallStart("a"))
    for _ in range(3):
        assert pipeline.router.waits
        pipeline.handle(ToolResult(tool_name="a", tool_call_id="", is_error=False, content=""))
    assert not pipeline.router.waits


def test_a_span_is_published_when_it_begins_and_when_it_is_cut():
    pipeline, told = Pipeline(rules=CueRules(working=None)), []
    stop = pipeline.router.spans.subscribe(told.append)
    pipeline.handle(ToolCallStart("a"))
    pipeline.pass_s(0.02)
    pipeline.router.barge_in(10.0)
    stop()
    pipeline.pass_s(1.0)
    pipeline.handle(ToolCallStart("b"))
    assert [(span.number, span.start_samples, span.end_samples) for span in told] == [(0, 0, 2400), (0, 0, 480 + 240)]


@pytest.mark.parametrize(
    "notice", [lambda router: router.handle(Usage()), lambda router: router.speech(0)], ids=["event", "speech"]
)
def test_a_cue_that_has_found_its_pause_is_known_with_the_next_event_or_speech(notice):
    pipeline, told = Pipeline(rules=CueRules(placement="in_pause", working=None)), []
    pipeline.router.spans.subscribe(told.append)
    pipeline.handle(ToolCallStart("read_file", "1"))
    pipeline.pass_s(1.5)
    assert told == []
    notice(pipeline.router)
    assert [span.cue for span in told] == ["tool_call"]


def test_a_cue_that_was_cut_off_before_the_output_stood_still_has_sounded_for_a_while_and_not_forever():
    now, mixer = [0], Mixer(RATE)
    router = CueRouter(ALL, mixer, now_samples=lambda: now[0])
    router.handle(ToolCallStart("read_file"))
    mixer.silence(RATE // 10)
    router.barge_in()
    mixer.silence(RATE // 25)
    router.poll()
    assert router.sounded()
    now[0] += RATE // 10
    assert router.sounded()
    now[0] += RATE // 5
    assert not router.sounded()
