"""Fragments of structured calls in the shapes that servers are known to send, and what stands beside them."""

# ruff: noqa: E501  (messages read best as servers send them, on one line)

import json

import pytest

from stream import (
    Finish,
    OllamaReader,
    OpenAIReader,
    ReasoningDelta,
    StreamFailed,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    Usage,
)


def chunk(delta, finish=None, **beside):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **beside}


def call(name=None, arguments=None, index=0, identity=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    places = {key: value for key, value in (("index", index), ("id", identity)) if value is not None}
    return {**places, "function": function}


def calls(*fragments):
    return chunk({"tool_calls": list(fragments)})


DONE = chunk({}, "tool_calls")


def read(*items, reader=None):
    reader = reader or OpenAIReader()
    events = []
    for item in items:
        events += reader.feed(item)
    return events + reader.close()


def ended(events):
    return [(e.tool_name, e.tool_call_id, json.loads(e.arguments_json)) for e in events if isinstance(e, ToolCallEnd)]


ONE = [("f", "a", {"x": 1})]
TWO = [("f", "a", {"x": 1}), ("f", "b", {"x": 2})]
SHAPES = {
    "id and name repeated in every piece": (
        [calls(call("f", '{"x"', 0, "a")), calls(call("f", ": 1", 0, "a")), calls(call("f", "}", 0, "a")), calls(call("f", "", 0, "a"))],
        ONE,
    ),
    "a copy of every piece under function_call": (
        [
            chunk({"tool_calls": [call("f", piece, 0, "a")], "function_call": {"name": "f", "arguments": piece}})
            for piece in ('{"x"', ": 1}")
        ],
        ONE,
    ),
    "null for every empty field": (
        [
            chunk({"role": None, "content": None, "function_call": None, "reasoning": None,
                   "tool_calls": [{"index": 0, "id": "a", "type": None, "function": {"name": "f", "arguments": None}}]}),
            chunk({"content": None,
                   "tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": '{"x": 1}'}}]}),
            chunk({"content": None, "tool_calls": None}),
        ],
        ONE,
    ),
    "index 0 for every call": ([calls(call("f", '{"x": 1}', 0, "a"), call("f", '{"x": 2}', 0, "b"))], TWO),
    "index 0 for fragments that only ids tell apart": (
        [calls(call("f", '{"x"', 0, "a")), calls(call("f", '{"x"', 0, "b")), calls(call(None, ": 1}", 0, "a")),
         calls(call(None, ": 2}", 0, "b"))],
        TWO,
    ),
    "no id and no index": (
        [calls(call("f", '{"x"', None)), calls(call(None, ": 1}", None)), calls(call("f", '{"x": 2}', None))],
        [("f", "", {"x": 1}), ("f", "", {"x": 2})],
    ),
    "the same array twice": ([calls(call("f", '{"x": 1}', 0, "a"), call("f", '{"x": 2}', 1, "b"))] * 2, TWO),
    "arguments before the name": ([calls(call(None, '{"x"', 0, "a")), calls(call("f", ": 1}", 0))], ONE),
    "all of the arguments before the name": ([calls(call(None, '{"x": 1}', 0, "a")), calls(call("f", None, 0))], ONE),
    "pieces after complete arguments": ([calls(call("f", '{"x": 1}<|im_end|>', 0, "a")), calls(call(None, "\n"))], ONE),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shape_that_servers_send_gives_its_calls(shape):
    items, expected = SHAPES[shape]
    assert ended(read(*items, DONE)) == expected


def test_start_comes_with_the_name_while_the_arguments_are_still_coming():
    reader = OpenAIReader()
    assert reader.feed(calls(call("f", '{"x', 0, "a"))) == [ToolCallStart("f", "a", 0)]
    assert reader.feed(calls(call(None, '": 1'))) == []
    assert reader.feed(calls(call(None, "}"))) == [ToolCallEnd("f", "a", 0, '{"x": 1}', "ok")]


def test_second_parallel_call_with_an_index_of_its_own_is_announced_at_once():
    reader = OpenAIReader()
    reader.feed(calls(call("f", '{"x": 1}', 0, "a")))
    assert reader.feed(calls(call("f", "{", 1, "b"))) == [ToolCallStart("f", "b", 1)]


def test_text_that_overtakes_a_call_waits_for_its_end():
    events = read(calls(call("f", '{"x"', 0, "a")), chunk({"content": "Hello."}), calls(call(None, ": 1}")), DONE)
    assert [type(event) for event in events] == [ToolCallStart, ToolCallEnd, TextDelta, Finish]


def test_calls_between_texts_are_announced_one_after_the_other():
    reader = OpenAIReader()
    for number, name in enumerate("fgh"):
        reader.feed(calls(call(name, "{", number, name)))
        reader.feed(chunk({"content": "And "}))
    for number, (name, following) in enumerate(zip("fgh", "gh.", strict=True)):
        end, text, *start = reader.feed(calls(call(None, "}", number)))
        assert (end.tool_name, text) == (name, TextDelta("And "))
        assert [event.tool_name for event in start] == [following] * (following != ".")


