"""Every input is possible input: nothing that a server sends may raise, and every start has its end."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.stream_formats_fuzz import spoil
from stream import (
    AnthropicReader,
    Finish,
    GeminiReader,
    OllamaReader,
    OpenAIReader,
    StreamFailed,
    TextDelta,
    TextReader,
    ToolCallEnd,
)
from stream.errors import StreamTypeError, StreamValueError
from stream.readers.formats.any_format import AnyReader
from tests.stream.comparing import as_case_events, load, matches
from tests.stream.providers import read_all as read

CHUNKS = [chunk for case in load("openai_chunks") for chunk in case["input"]]
LINES = [
    line for case in load("ollama_ndjson") for line in case["input"] if isinstance(line, dict) and "hex" not in line
]


def split(events):
    """The calls' ends, and what is spoken."""
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    return ends, "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("kind", [(OpenAIReader, CHUNKS), (OllamaReader, LINES)], ids=["chunks", "lines"])
def test_real_messages_with_spoilt_values_raise_nothing(kind):
    reader_class, messages = kind
    rng = random.Random(11)
    for _ in range(2000):
        picked = [spoil(json.loads(json.dumps(rng.choice(messages))), rng) for _ in range(rng.randint(1, 5))]
        as_case_events(read(reader_class(), [item for item in picked if isinstance(item, dict)]))


@settings(max_examples=200)
@given(st.binary(max_size=300), st.integers(1, 20))
def test_random_bytes_raise_nothing_whatever_the_reads(data, size):
    whole = read(OllamaReader(), [data])
    parts = read(OllamaReader(), [data[start : start + size] for start in range(0, len(data), size)])
    assert [type(event) for event in whole][-1] is StreamFailed
    assert as_case_events(whole) == as_case_events(parts)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    ("start", "text"),
    [
        ("text", "See <tool_call｜> and "),
        ("text", "See <x｜calls> and "),
        ("text", "```json\n<x｜calls> and "),
        ("text", "<|channel>thought\nHm.<channel｜>Yes"),
        ("text", "<|tool_response>response:1<tool▁response|>Yes"),
        ("reasoning", "I end it by <|tool_call:end|> and "),
        ("reasoning", "I end it by <|x:end_tool_request:x|> and "),
    ],
)
def test_what_looks_like_a_marker_and_is_none_holds_nothing_back(start, text, size):
    reader = TextReader(start=start)
    for begin in range(0, len(text), size):
        reader.feed(text[begin : begin + size])
    reader.feed(" so")
    (event,) = reader.feed(" on")
    assert event.text == " on"


def test_arguments_of_any_depth_are_read_without_recursion():
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    for reader, items in (
        (TextReader(), [f'<tool_call>{{"name": "f", "arguments": {deep}}}</tool_call> Done.']),
        (OpenAIReader(), [{"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": deep}}]}}]}]),
    ):
        ends = [event for event in read(reader, items) if isinstance(event, ToolCallEnd)]
        assert [(end.status, end.arguments_json) for end in ends] == [("ok", deep)]


@pytest.mark.parametrize("wrapper", ['{"tool_calls": [', '{"tool_uses": [', '{"tool_call": '])
@pytest.mark.parametrize(("marker", "status"), [("", []), ("<tool_call>", ["malformed"])], ids=["bare", "marked"])
def test_wrappers_of_any_depth_are_read_without_recursion(wrapper, marker, status):
    text = wrapper * 2000
    events = read(TextReader(), [marker + text])
    assert [event.status for event in events if isinstance(event, ToolCallEnd)] == status
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == ("" if marker else text)


def test_results_and_errors_of_any_depth_raise_nothing():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    events = read(OllamaReader(), [{"tool_results": [{"name": "f", "content": deep}]}, {"error": {"message": deep}}])
    assert [type(event).__name__ for event in events] == ["ToolResult", "StreamFailed"]


def test_values_past_any_sane_depth_are_malformed():
    deep = {}
    for _ in range(10_000):
        deep = {"a": deep}
    for reader, item in (
        (TextReader(), "[f(a=" + "[" * 10_000 + "]" * 10_000 + ")] x"),
        (OllamaReader(), {"message": {"tool_calls": [{"function": {"name": "f", "arguments": deep}}]}}),
    ):
        assert [event.status for event in read(reader, [item]) if isinstance(event, ToolCallEnd)] == ["malformed"]


def test_huge_or_wrong_indexes_name_calls_like_any_other():
    for index in (10**9, -3, "1", "x", 2**70, 1.5, True, None):
        call = {"index": index, "function": {"name": "f", "arguments": "{}"}}
        events = read(OpenAIReader(), [{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "stop"}]}])
        assert [event.tool_name for event in events if isinstance(event, ToolCallEnd)] == ["f"]


def test_arguments_past_the_cap_are_dropped_and_the_call_is_malformed():
    long = json.dumps({"text": "x" * 5000})
    for text in (f'<tool_call>{{"name": "f", "arguments": {long}}}</tool_call> Done.',
                 f"<tool_call><function=f><parameter=text>{long}</parameter></function></tool_call> Done.",
                 f'[f(text="{"x" * 5000}")] Done.'):  # fmt: skip
        events = read(TextReader(max_argument_chars=1000), list(text))
        (end,) = (event for event in events if isinstance(event, ToolCallEnd))
        assert (end.tool_name, end.status, end.arguments_json) == ("f", "malformed", "")
        assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == "Done."


