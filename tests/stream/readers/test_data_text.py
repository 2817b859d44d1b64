"""Thoughts before data that a request asked for, such as JSON."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import (
    AnthropicReader,
    Finish,
    OllamaReader,
    OpenAIReader,
    ReasoningDelta,
    StreamFailed,
    TextDelta,
    TextReader,
    ToolCallEnd,
)
from stream.readers.text.dialects.reasoning import BLOCKS
from tests.stream.comparing import splits
from tests.stream.grammar import make_thought

CALL = '{"name": "lock", "arguments": {}}'


def read(pieces, make=OpenAIReader, *, reason="stop", start="text"):
    """Thought, text and other events of an answer that comes in pieces."""
    reader = make(calls_in_text=False, start=start)
    if make is OpenAIReader:
        messages = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
        end = {"choices": [{"delta": {}, "finish_reason": reason}]}
    else:
        messages = [{"message": {"content": piece}, "done": False} for piece in pieces]
        end = {"message": {"content": ""}, "done": True, "done_reason": reason}
    events = [event for message in [*messages, *([end] if reason else [])] for event in reader.feed(message)]
    events += reader.close()
    thought, text = (
        "".join(event.text for event in events if isinstance(event, kind)) for kind in (ReasoningDelta, TextDelta)
    )
    return thought, text, [event for event in events if not isinstance(event, ReasoningDelta | TextDelta)]


@pytest.mark.parametrize("make", [OpenAIReader, OllamaReader])
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    ("answer", "thought", "text"),
    [
        ('<think>hm < </thin ok</think>{"a": 1}', "hm < </thin ok", '{"a": 1}'),
        (f"\n[THINK]hm[/THINK]\n{CALL}", "hm", f"\n\n{CALL}"),
        (CALL, "", CALL),
        ("[1, [2]]", "", "[1, [2]]"),
        ('{"a": "<think>b</think>"}', "", '{"a": "<think>b</think>"}'),
        ('<think>x</think>{"a": "<think>b</think>"}', "x", '{"a": "<think>b</think>"}'),
        ("<reasoning>a</reasoning><answer>b</answer>", "", "<reasoning>a</reasoning><answer>b</answer>"),
        ("<thi", "", "<thi"),
        ("<think>cut </thi", "cut </thi", ""),
        (" \n ", "", " \n "),
    ],
    ids=["tag", "token", "like a call", "array", "in a text", "both", "a grammar", "cut", "cut inside", "space"],
)
def test_a_thought_before_data_is_reasoning_and_the_data_is_as_it_was_written(make, size, answer, thought, text):
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    assert read(pieces, make) == (thought, text, [Finish("stop")])


def test_what_is_held_back_comes_before_the_failure_of_a_stream_that_breaks_off():
    assert read(["<thi"], reason=None)[:2] == ("", "<thi")
    assert isinstance(read(["<thi"], reason=None)[2][0], StreamFailed)


@given(st.lists(st.text(alphabet="<think>/ {}[]TH", min_size=1, max_size=9)))
def test_no_cut_makes_a_difference_to_data(pieces):
    assert read(pieces) == read(list("".join(pieces)))


def in_text(answer, start):
    """Thought and text of an answer in ordinary text."""
    reader = TextReader(start=start)
    events = reader.feed(answer) + reader.close()
    return tuple(
        "".join(event.text for event in events if isinstance(event, kind)) for kind in (ReasoningDelta, TextDelta)
    )


WORDS = {"<reasoning>", "<reason>"}  # a grammar may ask for them
NEW = [make_thought(random.Random(seed)) for seed in range(8)]
LISTED = [pair for pair in BLOCKS.items() if pair[0] not in WORDS]
DECORATED = [("<mm:think>", "</mm:think>"), ("<x_think>", "</x_think>"), ("<think:ab>", "</think:ab>"),
             ("<｜ns｜think>", "</｜ns｜think>"), ("<|x_think:start|>", "<|x_think:end|>"),
             ("<|channel>thought\n", "<channel|>"), ("<|channel>thought\r\n", "<channel|>")]  # fmt: skip
IN_TEMPLATES = ["[BEGIN FINAL RESPONSE]", "<|close|>think<|sep|>"]
THOUGHT = 'Hm < </th, {"b": [1]} <|x_call:end|>.'
DATA = ['{"a": 1}', '{"a": "</mm:think><thought>b</thought>"}', "yes", "<answer>b</answer>"]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("opener", "closer"), [*LISTED, *DECORATED, *NEW])
def test_all_blocks_of_ordinary_text_are_known_before_data(opener, closer, data):
    answer = f"{opener}{THOUGHT}{closer}\n{data}"
    assert in_text(f"{opener}Hm.{closer}\nYes.", "text") == ("Hm.", "\nYes.")
    for pieces in splits(answer, rounds=4):
        assert read(pieces) == (THOUGHT, f"\n{data}", [Finish("stop")])


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    "closer", [*sorted({closer for _, closer in [*BLOCKS.items(), *DECORATED, *NEW]}), *IN_TEMPLATES]
)
def test_any_end_of_ordinary_text_ends_thoughts_that_the_prompt_has_opened(closer, data):
    assert in_text(f"Hm.{closer}\nYes.", "reasoning") == ("Hm.", "\nYes.")
    for pieces in splits(f"{THOUGHT}{closer}\n{data}", rounds=4):
        assert read(pieces, start="reasoning") == (THOUGHT, f"\n{data}", [Finish("stop")])


@pytest.mark.parametrize("start", ["text", "reasoning"])
@pytest.mark.parametrize("answer", ["</think>", "</mm:think>\n", "[/THINK]", "<think>a</think>\n<thought>b</thought>"])
def test_an_end_alone_and_a_second_block_leave_the_data_too(answer, start):
    for pieces in splits(answer + '{"a": 1}', rounds=4):
        thought, text, _ = read(pieces, start=start)
        assert (thought, text.strip()) == ("ab" if "a<" in answer else "", '{"a": 1}')


@pytest.mark.parametrize(
    ("answer", "thought", "text"),
    [
        ('Hm, {x}, see [1] and {"a": 2}: so.</analysis>\n{"a": [{}, "}"]}\n',
         'Hm, {x}, see [1] and {"a": 2}: so.</analysis>\n', '{"a": [{}, "}"]}\n'),
        ("Hm.[1, 2]", "Hm.", "[1, 2]"),
        ('Hm {"a": 1} so', 'Hm {"a": 1} so', ""),
        ('Hm {"a": 1}, {"a": ', 'Hm {"a": 1}, {"a": ', ""),
        ('Hm {"a": 1}</thi', 'Hm {"a": 1}</thi', ""),
        ('Hm {"a": 1}</think> yes', 'Hm {"a": 1}', " yes"),
        ('Hm {"a": 1}</think>', 'Hm {"a": 1}', ""),
        ('Hm [0, 1) "{ {"a": 1}', 'Hm [0, 1) "{ ', '{"a": 1}'),
        ('Begin with "{".</done>{"a": "b"}', 'Begin with "{".</done>', '{"a": "b"}'),
        ('Not ["", but {"a": "b"}', 'Not ["", but ', '{"a": "b"}'),
    ],
    ids=["an unknown end", "an array", "words follow", "cut", "half an end", "an end", "an end alone", "brackets",
         "a bracket in quotes", "one before quotes"],
)  # fmt: skip
def test_json_that_ends_thoughts_without_an_end_is_data(answer, thought, text, caplog):
    for opener, start in (("", "reasoning"), ("<think>", "text")):
        for pieces in splits(opener + answer, rounds=4):
            assert read(pieces, start=start) == (thought, text, [Finish("stop")])
    assert ("no end of the thoughts came" in caplog.text) == (not text and "</think>" not in answer)


def test_json_that_was_held_back_in_thoughts_comes_with_what_follows_it():
    reader = OpenAIReader(calls_in_text=False, start="reasoning")
    found = [
        [event.text for event in reader.feed({"choices": [{"delta": {"content": piece}}]})]
        for piece in ("Hm {", '"a": 1}', " ", "so", " on")
    ]
    assert found == [["Hm "], [], [], ['{"a": 1} so'], [" on"]]


def test_json_before_a_structured_call_is_a_thought():
    call = {"index": 0, "id": "c", "function": {"name": "lock", "arguments": "{}"}}
    reader = OpenAIReader(calls_in_text=False, start="reasoning")
    events = reader.feed({"choices": [{"delta": {"content": 'Lock it with {"a": 1}'}}]})
    events += reader.feed({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == 'Lock it with {"a": 1}'
    assert not any(isinstance(event, TextDelta) for event in events)
    block = {"type": "tool_use", "id": "c", "name": "lock", "input": {}}
    reader = AnthropicReader(calls_in_text=False, start="reasoning")
    events = [
        event
        for message in (
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hm {}"}},
            {"type": "content_block_start", "index": 1, "content_block": block},
            {"type": "content_block_stop", "index": 1},
        )
        for event in reader.feed(message)
    ]
    assert events[0] == ReasoningDelta("Hm ")
    assert [event.text for event in events if isinstance(event, TextDelta)] == []
    assert any(isinstance(event, ToolCallEnd) for event in events)


@given(
    st.lists(st.text(alphabet='<think>/ {}[]:,"\nm|a1', min_size=1, max_size=9)),
    st.sampled_from(["text", "reasoning"]),
    st.sampled_from(["", "Hm ", "<m:think>", "</x_think>"]),
)
def test_no_cut_makes_a_difference_to_thoughts_and_data(pieces, start, before):
    whole = read([before + "".join(pieces)], start=start)
    assert read([before, *pieces], start=start) == whole
    assert read(list(before + "".join(pieces)), start=start) == whole


@pytest.mark.parametrize("start", ["text", "reasoning"])
@pytest.mark.parametrize("data", ['{"a": "<think>b</think> [THINK] {"}', '["</x_think>"]', '{"a": 1}\n<think>'])
def test_json_passes_at_once_and_as_it_was_written(data, start):
    reader = OpenAIReader(calls_in_text=False, start=start)
    for char in [data[:2], *data[2:]]:
        assert reader.feed({"choices": [{"delta": {"content": char}}]}) == [TextDelta(char)]


@pytest.mark.parametrize("data", ["yes, {no}", "3.5 <think>", "call:f{}", "- a\n- <thought>"])
def test_data_of_another_grammar_passes_at_once_and_as_it_was_written(data):
    reader = OpenAIReader(calls_in_text=False)
    for char in data:
        assert reader.feed({"choices": [{"delta": {"content": char}}]}) == [TextDelta(char)]
