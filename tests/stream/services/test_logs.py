"""Logs: warnings with names and counts, arguments as keys and types, and never a value."""

import asyncio
import json
import logging

import pytest

import stream
from stream.redaction import logged_arguments, logged_list, logged_name
from tests.support.all_logs import all_logs
from tests.support.model_server import BOTH, TOOLS, Twice, chat, running, says, tool

RUNNER, VALIDATION = "stream.services.runner", "stream.services.validation"
CONNECTION = "stream.services.connection"

# Short, under harmless keys, of every type, and in the middle of other values.
VALUES = {
    "path": "hunter2-TOPSECRET",
    "n": 860417223,
    "x": 77.031415,
    "rows": [{"id": "tok"}],
    "ok": True,
    "none": None,
}
SECRETS = ("hunter2", "TOPSECRET", "860417223", "77.031415", "'tok'", '"tok"', "res-S3CRET", "said-S3CRET")


def failing(**_):
    raise RuntimeError("res-S3CRET")


CASES = {
    "a tool that returns": (says([["call", "save", VALUES]], [["say", "said-S3CRET"]]), lambda **_: "res-S3CRET"),
    "a tool that fails": (says([["call", "save", VALUES]], [["say", "said-S3CRET"]]), failing),
    "invalid calls": (
        says([["call", "sav", VALUES], ["call", "save", {**VALUES, "n": "hunter2"}]], [["say", "said-S3CRET"]]),
        failing,
    ),
    "a connection that breaks": (says([["call", "save", VALUES], ["break"]]), failing),
    "a server that fails": (says([["call", "save", VALUES], ["fail", "res-S3CRET in hunter2"]]), failing),
    "a request that is refused": (
        says([], refusal={"status": 500, "body": json.dumps({"error": f"res-S3CRET: {VALUES}"})}),
        failing,
    ),
    "a server that runs the tool": (
        says([["call", "save", VALUES], ["results", ["res-S3CRET"]], ["say", "said-S3CRET"]]),
        failing,
    ),
    "an empty answer": (says([["announce"]], without_tools=[["say", "said-S3CRET"]]), failing),
}


def listening(wrap):
    """`wrap`, in an event loop that logs everything it does, as in debug mode."""

    def wrapped(connection):
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        loop.slow_callback_duration = 0.0
        return wrap(connection)

    return wrapped


@BOTH
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync tool", "async tool"])
@pytest.mark.parametrize("case", CASES)
def test_no_value_reaches_any_log_at_any_level(endpoint, case, asynchronous):
    server, function = CASES[case]

    async def later(**given):
        await asyncio.sleep(0)
        return function(**given)

    save = tool("save", later if asynchronous else function, n={"type": "integer"})
    asked = [{"role": "user", "content": "said-S3CRET"}, {"role": "user", "content": json.dumps(VALUES)}]
    with all_logs() as heard:
        chat(
            server,
            endpoint=endpoint,
            messages=asked,
            wrap=listening(lambda c: stream.ToolRunner(stream.services.Recovery(c), [save])),
        )
    names = {record.name.partition(".")[0] for record in heard.records}
    assert "asyncio" in names, "the loop's debug mode is on"
    assert any(name.startswith("httpcore") for name in names), "the HTTP client is heard"
    assert [line for line in heard.lines if any(secret in line for secret in SECRETS)] == []


@BOTH
def test_the_arguments_of_a_call_that_runs_are_logged_as_keys_and_types(endpoint):
    server = says([["call", "save", VALUES]], [["say", "Done."]])
    with all_logs() as heard:
        running(server, [tool("save", lambda **_: "four")], endpoint)
    types = '{"path": "str", "n": "int", "x": "float", "rows": [{"id": "str"}], "ok": "bool", "none": "NoneType"}'
    assert heard.of(RUNNER, logging.DEBUG) == [f"running 'save' with {types}", "'save' is done, 4 characters"]


def test_what_a_model_writes_has_a_bounded_length_in_a_log():
    wide = json.dumps({f"{n}" * 50: {f"{m}" * 50: [m, str(m)] for m in range(100)} for n in range(100)})
    assert len(logged_arguments(wide)) < 500
    assert logged_name("n" * 10_000) == repr("n" * 64)
    assert logged_list(str(n) for n in range(1000)).endswith("7 and 992 more")


INVENTED = "list\n\x1b[31mfiles" + "!" * 100


@BOTH
def test_the_invalid_calls_of_an_answer_are_one_warning_with_model_count_and_names(endpoint):
    calls = [
        ["call", INVENTED, VALUES],
        ["call", "read_file", {"file": "hunter2"}],
        ["call", "read_file", {"path": "a"}],
    ]
    with all_logs() as heard:
        running(says(calls, [["say", "Sorry."]]), TOOLS, endpoint)
    assert heard.of(VALIDATION, logging.WARNING) == [
        "Filtered 2 invalid tool calls from qwen3:8b: 'list...' (unknown_tool), 'read_file' (schema)"
    ]
    assert not any("\n" in record.getMessage() for record in heard.records if record.name.startswith("stream."))


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("ollama-refuses-tools", "m", "2 tools not offered to m (the server refused them)"),
        ("ollama-plain-text", "gemma3:4b", "2 tools not offered to gemma3:4b (the model calls no tools)"),
    ],
    ids=["refused", "untrained"],
)
@BOTH
def test_tools_that_are_left_out_are_one_warning_for_a_conversation(endpoint, name, model, message):
    with all_logs() as heard:
        exchange = chat(name, endpoint=endpoint, model=model, tools=TOOLS, wrap=Twice)
    assert len(exchange.of(stream.ToolsLeftOut)) == 2
    assert heard.of(CONNECTION, logging.WARNING) == [f"{message}: 'list_directory', 'read_file'"]


@BOTH
def test_an_answer_in_order_warns_of_nothing(endpoint):
    with all_logs() as heard:
        running("ollama-two-calls", TOOLS, endpoint)
        running("fork-discover", TOOLS, endpoint)
    assert [r.getMessage() for r in heard.records if r.levelno >= logging.WARNING] == []
