"""Calls that have no id, as those written as text: which end and which result belong to which call."""

import pytest

from stream.events import Finish, InvalidToolCall, TaskStatus, ToolCallEnd, ToolCallStart, ToolResult
from stream.services.answer import Answer
from tests.support.model_server import calling, running, tool
from tests.support.routing import Pipeline

CALL = ToolCallStart("a", from_text=True), ToolCallEnd("a", from_text=True)
NEXT_CALL = ToolCallStart("a", "", 1, from_text=True), ToolCallEnd("a", "", 1, from_text=True)
BROKEN = {
    "malformed": (ToolCallStart("a"), ToolCallEnd("a", status="malformed")),
    "cut off": (ToolCallStart("a"), ToolCallEnd("a", status="incomplete")),
    "invalid": (
        ToolCallStart("a"),
        InvalidToolCall("a", "", 0, "schema", "path is missing"),
        ToolCallEnd("a", status="malformed"),
    ),
}


def result(name="a", *, fails=False, index=None):
    return ToolResult(tool_name=name, tool_call_id="", is_error=fails, content="", index=index)


def handled(pipeline, *events):
    """The cues of events that are far enough apart for each to sound."""
    cues = []
    for event in events:
        cues += pipeline.handle(event)
        pipeline.pass_s(1.0)
    return cues


def working(pipeline):
    return [span for span in pipeline.router.spans if span.cue == "working"]


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("good", [CALL, NEXT_CALL], ids=["of another stream", "of the same stream"])
def test_a_call_that_cannot_run_takes_neither_the_end_nor_the_result_of_the_next_one(broken, good):
    pipeline = Pipeline()
    assert handled(pipeline, *broken, *good, Finish("stop")) == ["tool_call", "error", "tool_call"]
    assert pipeline.router.phase == "working"
    pipeline.pass_s(6.0)
    assert len(working(pipeline)) == 1
    assert handled(pipeline, result(fails=True)) == ["error"]
    assert pipeline.router.phase == "answering"


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_call_that_cannot_run_leaves_an_earlier_one_under_way(broken):
    pipeline = Pipeline()
    assert handled(pipeline, *CALL, *broken, Finish("stop")) == ["tool_call", "tool_call", "error"]
    assert pipeline.router.phase == "working"
    assert handled(pipeline, result()) == ["success"]
    assert pipeline.router.phase == "answering"


@pytest.mark.parametrize("of_good", [0, 1], ids=["good first", "invalid first"])
def test_a_result_with_an_index_is_that_of_its_call(of_good):
    pipeline, of_invalid = Pipeline(), 1 - of_good
    good = ToolCallStart("a", "", of_good), ToolCallEnd("a", "", of_good)
    invalid = (
        ToolCallStart("a", "", of_invalid),
        InvalidToolCall("a", "", of_invalid, "schema", "path is missing"),
        ToolCallEnd("a", "", of_invalid, status="malformed"),
    )
    handled(pipeline, *(good + invalid if of_good == 0 else invalid + good))
    assert handled(pipeline, result(fails=True, index=of_invalid)) == []
    assert pipeline.router.phase == "working"
    assert handled(pipeline, result(index=of_good)) == ["success"]
    assert pipeline.router.phase == "answering"


def test_ends_that_come_in_another_order_than_the_starts_are_told_apart_by_their_index():
    pipeline = Pipeline()
    handled(pipeline, ToolCallStart("a"), ToolCallStart("a", "", 1))
    assert handled(pipeline, ToolCallEnd("a", "", 1, status="malformed"), ToolCallEnd("a"), Finish("stop")) == ["error"]
    assert handled(pipeline, result(fails=True, index=1)) == []
    assert pipeline.router.phase == "working"
    assert handled(pipeline, result(fails=True, index=0)) == ["error"]


def test_a_call_cut_off_before_its_name_was_certain_leaves_a_complete_one_under_way():
    pipeline = Pipeline()
    assert handled(pipeline, *CALL, ToolCallEnd("", "", 1, status="incomplete")) == ["tool_call", "error"]
    assert handled(pipeline, result()) == ["success"]


def test_a_call_whose_name_cannot_be_read_leaves_a_complete_one_under_way():
    pipeline = Pipeline()
    unreadable = (
        InvalidToolCall("", "", 1, "not_json", "the call has no name that can be read"),
        ToolCallEnd("", "", 1, status="malformed"),
    )
    assert handled(pipeline, *CALL, *unreadable) == ["tool_call", "error"]
    assert handled(pipeline, result("", fails=True, index=1)) == []
    assert pipeline.router.phase == "working"
    assert handled(pipeline, result(index=0)) == ["success"]


def test_a_task_of_the_server_takes_neither_the_end_nor_the_result_of_a_call():
    pipeline = Pipeline()
    handled(pipeline, TaskStatus("t1", "working", "a"), ToolCallStart("a"))
    assert handled(pipeline, ToolCallEnd("a", status="malformed")) == ["error"]
    assert pipeline.router.waits
    assert handled(pipeline, TaskStatus("t1", "completed", "a")) == ["success"]
    pipeline = Pipeline()
    handled(pipeline, TaskStatus("t1", "working", "a"), *CALL, result())
    assert [call.is_task for call in pipeline.router._calls.awaited] == [True]


def test_a_call_that_is_refused_after_its_end_is_settled():
    pipeline = Pipeline()
    refusal = InvalidToolCall("a", "", 0, "unknown_tool", "Tool a not found")
    assert handled(pipeline, ToolCallStart("a", "1"), ToolCallEnd("a", "1"), refusal) == ["tool_call", "error"]
    assert not pipeline.router.waits


def test_a_runners_results_have_the_index_of_their_calls():
    tools = [tool("add", lambda n: n, n={"type": "integer"})]
    exchange = running(calling(("add", {"m": 1}), ("add", {"n": 2})), tools)
    ends = {event.index: event.status for event in exchange.of(ToolCallEnd)}
    assert {event.index: event.is_error for event in exchange.of(ToolResult)} == {
        index: status != "ok" for index, status in ends.items()
    }


def test_the_index_of_a_result_counts_through_the_rounds_as_that_of_its_call():
    answer = Answer(first_index=2)  # the second round of a runner, over another one
    assert [answer.take(event).index for event in (*CALL, result(index=0))] == [2, 2, 2]
    assert answer.take(result()).index is None