def test_callers_mistakes_raise():
    with pytest.raises(StreamValueError, match="start is 'middle'"):
        TextReader(start="middle")
    with pytest.raises(StreamTypeError, match="one text"):
        TextReader(tools="lock")
    with pytest.raises(StreamTypeError, match="neither a name"):
        OpenAIReader(tools=[5])
    with pytest.raises(StreamTypeError, match="bytes is not str"):
        TextReader().feed(b"x")
    with pytest.raises(StreamTypeError, match="int is neither"):
        OllamaReader().feed(5)
    with pytest.raises(StreamTypeError, match="int is neither"):
        OpenAIReader().feed(5)
    for reader, item in ((TextReader(), "x"), (OpenAIReader(), {"choices": []}), (OllamaReader(), b"{}\n")):
        assert reader.close()
        assert reader.close() == []
        with pytest.raises(StreamValueError, match="closed"):
            reader.feed(item)


class Odd:
    """An object whose attributes raise, but for those that are given."""

    def __init__(self, **fields):
        self.__dict__ |= fields

    def __getattr__(self, name):
        raise ValueError(name)


class Closed:
    """An object without a single attribute that can be read."""

    @property
    def __dict__(self):
        raise ValueError("closed")


def test_lines_that_say_done_at_the_end_alone_lose_no_word():
    lines = [{"model": "m", "message": {"role": "assistant", "content": f"{number} "}} for number in range(100)]
    events = read(AnyReader(), [*lines, {"model": "m", "done": True, "done_reason": "stop"}])
    assert "".join(event.text for event in events[:-1]).split() == [str(number) for number in range(100)]
    assert events[-1] == Finish("stop")


@pytest.mark.parametrize("kind", [OpenAIReader, OllamaReader, GeminiReader, AnthropicReader, AnyReader])
def test_objects_whose_attributes_raise_are_read_as_far_as_they_can_be(kind):
    reader = kind()
    said = Odd(choices=[Odd(delta=Odd(content="Hi."), index=0)])
    assert reader.feed(said) == ([TextDelta("Hi.")] if kind in (OpenAIReader, AnyReader) else [])
    assert reader.feed({"choices": [Closed()], "message": Closed(), "candidates": [Closed()]}) == []
    with pytest.raises(StreamTypeError, match="Closed is neither"):
        reader.feed(Closed())


def test_megabyte_of_arguments_before_their_name_is_not_kept_and_not_spoken():
    reader = TextReader()
    events = read(reader, ['{"arguments": {"x": "', *["y" * 4096] * 300, '"}, "name": "f"} Done.'])
    expected = [{"type": "malformed", "name": "f"}, {"type": "text", "text": "Done."}]
    assert matches({"expect": expected}, as_case_events(events))


def test_ten_thousand_calls_open_at_once_end_in_their_order():
    fragments = [{"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": '{"n": '}} for n in range(10_000)]
    ends = [{"index": n, "function": {"arguments": f"{n}}}"}} for n in reversed(range(10_000))]
    chunks = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in fragments + ends]
    calls = [event for event in read(OpenAIReader(), chunks) if isinstance(event, ToolCallEnd)]
    assert [call.tool_call_id for call in calls] == [f"c{n}" for n in range(10_000)]
    assert {call.status for call in calls} == {"ok"}


@pytest.mark.parametrize("cap", ["10", 0, 1.5, True, None], ids=repr)
@pytest.mark.parametrize(
    ("kind", "option"),
    [(TextReader, "max_argument_chars"), (OpenAIReader, "max_argument_chars"), (OllamaReader, "max_line_chars")],
)
def test_a_cap_that_cannot_be_is_refused_when_the_reader_is_made(kind, option, cap):
    with pytest.raises((StreamTypeError, StreamValueError), match=f"{option} is {cap!r}; it must be"):
        kind(**{option: cap})


@pytest.mark.parametrize("size", [1022, 1023, 1 << 17], ids=["at the limit", "past it", "far past it"])
@pytest.mark.parametrize("part", ["name", "key", "id"])
def test_names_keys_and_ids_of_any_length_raise_nothing(part, size):
    long = "n" * size
    members = {"name": f'"name": "{long}"', "key": f'"{long}": 1, "name": "f"', "id": f'"id": "{long}", "name": "f"'}
    text = f'<tool_call>{{{members[part]}, "arguments": {{}}}}</tool_call> Done.'
    for pieces in ([text], [text[start : start + 997] for start in range(0, len(text), 997)]):
        (*_, end), said = split(read(TextReader(max_argument_chars=1000), pieces))
        assert end.status == ("ok" if size == 1022 else "malformed")
        assert said.strip() == "Done."


@pytest.mark.parametrize("cap", [1, 5, 40])
def test_no_cap_makes_a_text_raise(cap):
    rng = random.Random(cap)
    for case in [case for name in ("content", "content_extra", "decisions") for case in load(name)]:
        text, size = case["input"], rng.randint(1, 7)
        reader = TextReader(case.get("tools"), case.get("start", "text"), max_argument_chars=cap)
        read(reader, [text[start : start + size] for start in range(0, rng.randint(1, len(text)), size)])
