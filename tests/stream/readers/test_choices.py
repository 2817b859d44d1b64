"""Streams with several choices: several answers to one question, and one answer that a gateway has spread."""

import logging

import pytest

from stream import Finish, OpenAIReader, ReasoningDelta, StreamFailed, TextDelta, ToolCallEnd
from tests.stream.providers import read_all


def chunk(index, reason=None, **delta):
    return {"choices": [{"index": index, "delta": delta, "finish_reason": reason}]}


def call(index, at=0, identity="a", place="Oslo"):
    function = {"name": "look", "arguments": f'{{"at": "{place}"}}'}
    return chunk(index, tool_calls=[{"index": at, "id": identity, "type": "function", "function": function}])


def read(*chunks, **options):
    events = read_all(OpenAIReader(**options), chunks)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    called = [event.arguments["at"] for event in events if isinstance(event, ToolCallEnd) and event.status == "ok"]
    return said, called, [event for event in events if isinstance(event, Finish | StreamFailed)]


def role(index):
    return chunk(index, role="assistant", content="")


@pytest.mark.parametrize("end", [0, 1], ids=["of the text", "of the call"])
def test_calls_of_an_answer_that_is_spread_over_choices_are_read_wherever_it_finishes(end):
    answer = [chunk(0, role="assistant", content="Let me look."), call(1), call(2, 1, "b", "Rome")]
    finished = ("Let me look.", ["Oslo", "Rome"], [Finish("tool_calls")])
    assert read(*answer, chunk(end, "tool_calls")) == finished
    assert read(*answer, chunk(end, "tool_calls"), {"choices": [], "usage": {"prompt_tokens": 1}}) == finished


@pytest.mark.parametrize("end", [0, 1, 2], ids=["of the thoughts", "of the answer", "of a third"])
@pytest.mark.parametrize("thoughts", [{"reasoning_content": "Hm."}, {"content": "\n\n"}, {}], ids=str)
def test_an_answer_on_another_choice_than_its_thoughts_is_read_while_it_comes(thoughts, end):
    reader = OpenAIReader()
    reader.feed(chunk(0, role="assistant", **thoughts))
    assert reader.feed(chunk(1, content="Good "))[-1] == TextDelta("Good ")
    assert reader.feed(chunk(1, content="evening.")) == [TextDelta("evening.")]
    assert [*reader.feed(chunk(end, "stop")), *reader.close()] == [Finish("stop")]


def test_calls_after_thoughts_alone_are_read():
    answer = [chunk(0, reasoning_content="Hm."), call(1), call(2, 1, "b", "Rome"), chunk(0, "tool_calls")]
    assert read(*answer) == ("", ["Oslo", "Rome"], [Finish("tool_calls")])


def ended(index, reason="stop"):
    return chunk(index, reason)


@pytest.mark.parametrize(
    "chunks",
    [
        [role(0), role(1), chunk(0, content="Yes."), chunk(1, content="No."), ended(0), ended(1)],
        [role(0), role(1), chunk(0, content="Yes."), chunk(1, content="No."), ended(1), ended(0)],
        [role(0), chunk(0, content="Yes."), ended(0), role(1), chunk(1, content="No."), ended(1)],
        [role(0), chunk(0, content="Yes."), ended(0), role(1), chunk(1, content="No.")],
        [role(0), role(1), chunk(0, content="Yes."), call(1), ended(1, "tool_calls"), ended(0)],
        [role(0), role(1), chunk(0, content="Yes."), call(1), ended(0), ended(1, "tool_calls")],
        [role(0), role(1), chunk(1, content="Yes."), chunk(0, content="No."), ended(0), ended(1)],
        [chunk(0, content="Yes."), chunk(1, content="No."), call(2), ended(0), ended(1), ended(2, "tool_calls")],
    ],
)
def test_of_several_answers_the_one_that_speaks_first_is_read_alone(chunks):
    assert read(*chunks) == ("Yes.", [], [Finish("stop")])


def test_thoughts_of_a_second_answer_are_not_read():
    events = read_all(OpenAIReader(), [chunk(0, reasoning_content="Hm."), chunk(1, reasoning_content="Oh."), ended(0)])
    assert events == [ReasoningDelta("Hm.", sent_as="reasoning_content"), Finish("stop")]


def test_what_cannot_be_told_is_left_out_and_logged_once(caplog):
    said = [chunk(0, content="Let me look."), call(1), call(2, 1, "b", "Rome")]
    with caplog.at_level(logging.WARNING):
        text, called, (failed,) = read(*said)
        assert (text, called, failed.code) == ("Let me look.", [], "unfinished")
        assert len(caplog.messages) == 1
        assert read(chunk(0, content="Yes."), chunk(1, content="No."), ended(0)) == ("Yes.", [], [Finish("stop")])
        assert read(*said * 5, ended(0), max_argument_chars=500)[:2] == ("Let me look." * 5, [])
    assert caplog.messages == [caplog.messages[0]] * 3
