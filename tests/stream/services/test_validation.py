"""Calls checked: which are invalid, and that they are reported and not run."""

import asyncio
import dataclasses
import json

import pytest

import stream
from stream.errors import StreamValueError
from stream.events import ToolCallEnd, ToolResult
from tests.support.model_server import BOTH, READ_FILE, TOOLS, running, says, tool, validated
from tests.support.repairing import answers, http_answer
from tests.support.routing import ALL, Pipeline, bank


def validator(strictness="on", **properties):
    return stream.services.Validator([tool("set_timer", **properties), READ_FILE], strictness=strictness, model="m")


def call(name="set_timer", arguments="{}", status="ok"):
    return ToolCallEnd(name, "c1", 0, arguments, status)


MINUTES = {"minutes": {"type": "integer", "minimum": 1}}


@pytest.mark.parametrize(
    ("given", "reason", "says"),
    [
        (call("set_timers", '{"minutes": 5}'), "unknown_tool", "did you mean set_timer"),
        (call("Set-Timer", '{"minutes": 5}'), "unknown_tool", "did you mean set_timer"),
        (call("fly_to_the_moon", "{}"), "unknown_tool", "there is set_timer, read_file"),
        (call(arguments='{"minutes": '), "not_json", "not a JSON object"),
        (call(arguments="[5]"), "not_json", "not a JSON object"),
        (call(arguments="five", status="malformed"), "not_json", "not a JSON object"),
        (call("", status="malformed"), "not_json", "no name"),
        (call(arguments="{}"), "schema", "lacks minutes"),
        (call(arguments='{"minutes": "soon"}'), "schema", "minutes must satisfy type"),
        (call(arguments='{"minutes": 0}'), "schema", "minutes must satisfy minimum: 1"),
    ],
    ids=["near name", "other case", "far name", "cut", "array", "malformed", "nameless", "missing", "type", "range"],
)
def test_a_call_that_cannot_be_run_is_reported_with_its_reason(given, reason, says):
    problem = validator(**MINUTES).check(given)
    assert problem.reason == reason
    assert says in problem.message


def test_a_problem_never_repeats_the_value_that_was_wrong():
    problem = validator(code={"type": "string", "pattern": "^[0-9]+$"}).check(call(arguments='{"code": "my password"}'))
    assert problem.reason == "schema"
    assert "password" not in problem.message


@pytest.mark.parametrize("ref", ["#/$defs/nothing", "#/type", "other.json", "file:///etc/hostname", "{}/schema.json"])
def test_a_schema_that_refers_outside_of_itself_fetches_nothing_and_says_so(ref):
    async def go():
        async with answers(http_answer(b'{"type": "string"}', kind="application/json")) as (url, requests):
            checker = validator(minutes={"$ref": ref.format(url)})
            problem = await asyncio.to_thread(checker.check, call(arguments='{"minutes": 5}'))
            return problem.message, requests

    message, requests = asyncio.run(go())
    assert "refers to something outside of it" in message
    assert requests == []


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ("[1, true, 0, false, null, []]", True),
        ("[1, 1.0]", False),
        ('[{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]', False),
    ],
)
def test_items_are_unique_by_value(items, unique):
    problem = validator(minutes={"uniqueItems": True}).check(call(arguments=f'{{"minutes": {items}}}'))
    assert (problem is None) == unique


def test_text_that_spells_a_value_is_taken_for_it_unless_it_is_strict():
    given = call(arguments='{"minutes": "5"}')
    lenient, strict = validator(**MINUTES), validator("strict", **MINUTES)
    assert lenient.check(given) is None
    assert lenient.arguments(given) == {"minutes": 5}
    assert strict.check(given).reason == "schema"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),  # `int | None`
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "None", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", "null"),
        ({"$ref": "#/$defs/Span"}, '{"from": 1}', {"from": 1}),  # a pydantic model
        ({"enum": [5, 10]}, "10", 10),
        ({"type": "boolean"}, "True", True),
        ({"type": "string", "pattern": "^0[0-9]$"}, "05", "05"),
    ],
    ids=["optional", "none", "text or none", "reference", "enum", "boolean", "text"],
)
def test_text_is_taken_for_what_any_schema_takes(schema, text, value):
    span = {"Span": {"type": "object", "properties": {"from": {"type": "integer"}}}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": schema, "y": {}}, "$defs": span}}
    checker = stream.services.Validator([tool])
    given = ToolCallEnd("f", arguments_json=json.dumps({"x": text, "y": [text]}))
    assert checker.check(given) is None
    assert checker.arguments(given) == {"x": value, "y": [text]}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_text_that_spells_no_number_of_json_is_not_taken_for_one(text):
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}
    assert stream.services.Validator([tool]).check(ToolCallEnd("f", arguments_json=json.dumps({"x": text}))) is not None


