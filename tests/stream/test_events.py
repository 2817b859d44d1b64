"""The events as values: a call's arguments read once, and everything else about the event as if they were not."""

import copy
import dataclasses
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import TextReader, ToolCallEnd

FIELDS = ["tool_name", "tool_call_id", "index", "arguments_json", "status"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_the_arguments_of_a_call_are_a_value():
    call = '<tool_call>{"name": "read_file", "arguments": {"path": "/home/user", "lines": [1, 2]}}</tool_call>'
    (end,) = [event for event in TextReader().feed(call) if isinstance(event, ToolCallEnd)]
    assert end.arguments == {"path": "/home/user", "lines": [1, 2]}
    assert end.arguments is end.arguments, "they are read once"
    assert ToolCallEnd("now").arguments == {}


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_they_are_what_their_json_says(arguments):
    assert ToolCallEnd("f", arguments_json=json.dumps(arguments)).arguments == arguments


@pytest.mark.parametrize("status", ["incomplete", "malformed"])
def test_a_call_that_cannot_be_run_has_none(status):
    assert ToolCallEnd("f", arguments_json='{"path": "a"}', status=status).arguments is None


@pytest.mark.parametrize("text", ["", "{", "[1]", '"a"', "null", '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_what_python_cannot_read_as_an_object_is_none_and_raises_nothing(text):
    assert ToolCallEnd("f", arguments_json=text).arguments is None


def test_having_been_read_changes_nothing_about_the_event():
    read, other = (ToolCallEnd("f", "1", 2, '{"path": "a"}') for _ in range(2))
    assert read.arguments == {"path": "a"}
    assert read == other
    assert hash(read) == hash(other)
    assert repr(read) == repr(other)
    assert pickle.dumps(read) == pickle.dumps(other)
    assert list(ToolCallEnd.__match_args__) == FIELDS
    names = [*FIELDS, "told", "from_text", "extra_content"]
    assert [field.name for field in dataclasses.fields(read)] == names
    values = ("f", "1", 2, '{"path": "a"}', "ok", False, False, None)
    assert dataclasses.asdict(read) == dict(zip(names, values, strict=True))
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.status = "malformed"
    assert not hasattr(read, "__dict__")


@pytest.mark.parametrize(
    "again",
    [lambda end: pickle.loads(pickle.dumps(end)), copy.copy, copy.deepcopy, dataclasses.replace],
    ids=["pickle", "copy", "deepcopy", "replace"],
)
def test_a_copy_reads_its_own(again):
    end = ToolCallEnd("f", arguments_json='{"path": ["a"]}')
    end.arguments["path"].append("b")
    assert again(end).arguments == {"path": ["a"]}
    assert dataclasses.replace(end, arguments_json='{"path": "c"}').arguments == {"path": "c"}
    assert dataclasses.replace(end, status="malformed").arguments is None
