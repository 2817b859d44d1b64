"""Fragments of structured calls in the shapes that servers are known to send, and what stands beside them."""

import json

import pytest

from stream import (
    Finish,
    OllamaReader,
    OpenAIReader,
    ReasoningDelta,
    StreamFailed,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    read_sync,
)
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


@pytest.mark.parametrize("case", list(load("structured_calls")), ids=lambda case: case["id"])
def test_case_gives_its_events(case):
    reader = OllamaReader() if case["endpoint"] == "/api/chat" else OpenAIReader()
    assert [repr(event) for event in read(*case["messages"], reader=reader)] == case["events"]


def test_start_comes_with_the_name_while_the_arguments_are_still_coming():
    reader = OpenAIReader()
    assert reader.feed(calls(call("f", '{"x', 0, "a"))) == [ToolCallStart("f", "a", 0)]
    assert reader.feed(calls(call(None, '": 1'))) == []
    assert reader.feed(calls(call(None, "}"))) == [ToolCallEnd("f", "a", 0, '{"x": 1}', "ok")]


def test_a_name_that_spells_null_is_none():
    assert ended(read(calls(call("f", '{"x": ', 0, "a")), calls(call("null", "1}", 0, "")), DONE)) == ONE


def test_arguments_at_another_index_than_their_call_are_its():
    whole = [calls(call("f", "", 0, "a")), calls(call(None, '{"x"', 1)), calls(call(None, ": 1}", 1))]
    assert ended(read(*whole, DONE)) == ONE
    second = [calls(call("g", "", 2, "b")), calls(call(None, "{}", 3))]
    assert ended(read(*whole, *second, DONE)) == [*ONE, ("g", "b", {})]
    named = [calls(call("g", "", 1, "b")), calls(call(None, '{"y": 2}', 1))]
    assert ended(read(*whole, *named, DONE)) == [*ONE, ("g", "b", {"y": 2})]


def test_what_is_left_over_of_complete_arguments_is_no_call():
    whole = [calls(call("f", "", 0, "a")), calls(call(None, '{"x": 1}'))]
    assert ended(read(*whole, calls(call("f", "}", 0, "a")), DONE)) == ONE
    other = [calls(call("f", "}", 0, "b"))]
    assert [event.status for event in read(*whole, *other, DONE) if isinstance(event, ToolCallEnd)][1] == "malformed"


PLACEHOLDER = call("f", "{}", 0, "a")


def test_an_empty_object_in_place_of_arguments_that_come_later_is_replaced():
    reader = OpenAIReader()
    assert reader.feed(calls(PLACEHOLDER)) == [ToolCallStart("f", "a", 0)]
    assert reader.feed(calls(call(None, ' {"x"'))) == reader.feed(calls(call(None, ": 1"))) == []
    assert reader.feed(calls(call(None, "}"))) == [ToolCallEnd("f", "a", 0, '{"x": 1}', "ok")]
    again = call("f", '{"x": 1}', 0, "a")
    assert ended(read(calls(PLACEHOLDER), calls(again), DONE)) == ONE
    assert ended(read(calls(PLACEHOLDER), calls(PLACEHOLDER), calls(call(None, '{"x": 1}')), DONE)) == ONE


@pytest.mark.parametrize(
    "sign",
    [
        chunk({"content": "Done."}),
        chunk({"reasoning_content": "Hm."}),
        calls(call("g", "{", 1, "b")),
        calls(call("f", '{"x": 1}', 0, "b")),
        chunk({"role": "tool", "content": "ok"}),
        DONE,
    ],
    ids=["text", "reasoning", "another index", "another id", "a result", "the finish"],
)
def test_a_call_whose_only_arguments_are_an_empty_object_ends_with_the_next_sign(sign):
    reader = OpenAIReader()
    reader.feed(calls(PLACEHOLDER))
    assert reader.feed(sign)[0] == ToolCallEnd("f", "a", 0, "{}", "ok")


def test_blank_text_and_what_follows_complete_arguments_end_no_call_that_may_go_on():
    blank = chunk({"content": "\n"})
    nothing = [calls(call(None, "")), calls(call(None, "<|im_end|>")), calls(call("f", "", 0, "a")), blank]
    assert ended(read(calls(PLACEHOLDER), *nothing, calls(call(None, '{"x": 1}')), DONE)) == ONE
    assert ended(read(calls(PLACEHOLDER), *nothing, DONE)) == [("f", "a", {})]