def test_an_optional_argument_that_a_model_writes_as_text_reaches_the_tool():
    def set_timer(minutes: int | None = None) -> str:
        return f"{minutes!r} minutes"

    written = "<tool_call>\n<function=set_timer>\n<parameter=minutes>\n5\n</parameter>\n</function>\n</tool_call>"
    exchange = running(says([["say", written]], [["say", "Set."]]), [set_timer])
    assert exchange.results == [("set_timer", False, "5 minutes")]


def test_strict_takes_no_argument_that_the_schema_does_not_name():
    given = call(arguments='{"minutes": 5, "sound": "gong"}')
    assert validator(**MINUTES).check(given) is None
    assert "does not know" in validator("strict", **MINUTES).check(given).message


def test_a_pattern_that_only_javascript_reads_is_left_to_the_tool():
    checker = validator(whose={"type": "string", "pattern": r"^\p{L}+$"})
    assert checker.check(call(arguments='{"whose": "Ada"}')) is None
    assert checker.check(call(arguments="{}")).reason == "schema"


@pytest.mark.parametrize("schema", [{"type": "integr"}, {"$schema": 5}, {"$schema": [5]}], ids=str)
def test_a_schema_that_is_none_is_refused_when_the_tool_is_registered(schema):
    with pytest.raises(StreamValueError, match="the parameters of f are not a JSON Schema"):
        stream.services.Validator(
            [{"name": "f", "parameters": {"properties": {"minutes": schema}, **schema} | {"type": "object"}}]
        )


BAD_CALLS = pytest.mark.parametrize("name", ["ollama-unknown-tool", "ollama-bad-arguments"])
CHECKED = pytest.mark.parametrize("strictness", ["on", "strict"])


@BOTH
def test_an_invented_call_is_reported_in_the_stream_and_left_to_the_pipeline(endpoint):
    exchange = validated("ollama-unknown-tool", endpoint, stream.services.Validator(TOOLS))
    assert exchange.order[:3] == ["ToolCallStart", "InvalidToolCall", "ToolCallEnd"]
    (problem,) = exchange.of(stream.InvalidToolCall)
    assert (problem.tool_name, problem.suggestions[0]) == ("list_directories", "list_directory")


@BOTH
@CHECKED
@BAD_CALLS
def test_a_loop_that_runs_what_ends_ok_runs_no_invalid_call(endpoint, strictness, name):
    """The loop of the page: it looks at the status of a call's end, and at nothing else."""
    ran = validated(name, endpoint, stream.services.Validator(TOOLS, strictness=strictness)).of(ToolCallEnd)
    assert [event.status for event in ran] == ["malformed"]
    assert list(stream.complete_calls(ran)) == []
    assert list(stream.complete_calls(running(name, TOOLS, endpoint, validation=strictness).events)) == []


@BOTH
@CHECKED
@pytest.mark.parametrize("declared", [None, TOOLS], ids=["tools not known to the router", "known"])
@pytest.mark.parametrize(("name", "cue"), [("ollama-unknown-tool", "invented"), ("ollama-bad-arguments", "malformed")])
def test_an_invalid_call_sounds_as_one_error_of_its_own_kind(endpoint, strictness, declared, name, cue):
    pipeline = Pipeline(
        {**ALL, **bank("invented", "malformed")},
        tools=declared,
        rules=stream.CueRules(invented="invented", malformed="malformed"),
    )
    exchange = running(name, TOOLS, endpoint, validation=strictness)
    sounded = []
    for event in exchange.events:
        sounded += pipeline.handle(event)
        pipeline.pass_s(1.0)
    assert [one for one in sounded if one != "tool_call"] == [cue]


@BOTH
@pytest.mark.parametrize("strictness", ["on", "off"])
def test_a_call_that_cannot_be_read_tells_the_model_so_and_not_that_there_is_no_such_tool(endpoint, strictness):
    server = says([["say", '<tool_call>{"name": "read_file", "arguments": {"path": }}</tool_call>']], [["say", "Oh."]])
    exchange = running(server, TOOLS, endpoint, validation=strictness)
    ((_, is_error, content),) = exchange.results
    assert is_error
    assert "arguments" in content
    assert "JSON object" in content


@BOTH
@pytest.mark.parametrize(
    ("name", "says"), [("ollama-unknown-tool", "did you mean list_directory"), ("ollama-bad-arguments", "lacks path")]
)
def test_a_bad_call_is_not_run_and_the_model_is_told_why(endpoint, name, says):
    ran = []
    tools = [dataclasses.replace(one, function=lambda **given: ran.append(given)) for one in TOOLS]
    attempts = stream.services.Attempts()
    exchange = running(name, tools, endpoint, attempts=attempts)
    assert ran == []
    assert exchange.of(ToolResult)[0].is_error
    assert says in exchange.bodies[1]["messages"][-1]["content"]
    assert exchange.text.startswith("I was wrong")
    assert sum(attempts.snapshot()["qwen3:8b"]["invalid_calls"].values()) == 1
