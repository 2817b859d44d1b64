"""Every scenario, over HTTP, on each endpoint that it has: what its script says is what is read."""

import json

import pytest

from stream.events import StreamFailed, ToolCallEnd, ToolCallStart
from stream.replay.scenarios import names, scenario
from tests.support.model_server import TOOLS, chat

PROGRAMS = ("fork-", "ollama-", "vllm-", "llama-server-", "litellm-", "openai-")
CASES = [(name, api) for name in names() for api in scenario(name).endpoints]


RAW = '{"name"'


def expected_calls(steps):
    """The calls of a script; whole arguments are values, text is what a cut call has got so far."""
    written = [json.loads(step[1]) for step in steps if step[0] == "say" and step[1].startswith(RAW)]
    raw = [(call["name"], call["arguments"]) for call in written]
    return raw + [(step[1], step[2]) for step in steps if step[0] == "call" and not isinstance(step[2], str)]


def expected_text(steps):
    said = [step[1] for step in steps if step[0] == "say" and not step[1].startswith(RAW)]
    return " ".join(said)


@pytest.mark.parametrize(("name", "endpoint"), CASES, ids=lambda value: value)
def test_what_the_script_says_is_what_is_read(name, endpoint):
    played = scenario(name)
    exchange = chat(name, endpoint=endpoint, tools=None if played.refuses_tools_only else TOOLS)
    if played.refusal is not None and not played.refuses_tools_only:
        assert exchange.failure.status == played.refusal["status"]
        return
    steps = played.turns[0]
    assert " ".join(exchange.text.split()).replace(". ", ".") == expected_text(steps).replace(". ", ".")
    assert exchange.calls == expected_calls(steps)
    ends_badly = any(step[0] in ("fail", "break") for step in steps) or name == "openai-no-finish"
    assert bool(exchange.of(StreamFailed)) == ends_badly
    assert len(exchange.of(ToolCallStart)) == len([end for end in exchange.of(ToolCallEnd) if end.tool_name])
