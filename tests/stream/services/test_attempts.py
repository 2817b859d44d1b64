"""Attempts counted and logged by position, results by model and tool."""

import dataclasses
import logging

import pytest

import stream
from stream.events import ToolResult
from tests.support.model_server import BOTH, LIST_DIRECTORY, READ_FILE, TOOLS, chat, recovering, running, says


def test_first_questions_and_retries_are_counted_apart_and_logged(caplog):
    attempts = stream.services.Attempts()
    with caplog.at_level(logging.INFO, logger="stream"):
        for name in ("ollama-plain-text", "ollama-empty-tool-calls", "ollama-plain-text", "ollama-silent"):
            recovering(name, attempts=attempts)
    for line in ("First query: success", "First query: failure", "Retry 1: success", "Retry 1: failure"):
        assert line in caplog.text
    assert attempts.rate("qwen3:8b", "first_query") == attempts.rate("qwen3:8b", "retry") == 0.5


def test_a_greeting_before_the_first_question_makes_it_no_later_one():
    attempts = stream.services.Attempts()
    greeting, question = {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Who are you?"}
    for messages in ([greeting, question], [greeting, question, question]):
        recovering("ollama-plain-text", attempts=attempts, messages=messages)
    found = attempts.snapshot()["qwen3:8b"]
    assert (found["first_query"]["success"], found["later_query"]["success"]) == (1, 1)


def test_a_round_that_brings_results_back_is_no_question_of_its_own():
    attempts = stream.services.Attempts()
    exchange = chat(
        "ollama-tool-call", wrap=lambda c: stream.ToolRunner(stream.services.Recovery(c, attempts=attempts), TOOLS)
    )
    assert len(exchange.of(ToolResult)) == 1
    assert attempts.snapshot()["qwen3:8b"]["first_query"]["success"] == 1
    assert attempts.snapshot()["qwen3:8b"]["later_query"]["success"] == 0


def test_the_counts_are_text_for_prometheus():
    attempts = stream.services.Attempts()
    attempts.record('a "model"', "first_query", ok=True, seconds=0.5)
    attempts.empty('a "model"')
    text = attempts.prometheus()
    assert 'cue_engine_attempts_total{model="a \\"model\\"",position="first_query",outcome="success"} 1' in text
    assert 'cue_engine_attempt_seconds_total{model="a \\"model\\"",position="first_query"} 0.5' in text
    assert 'cue_engine_empty_answers_total{model="a \\"model\\""} 1' in text
    assert text.endswith("\n")
    assert all(line.startswith(("#", "cue_engine_")) for line in text.splitlines())


@BOTH
def test_results_are_counted_by_model_and_tool_with_their_success_rate(endpoint):
    attempts = stream.services.Attempts()
    outcomes = iter(["fine", OSError("gone"), "fine"])

    def read(**_):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    tools = [LIST_DIRECTORY, dataclasses.replace(READ_FILE, function=read)]
    server = says([["call", "read_file", {"path": "a"}], ["call", "list_directory", {"path": "."}]], [["say", "Done."]])
    for _ in range(3):
        running(server, tools, endpoint, attempts=attempts)
    assert attempts.snapshot()["qwen3:8b"]["tools"] == {
        "list_directory": {"success": 3, "failure": 0, "rate": 1.0},
        "read_file": {"success": 2, "failure": 1, "rate": pytest.approx(2 / 3)},
    }
    metrics = attempts.prometheus()
    assert 'cue_engine_tool_results_total{model="qwen3:8b",tool="read_file",outcome="success"} 2' in metrics
    assert 'cue_engine_tool_results_total{model="qwen3:8b",tool="read_file",outcome="failure"} 1' in metrics


def test_results_of_the_server_itself_and_of_calls_that_could_not_run_are_counted_too():
    attempts = stream.services.Attempts()
    wrap = {"wrap": lambda c: stream.ToolRunner(c, TOOLS, attempts=attempts)}
    chat("fork-tool-call", endpoint="ollama", model="ministral-3:14b", **wrap)
    chat("ollama-bad-arguments", model="mistral", **wrap)
    chat(says([["call", "read_file", {"path": "a"}]], [["call", "read_file", {"path": "a"}]]), model="poor", **wrap)
    counted = {model: counts["tools"] for model, counts in attempts.snapshot().items()}
    assert counted["ministral-3:14b"]["list_directory"]["success"] == 1
    assert counted["mistral"] == {"read_file": {"success": 0, "failure": 1, "rate": 0.0}}
    assert counted["poor"]["read_file"] == {"success": 5, "failure": 1, "rate": pytest.approx(5 / 6)}


def test_a_result_of_the_fallback_is_counted_once_where_recovery_and_runner_share_the_counters():
    attempts = stream.services.Attempts()
    fallback = stream.services.Fallback(load_tools=lambda: TOOLS)

    def wrap(connection):
        recovery = stream.services.Recovery(connection, fallback=fallback, attempts=attempts)
        return stream.ToolRunner(stream.services.ToolTiers(recovery), TOOLS, attempts=attempts)

    server = says([["call", "list_directory", {"path": "."}]], [["say", "Done."]], without_tools=[])
    chat(server, messages=[{"role": "user", "content": "Who wrote Faust?"}], wrap=wrap)
    assert attempts.snapshot()["qwen3:8b"]["tools"] == {"list_directory": {"success": 1, "failure": 0, "rate": 1.0}}


@pytest.mark.parametrize("end", [["fail", {"message": "boom", "code": 400}], ["announce"]], ids=["failed", "empty"])
def test_a_question_whose_round_after_the_tool_brings_no_answer_counts_a_failure(caplog, end):
    attempts = stream.services.Attempts()

    def wrap(connection):
        return stream.ToolRunner(stream.services.Recovery(connection, retry=False, attempts=attempts), TOOLS)

    with caplog.at_level(logging.INFO, logger="stream"):
        chat(says([["call", "read_file", {"path": "a"}]], [end]), wrap=wrap)
    assert attempts.snapshot()["qwen3:8b"]["first_query"]["failure"] == 1
    assert "First query: failure" in caplog.text
