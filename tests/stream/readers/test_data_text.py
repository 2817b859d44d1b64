"""Thoughts before data that a request asked for, such as JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import Finish, OllamaReader, OpenAIReader, ReasoningDelta, StreamFailed, TextDelta

CALL = '{"name": "lock", "arguments": {}}'


def read(pieces, make=OpenAIReader, *, reason="stop"):
    """Thought, text and other events of an answer that comes in pieces."""
    reader = make(calls_in_text=False)
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