def test_call_without_arguments_is_complete_once_text_and_another_call_have_followed():
    reader = OpenAIReader()
    reader.feed(calls(call("f", "", 0, "a")))
    reader.feed(chunk({"content": "And "}))
    assert [type(event) for event in reader.feed(calls(call("g", "{", 1, "b")))] == [
        ToolCallEnd,
        TextDelta,
        ToolCallStart,
    ]


@pytest.mark.parametrize("value", [[], [1], {}, {"y": 1}], ids=repr)
def test_a_value_in_place_of_a_later_piece_of_arguments_raises_nothing(value):
    pieces = ['{"x"', ": ", value, "1", "}"]
    items = [calls(call("f", "", 0, "a")), *(calls(call(None, piece)) for piece in pieces), DONE]
    events = read(*items)
    assert [type(event) for event in events if isinstance(event, ToolCallStart | ToolCallEnd)] == [
        ToolCallStart,
        ToolCallEnd,
    ]


ENCODED_FOUR_TIMES = json.dumps(json.dumps(json.dumps(json.dumps({"x": 1}))))


@pytest.mark.parametrize(
    "arguments",
    ['"\\"x"', '"{\\"x\\": NaN}"', ENCODED_FOUR_TIMES, "[1]", [1], 5],
    ids=["half a text in a text", "no JSON number", "encoded four times", "array", "array as value", "number as value"],
)
def test_arguments_that_are_no_object_make_the_call_malformed(arguments):
    events = read(calls(call("f", arguments, 0, "a")), DONE)
    assert [event.status for event in events if isinstance(event, ToolCallEnd)] == ["malformed"]


def test_one_raw_call_absorbs_one_of_two_structured_ones():
    events = read(
        chunk({"content": '{"name": "f", "arguments": {}}'}), calls(call("f", "{}", 0), call("f", "{}", 1)), DONE
    )
    assert len(ended(events)) == 2


def test_same_id_name_and_arguments_in_a_later_round_are_a_repetition():
    first = calls(call("f", "{}", 0, "a"))
    events = read(first, DONE, first, chunk({"content": "x"}), calls(call("f", "{}", 0, "b")), DONE)
    assert [identity for _, identity, _ in ended(events)] == ["a", "b"]


def test_marker_left_beside_a_structured_call_is_dropped_on_both_sides():
    events = read(
        chunk({"content": "Ok. <tool_call>"}), calls(call("f", "{}", 0, "a")), chunk({"content": "</tool_call>"}), DONE
    )
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Ok. "]


def test_call_left_half_in_a_fence_beside_a_structured_call_is_dropped():
    events = read(chunk({"content": "Ok.\n```\n<tool_call>"}), calls(call("f", "{}", 0, "a")), DONE)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Ok.\n"


def test_text_held_before_a_structured_call_is_not_lost_when_text_goes_on():
    events = read(chunk({"content": "a <"}), calls(call("f", "{}", 0, "a")), chunk({"content": " b"}), DONE)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "a < b"


def test_finish_reason_that_is_absent_and_usage_with_an_empty_delta():
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    events = read({"choices": [{"delta": {"content": "Hi"}}]}, chunk({}, "stop", usage=usage))
    assert events == [TextDelta("Hi"), Finish("stop"), Usage(1, 2, 3)]


def test_only_the_first_of_several_answers_is_read():
    both = {
        "choices": [
            {"index": 1, "delta": {"content": "no"}},
            {"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"},
        ]
    }
    assert read(both) == [TextDelta("yes"), Finish("stop")]


@pytest.mark.parametrize(
    ("item", "failed"),
    [
        ({"error": {"message": "x", "code": 503}}, StreamFailed("x", "503", 503)),
        ({"error": "plain words"}, StreamFailed("plain words")),
        ({"object": "error", "message": "bad", "code": 400}, StreamFailed("bad", "400", 400)),
        ({"error": {"type": "overloaded", "requestId": "r", "retryAfterMs": 50}}, StreamFailed("overloaded", None, None, 50.0, "r")),
    ],
    ids=["object", "text", "bare", "type only"],
)  # fmt: skip
def test_error_in_the_stream_is_its_last_event(item, failed):
    assert read(chunk({"content": "Hi"}), item, chunk({"content": "no"})) == [TextDelta("Hi"), failed]


def test_nothing_follows_a_failure_whatever_the_client_tells():
    reader = OpenAIReader()
    assert reader.feed({"error": "gone"}) == [StreamFailed("gone")]
    assert reader.fail(StreamFailed("broken", "connection")) == []
    assert reader.close() == []


def test_times_that_no_clock_has_counted_are_left_out():
    done = {"message": {}, "done": True, "done_reason": "stop", "eval_count": 1, "total_duration": 10**400}
    assert read(done, reader=OllamaReader()) == [Usage(None, 1), Finish("stop")]
    (failed,) = read({"error": {"message": "busy", "retryAfterMs": 10**400}})
    assert failed.retry_after_ms is None


def test_body_that_is_empty_or_breaks_off_is_unfinished():
    assert [event.code for event in read()] == ["unfinished"]
    assert read(chunk({"content": "Hi"}))[-1].code == "unfinished"
    (failed,) = read(b"<html>502</html>", reader=OllamaReader())
    assert failed.code == "unfinished"
    assert "502" in failed.message


