"""A router's arguments: a mistake raises when the router is made."""

from types import SimpleNamespace

import numpy as np
import pytest

import cues
from stream import OpenAIReader, TextReader
from stream.errors import StreamError, StreamTypeError, StreamValueError
from stream.events import AskedAgain, EmptyToolCalls, ReasoningDelta, ToolCallStart, ToolResult, Usage
from stream.routing.router import CueRouter, CueRules
from tests.support.routing import ALL, RATE, Pipeline, bank


@pytest.mark.parametrize(
    "tools",
    [
        ["read_file"],
        [{"type": "function", "function": {"name": "read_file"}}],
        [{"type": "custom", "custom": {"name": "read_file"}}],
        [SimpleNamespace(name="read_file")],
        {"read_file": print},
        iter(["read_file"]),
    ],
    ids=["names", "tool dicts", "custom tools", "objects", "by name", "iterator"],
)
def test_tools_are_declared_as_a_reader_takes_them(tools):
    pipeline = Pipeline(tools=tools)
    assert pipeline.handle(ToolCallStart("read_file"), ToolCallStart("reed_file")) == ["tool_call", "error"]


@pytest.mark.parametrize(
    "tools",
    ["read_file", 1, {"type": "function", "function": {"name": "read_file"}}, [None]],
    ids=["one text", "a number", "one tool", "nothing"],
)
@pytest.mark.parametrize("make", [Pipeline, OpenAIReader, TextReader], ids=["router", "messages", "text"])
def test_what_is_no_collection_of_tools_is_told_at_once(make, tools):
    with pytest.raises(StreamTypeError, match=r"^tools: "):
        make(tools=tools)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"burst": 0}, "burst is 0"),
        ({"burst": 1.5}, "burst is 1.5; it must be a whole number"),
        ({"coalesce_ms": -1.0}, "coalesce_ms is -1.0"),
        ({"sustained_per_s": float("inf")}, "sustained_per_s is inf; .* finite"),
        ({"coalesce_ms": float("nan")}, "coalesce_ms is nan"),
        ({"working_after_s": "3"}, "working_after_s is '3'; it must be a number"),
        ({"tools": ("read_*",)}, "tools is .*; it must be pairs of a pattern"),
        ({"tools": {"read_*": "agent"}}, "tools is .*; it must be pairs of a pattern"),
        ({"tools": "read_*"}, "tools is .*; it must be pairs of a pattern"),
        ({"tools": (("read_*", 3),)}, r"tools: 'read_\*' is 3; it must be the name of a cue"),
        ({"agent_tools": "research_*"}, "agent_tools is 'research_.'; it must be patterns"),
        ({"success": 1}, "success is 1; it must be the name of a cue"),
        ({"placements": ("agent",)}, "placements is .*; it must be pairs of a cue"),
        ({"placement": "later"}, "placement is 'later'"),
        ({"placements": (("agent", "soon"),)}, "placement is 'soon'"),
    ],
    ids=str,
)
def test_rules_that_cannot_be_are_refused_with_a_sentence(option, message):
    with pytest.raises(StreamError, match=message):
        CueRules(**option)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"success": "sucess"}, "success is 'sucess', and no cue has that name; .*; did you mean 'success'"),
        ({"tools": (("read_*", "min"),)}, r"tools 'read_\*' is 'min', .*; did you mean 'mine'"),
        ({"placements": (("agnt", "now"),)}, "placements is 'agnt', .*; did you mean 'agent'"),
        ({"success": "motif"}, "success is 'motif', and no cue has that name"),
    ],
    ids=str,
)
def test_a_cue_that_was_written_into_the_rules_must_be_in_the_bank(option, message):
    with pytest.raises(StreamValueError, match=message):
        Pipeline(rules=CueRules(**option))
    pipeline = Pipeline(rules=CueRules(tools=(("read_*", "mine"),)))
    with pytest.raises(StreamValueError, match="'mine', and no cue has that name; the bank holds error"):
        pipeline.router.use_mixer(cues.Mixer(RATE), bank("error"))
    assert pipeline.handle(ToolCallStart("read_file")) == ["mine"]


def test_motifs_of_declared_tools_are_made_when_a_router_begins(monkeypatch):
    bank = cues.load_bank(sample_rate=9000)
    CueRouter(bank, cues.Mixer(9000), rules=CueRules(tool_call="motif"), tools=["prepared_3"])
    monkeypatch.setattr("cues.synthesis.render.render", None)
    assert bank["motif:prepared_3"].spec == cues.motif("prepared_3")


@pytest.mark.parametrize(
    ("option", "sounds"),
    [
        ({"tool_call": ""}, ["success"]),
        ({"tool_call": None}, ["success"]),
        ({"tool_call": "motif"}, ["motif:read_file", "success"]),
        ({"success": "motif:done"}, ["tool_call", "motif:done"]),
        ({"agent": "motif", "agent_tools": ["read_*"]}, ["motif:read_file", "success"]),
    ],
    ids=str,
)
def test_no_cue_and_motifs_may_be_written_into_the_rules(option, sounds):
    pipeline = Pipeline(cues.load_bank(), rules=CueRules(**option))
    assert (
        pipeline.handle(
            ToolCallStart("read_file"), ToolResult(tool_name="read_file", tool_call_id="", is_error=False, content="")
        )
        == sounds
    )


def test_what_is_no_bank_no_mixer_or_no_rules_is_told_when_the_router_is_made():
    mixer = cues.Mixer(RATE)
    for given, message in [
        (("my-sounds", mixer), r"bank is 'my-sounds'; .* as cues.load_bank\('my-sounds'\) returns"),
        ((mixer, ALL), "bank is .*Mixer.*; it must be a mapping of cues by name"),
        ((ALL, ALL), "mixer is .*; it must be a cues.Mixer"),
        (({"success": np.zeros(10)}, mixer), r"bank\['success'\] is ndarray; it must be a cues.Cue"),
    ]:
        with pytest.raises(StreamTypeError, match=message):
            CueRouter(*given)
    with pytest.raises(StreamTypeError, match=r"rules is \{'read_\*': 'agent'\}; it must be stream.CueRules"):
        CueRouter(ALL, mixer, rules={"read_*": "agent"})


@pytest.mark.parametrize("event", ["tool_call", None, {"type": "ToolCallStart"}, ToolCallStart], ids=repr)
def test_what_is_no_event_is_told(event):
    with pytest.raises(StreamTypeError, match=r"it must be an event, as stream.read yields them"):
        Pipeline().router.handle(event)


def test_events_without_a_cue_pass():
    assert Pipeline().handle(Usage(), EmptyToolCalls(), ReasoningDelta("hm"), AskedAgain(2, "fallback")) == []


def test_only_cues_that_are_known_can_be_switched():
    router = Pipeline(bank("error", "chime")).router
    for switch in (router.mute, router.unmute):
        with pytest.raises(StreamValueError, match=r"no cue is named 'workin'; .*; did you mean 'working'"):
            switch("workin")
        with pytest.raises(StreamTypeError, match="names are given one by one"):
            switch(["working"])
        switch("working", "chime", "motif:read_file")
