"""Fragments of structured calls in the shapes that servers are known to send, and what stands beside them."""

# ruff: noqa: E501  (messages read best as servers send them, on one line)

import json

import pytest

from stream import OllamaReader, OpenAIReader, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart
from tests.stream.comparing import load
from tests.stream.providers import read_all


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
    return read_all(reader or OpenAIReader(), items)


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


@pytest.mark.parametrize("case", list(load("structured_calls")), ids=lambda case: case["id"])
def test_case_gives_its_events(case):
    reader = OllamaReader() if case["endpoint"] == "/api/chat" else OpenAIReader()
    assert [repr(event) for event in read(*case["messages"], reader=reader)] == case["events"]


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
    events = reader.feed(calls(call("g", "{", 1, "b")))
    assert [type(event) for event in events] == [ToolCallEnd, TextDelta, ToolCallStart]


@pytest.mark.parametrize("value", [[], [1], {}, {"y": 1}], ids=repr)
def test_a_value_in_place_of_a_later_piece_of_arguments_raises_nothing(value):
    pieces = ['{"x"', ": ", value, "1", "}"]
    items = [calls(call("f", "", 0, "a")), *(calls(call(None, piece)) for piece in pieces), DONE]
    kinds = [type(event) for event in read(*items)]
    assert [kind for kind in kinds if kind in (ToolCallStart, ToolCallEnd)] == [ToolCallStart, ToolCallEnd]


def test_same_id_name_and_arguments_in_a_later_round_are_a_repetition():
    first = calls(call("f", "{}", 0, "a"))
    events = read(first, DONE, first, chunk({"content": "x"}), calls(call("f", "{}", 0, "b")), DONE)
    assert [identity for _, identity, _ in ended(events)] == ["a", "b"]


def test_text_held_before_a_structured_call_is_not_lost_when_text_goes_on():
    events = read(chunk({"content": "a <"}), calls(call("f", "{}", 0, "a")), chunk({"content": " b"}), DONE)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "a < b"


def test_nothing_follows_a_failure_whatever_the_client_tells():
    reader = OpenAIReader()
    assert reader.feed({"error": "gone"}) == [StreamFailed("gone")]
    assert reader.fail(StreamFailed("broken", "connection")) == []
    assert reader.close() == []


def test_body_that_is_empty_or_breaks_off_is_unfinished():
    assert [event.code for event in read()] == ["unfinished"]
    assert read(chunk({"content": "Hi"}))[-1].code == "unfinished"
    (failed,) = read(b"<html>502</html>", reader=OllamaReader())
    assert failed.code == "unfinished"
    assert "502" in failed.message


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


def test_a_kind_other_than_json_and_text_is_no_channel():
    reader = OllamaReader()
    assert reader.feed({"message": {"content": "Hm."}, "kind": "foo", "done": False}) == [TextDelta("Hm.")]


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


def test_repeats_are_found_by_index_or_by_arguments_and_by_nothing_else():
    with pytest.raises(ValueError, match="repeats is 'by_name'; it must be 'by_index' or 'by_arguments'"):
        OpenAIReader(repeats="by_name")


@pytest.mark.parametrize("spoilt", ["not json", '{"path": "a', ""], ids=["no JSON", "cut off", "empty"])
@pytest.mark.parametrize("is_one_array", [True, False], ids=["one array", "two chunks"])
def test_a_whole_call_after_a_broken_one_of_its_name_is_another_call(spoilt, is_one_array):
    broken, whole = ({"function": {"name": "f", "arguments": given}} for given in (spoilt, {"x": 1}))
    if not is_one_array and spoilt != "not json":
        whole["id"] = "b"  # without an id these could be one call's fragments
    chunks = [calls(broken, whole)] if is_one_array else [calls(broken), calls(whole)]
    ends = [event for event in read(*chunks, DONE) if isinstance(event, ToolCallEnd)]
    assert len(ends) == 2
    assert [event.arguments for event in ends if event.arguments] == [{"x": 1}]