def test_a_call_that_rides_on_the_done_line_comes_before_usage_and_end():
    message = {"role": "assistant", "content": "Hm <", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    done = {"message": message, "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}
    kinds = [type(event) for event in read(done, reader=OllamaReader())]
    assert kinds == [TextDelta, ToolCallStart, ToolCallEnd, Usage, Finish]


def test_native_tool_loop_tells_status_calls_results_and_timings():
    def line(content="", **fields):
        return {"message": {"role": "assistant", "content": content}, "done": False, **fields}

    asked = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": {}}}],
    }
    events = read(
        {"message": asked, "done": False, "task_id": "t", "task_status": "working"},
        line(done=True, done_reason="stop", eval_count=2, prompt_eval_count=3, total_duration=5_000_000, load_duration=1_000_000),
        line(tool_results=[{"name": "f", "error": "not there"}]),
        line("Sorry.", channel="text"),
        line(done=True, task_status="completed", done_reason="stop"),
        reader=OllamaReader(),
    )  # fmt: skip
    assert events == [
        TaskStatus("t", "working"), ToolCallStart("f", "k", 0), ToolCallEnd("f", "k", 0, "{}", "ok"),
        Usage(3, 2, 5, load_ms=1.0, total_ms=5.0), Finish("stop"), ToolResult(tool_name="f", tool_call_id="k", is_error=True, content="not there"),
        TextDelta("Sorry.", "text"), TaskStatus("t", "completed"), Finish("stop"),
    ]  # fmt: skip


def test_text_that_changes_its_channel_says_so_from_then_on():
    said = [("So, ", None), ("this ", None), ("is it", "Final"), (" now", "Final"), (".", None)]
    lines = [
        {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": text}, "done": False}
        | ({"channel": channel} if channel else {})
        for text, channel in said * 2
    ]
    reader = OllamaReader()
    events = [event for line in lines for event in reader.feed(line)]
    assert events == [TextDelta(text, channel and channel.lower()) for text, channel in said * 2]


@pytest.mark.parametrize("field", ["kind", "channel"])
def test_in_ollamas_lines_a_channel_stands_beside_the_message_or_in_it(field):
    beside = {"message": {"role": "assistant", "content": "Hm."}, "done": False, field: "JSON"}
    within = {"message": {"role": "assistant", "content": "Hm.", field: "JSON"}, "done": False}
    reader = OllamaReader()
    assert reader.feed(beside) == reader.feed(within) == [TextDelta("Hm.", "json")]


def test_messages_of_role_tool_are_results_and_never_spoken():
    said = {"role": "tool", "content": "12 degrees", "tool_call_id": "a"}
    events = read(calls(call("f", "{}", 0, "a")), chunk(said), chunk({"content": "It is 12."}, "stop"))
    assert events[2:4] == [
        ToolResult(tool_name="f", tool_call_id="a", is_error=False, content="12 degrees"),
        TextDelta("It is 12."),
    ]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_thinking_under_any_name_is_reasoning_and_not_searched(field):
    thought = '{"name": "f", "arguments": {}}'
    assert read(chunk({field: thought}), chunk({}, "stop")) == [ReasoningDelta(thought), Finish("stop")]
    assert OpenAIReader(reasoning=False).feed(chunk({field: thought})) == []


SENT_TWICE = {"the same id": "a", "another id": "b", "no id": None}


@pytest.mark.parametrize("in_pieces", [False, True], ids=["whole", "both open at once"])
@pytest.mark.parametrize("again", SENT_TWICE)
def test_an_equal_call_at_another_index_is_the_same_by_its_id_or_if_arguments_alone_are_to_count(again, in_pieces):
    other = SENT_TWICE[again]
    first, second = call("f", '{"x": 1}', 0, "a"), call("f", '{"x":1}', 1, other)
    sent = [calls(first), calls(second)]
    if in_pieces:
        sent = [calls(call("f", '{"x"', 0, "a")), calls(call("f", '{"x"', 1, other))]
        sent += [calls(call(None, ":1}", 0)), calls(call(None, ":1}", 1))]
    both = [*ONE, ("f", other or "", {"x": 1})]
    assert ended(read(*sent, DONE)) == (ONE if other == "a" else both)
    assert ended(read(*sent, DONE, reader=OpenAIReader(repeats="by_arguments"))) == ONE


def test_calls_that_share_an_id_and_differ_are_each_made():
    different = [
        calls(call("f", '{"x": 1}', 0, "a")),
        calls(call("f", '{"x": 2}', 1, "a")),
        calls(call("g", "{}", 2, "a")),
    ]
    assert ended(read(*different, DONE)) == [*ONE, ("f", "a", {"x": 2}), ("g", "a", {})]


def test_repeats_are_found_by_index_or_by_arguments_and_by_nothing_else():
    with pytest.raises(ValueError, match="repeats is 'by_name'; it must be 'by_index' or 'by_arguments'"):
        OpenAIReader(repeats="by_name")