def test_equal_names_without_ids_are_two_calls_though_the_first_has_no_arguments():
    whole = [calls(call("f", "{}", 0, "")), calls(call("f", '{"x": 1}', 0, ""))]
    assert ended(read(*whole, DONE)) == [("f", "", {}), ("f", "", {"x": 1})]


def test_second_parallel_call_with_an_index_of_its_own_is_announced_at_once():
    reader = OpenAIReader()
    reader.feed(calls(call("f", '{"x": 1}', 0, "a")))
    assert reader.feed(calls(call("f", "{", 1, "b"))) == [ToolCallStart("f", "b", 1)]


@pytest.mark.parametrize("place", [{"index": 0}, {}], ids=["an index", "no index"])
@pytest.mark.parametrize("text", ['print("}")', "", "7", "{"])
def test_the_text_of_a_custom_tool_is_its_only_argument(text, place):
    begun = {**place, "id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}
    reader = OpenAIReader([{"type": "custom", "custom": {"name": "f"}}])
    assert reader.feed(calls(begun)) == [ToolCallStart("f", "a", 0)]
    reader.feed(calls({**place, "custom": {"input": text[:3]}}))
    reader.feed(calls({**place, "custom": {"input": text[3:]}}))
    end, _ = reader.feed(DONE)
    assert (end.status, end.arguments) == ("ok", {"input": text})


def test_the_text_of_a_custom_tool_may_be_cut_off():
    reader = OpenAIReader()
    reader.feed(calls({"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "print("}}))
    assert reader.feed(chunk({}, "length"))[0] == ToolCallEnd("f", "a", 0, "print(", "incomplete")


def test_a_line_of_ollamas_may_have_a_delta_in_place_of_a_message():
    line = {"model": "m", "delta": {"tool_calls": [call("f", '{"x": 1}', 0, "a")]}, "done": False}
    assert ended(read(line, {"done": True}, reader=OllamaReader())) == ONE


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


@pytest.mark.parametrize(
    "between", [{"content": "Once more. "}, {"reasoning_content": "Hm."}], ids=["words", "thoughts"]
)
@pytest.mark.parametrize("structured_first", [True, False])
def test_an_equal_call_after_words_or_thoughts_is_a_new_one(structured_first, between):
    twins = [calls(call("f", '{"x": 1}', 0, "a")), chunk({"content": WEATHER})]
    first, second = twins if structured_first else reversed(twins)
    assert len(ended(read(first, second, DONE))) == 1
    assert len(ended(read(first, chunk(between), second, DONE))) == 2


def test_repeats_are_found_by_index_or_by_arguments_and_by_nothing_else():
    with pytest.raises(ValueError, match="repeats is 'by_name'; it must be 'by_index' or 'by_arguments'"):
        OpenAIReader(repeats="by_name")


WEATHER = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'


def whole(content, finish="stop", **message):
    """The whole answer once more, as MiniMax's API ends its streams."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return {"choices": [choice], "object": "chat.completion"}


XML = "<tool_call><function=f><parameter=a>12</parameter><parameter=b>True</parameter></function></tool_call>"
GLM = (
    "<tool_call>f<arg_key>a</arg_key><arg_value>12</arg_value>"
    "<arg_key>b</arg_key><arg_value>true</arg_value></tool_call>"
)


@pytest.mark.parametrize("text", [XML, GLM])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_in_tags_whose_values_are_text_and_the_same_structured_are_one(text, is_first):
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 12, "b": true}'}}
    deltas = [{"content": text}, {"tool_calls": [call]}]
    answer = [{"choices": [{"index": 0, "delta": delta}]} for delta in (deltas if is_first else deltas[::-1])]
    answer.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    ends = [event for event in read_sync(iter(answer)) if isinstance(event, ToolCallEnd)]
    assert [(end.tool_name, end.status) for end in ends] == [("f", "ok")]


@pytest.mark.parametrize("value", ["21.5", "21.0", "2.50", "1e3", "-3"])
def test_a_number_in_tags_is_the_number_that_is_structured(value):
    text = f"<tool_call><function=f><parameter=x>{value}</parameter></function></tool_call>"
    answer = [chunk({"content": text}), calls(call("f", f'{{"x": {value}}}')), chunk({}, finish="tool_calls")]
    assert len([event for event in read(*answer) if isinstance(event, ToolCallEnd)]) == 1


def test_a_structured_call_that_comes_while_the_same_is_still_written_as_text_is_one():
    pieces = ['<tool_call>{"name": "f", ', '"arguments": {"a": 1}', "}</tool_call>"]
    calls = [
        [{"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"a": 1}'}}],
        None,
    ]
    answer = [
        {"choices": [{"index": 0, "delta": {"content": text, "tool_calls": call}}]}
        for text, call in zip(pieces, calls, strict=True)
    ]
    answer.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    events = list(read_sync(iter(answer)))
    assert [event.arguments for event in events if isinstance(event, ToolCallEnd)] == [{"a": 1}]
    assert sum(isinstance(event, ToolCallStart) for event in events) == 1
    assert not [event for event in events if isinstance(event, TextDelta)]


def test_two_calls_in_tags_with_other_values_are_two():
    text = XML + XML.replace("12", "13")
    answer = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}]
    ends = [event for event in read_sync(iter(answer)) if isinstance(event, ToolCallEnd)]
    assert [end.arguments["a"] for end in ends] == ["12", "13"]


@pytest.mark.parametrize("sent_before", ["stop", None], ids=["after a finish reason", "with it"])
def test_a_message_after_its_deltas_is_the_same_answer(sent_before):
    repeated = whole(f"Let me look. {WEATHER}")
    events = read(chunk({"content": "Let me look. "}), chunk({"content": WEATHER}, sent_before), repeated)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me look. "
    assert ended(events) == [("f", "", {"x": 1})]
    structured = call("f", '{"x": 1}')
    assert ended(read(calls(structured), DONE, whole(None, tool_calls=[structured]))) == [("f", "", {"x": 1})]


def test_messages_without_deltas_are_the_answer():
    events = read(whole("Good ", None), whole("night."))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Good night."


def test_a_finish_reason_that_spells_null_is_none():
    pieces = [WEATHER[at : at + 9] for at in range(0, len(WEATHER), 9)]
    events = read(*(chunk({"content": piece}, "null") for piece in pieces), chunk({}, "stop"))
    assert ended(events) == [("f", "", {"x": 1})]
    assert events[-1] == Finish("stop")
    assert len(events) == 3


def test_an_error_inside_a_choice_is_the_failure():
    """As OpenRouter passes on the error of the server that it asked."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "down"}}
    assert read(chunk({"content": "Well."}), {"choices": [choice]}) == [
        TextDelta("Well."),
        StreamFailed("down", "502", 502),
    ]


_TWIN = '{"name": "f", "arguments": {"x": 1}}'
_ALIASES = {f"<{tag}>": f"</{tag}>" for tag in ("tool_call", "function_call", "tool", "tools", "function", "tool_use",
                                                "TOOL_CALL", "tool-call", "toolcall")}  # fmt: skip
_ALIASES |= {"[TOOL_CALL]": "[/TOOL_CALL]", "[TOOL_REQUEST]": "[END_TOOL_REQUEST]"}


@pytest.mark.parametrize("opener", _ALIASES)
def test_structured_call_replaces_its_twin_that_is_half_written_in_a_tag(opener):
    text = opener + _TWIN + _ALIASES[opener]
    for at in range(1, len(text)):
        around = chunk({"content": text[:at]}), calls(call("f", '{"x": 1}', 0, "a")), chunk({"content": text[at:]})
        events = read(*around, DONE, reader=OpenAIReader(["f"]))
        assert [(name, arguments) for name, _, arguments in ended(events)] == [("f", {"x": 1})], text[:at]
        assert not [event for event in events if isinstance(event, TextDelta)], text[:at]


@pytest.mark.parametrize("at", [6, 7, 8, 9, 12, 20, 24])
def test_no_text_is_lost_if_what_a_structured_call_came_into_is_no_call(at):
    text = '<tool>{"name": 1, "b": 2}</tool> ok'
    around = chunk({"content": text[:at]}), calls(call("f", '{"x": 1}', 0, "a")), chunk({"content": text[at:]})
    events = read(*around, DONE, reader=OpenAIReader(["f"]))
    assert ended(events) == ONE
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text


def _invoke(wrapper, decoration):
    """A call in tags, cut where a model's tokens end."""
    opened, closed = f"<{decoration}", f"</{decoration}"
    return [
        *(opened, *wrapper, ">\n", opened, 'invoke name="f">\n', opened, 'parameter name="x">1'),
        *(closed, "parameter>\n", closed, "invoke>\n", "</", decoration, *wrapper, ">"),
    ]


_DECORATED = {
    "DeepSeek-V3.2": _invoke(["fun", "ction", "_calls"], "｜DSML｜"),
    "DeepSeek-V4": _invoke(["to", "ol", "_calls"], "｜DSML｜"),
    "MiniMax-M2": _invoke(["to", "ol", "_call"], "minimax:"),
    "a namesake": _invoke(["to", "ol", "_call"], "mini_"),
    "LongCat": ["<longcat_", "to", "ol", "_call>", _TWIN, "</", "long", "cat_", "to", "ol", "_call>"],
    "a pair": ["<|", "x_call", ":", "begin|>", _TWIN, "<|", "x_call", ":", "end|>"],
}


@pytest.mark.parametrize("name", _DECORATED)
def test_structured_call_replaces_its_twin_that_is_half_written_in_decorated_tags(name):
    tokens = _DECORATED[name]
    for lead in ("Let me look. ", "Let me look.\n"):
        for at in range(1, len(tokens)):
            before, after = lead + "".join(tokens[:at]), "".join(tokens[at:])
            for rest in ([chunk({"content": after})], []):  # a server may also keep the rest
                around = chunk({"content": before}), calls(call("f", '{"x": 1}', 0, "a")), *rest
                events = read(*around, DONE, reader=OpenAIReader(["f"]))
                ran = [event for event in events if isinstance(event, ToolCallEnd) and event.status == "ok"]
                assert len(ran) == 1, before
                said = "".join(event.text for event in events if isinstance(event, TextDelta))
                assert said.strip() == lead.strip(), before


@pytest.mark.parametrize("text", ["See <https://x.dev> ok", "If a <b_c> d", "<|x|> y", "</x_y> ok", "</x:y> ok"])
def test_no_text_is_lost_if_what_a_structured_call_came_into_is_no_decorated_tag(text):
    for lead in ("", "So ", "So.\n"):
        for at in range(1, len(text)):
            cut = chunk({"content": lead + text[:at]}), chunk({"content": text[at:]})
            events = read(cut[0], calls(call("f", '{"x": 1}', 0, "a")), cut[1], DONE, reader=OpenAIReader(["f"]))
            assert ended(events) == ONE
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == lead + text, text[:at]


@pytest.mark.parametrize("half", ["<b", "</b", "<user", "<my_file", "a < b"])
def test_words_before_a_structured_call_that_begin_as_a_tag_may_are_passed_on(half):
    events = read(chunk({"content": f"So {half}"}), calls(call("f", '{"x": 1}', 0, "a")), DONE)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == f"So {half}"


@pytest.mark.parametrize("half", ["<|x_call:beg", "<｜DSML", "<｜DSML｜", "<｜DSML｜fun", "</｜DSML｜fun"])
@pytest.mark.parametrize("lead", ["So ", "So.\n"])
def test_half_a_decorated_token_is_not_spoken_where_the_answer_was_cut_off(half, lead):
    events = read(*(chunk({"content": piece}) for piece in (lead, *half)), chunk({}, "length"))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == lead


@pytest.mark.parametrize("at", range(5, 10))
@pytest.mark.parametrize("text", ["[f(), g()]", "[f(), g()](https://x.dev) ok"], ids=["calls", "link"])
def test_structured_call_beside_what_may_be_a_link_loses_neither(text, at):
    around = chunk({"content": text[:at]}), calls(call("f", "{}", 0, "a")), chunk({"content": text[at:]})
    events = read(*around, DONE)
    is_link = text.endswith("ok")
    assert [name for name, _, _ in ended(events)] == ["f"] + ["g"] * (not is_link)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text * is_link


@pytest.mark.parametrize("thinking", ["Hm.", [{"type": "text", "text": "H"}, {"type": "text", "text": "m."}]])
def test_a_part_of_thinking_in_the_content_is_reasoning(thinking):
    """As Mistral's reasoning models write."""
    parts = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": "Hi. "}]
    events = read(chunk({"content": parts}), chunk({"content": f"Yes. {WEATHER}"}), DONE)
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "Hm."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hi. Yes. "
    assert ended(events) == [("f", "", {"x": 1})]
