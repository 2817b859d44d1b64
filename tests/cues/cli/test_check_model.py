"""`cues check-model` against scripted servers: what came is what it says."""

import asyncio
import json
import tomllib

import pytest
from click.testing import CliRunner

import stream
from cues.cli.check_model import command
from stream.replay.scenarios import Scenario, scenario
from stream.replay.server import ReplayServer
from stream.services.models import capabilities_of
from stream.services.probe import Observer, probe
from tests.support.model_server import BOTH

WEATHER = [["call", "get_weather", {"city": "Oslo"}], ["call", "get_weather", {"city": "Lisbon"}]]


def says(*turns, **options):
    return Scenario(name="own", about="a test's own", turns=turns, without_tools=[["say", "Hello!"]], **options)


def check(server, endpoint="chat", model="some-model"):
    async def go():
        served = scenario(server) if isinstance(server, str) else server
        observer = Observer()
        async with (
            ReplayServer(served, tokens_per_s=None) as running,
            stream.connect(running.base_url, model, api=endpoint, tap=observer.tap) as connection,
        ):
            await connection.learn()
            return await probe(connection, observer)

    return asyncio.run(asyncio.wait_for(go(), 20.0))


@BOTH
def test_a_model_that_calls_tools_passes(endpoint):
    report = check("ollama-weather", endpoint)
    assert report.passed
    assert (report.api, report.form, report.calls, report.duplicates) == (endpoint, "structured", 2, 0)
    assert report.ids == "present"
    assert report.order[:2] == ["ToolCallStart", "ToolCallEnd"]
    assert 0.0 < report.name_ms <= report.call_ms <= report.text_ms
    assert report.plain_answered
    assert report.failure is None


OSLO = '{"city": "Oslo"}'


@BOTH
@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>', "hermes"),
        ('[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}', "mistral_new"),
        ('[THINK]Hm.[/THINK][TOOL_CALLS]get_weather{"city": "Oslo"}', "mistral_new"),
        ('[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]', "mistral_old"),
        (f"<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{OSLO}<|tool_call_end|>", "kimi_k2"),
        (
            f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{OSLO}\n```<｜tool▁call▁end｜>",
            "deepseek_v3",
        ),
        (f"I look.<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{OSLO}<｜tool▁call▁end｜>", "deepseek_v31"),
        ('{"name": "get_weather", "arguments": {"city": "Oslo"}}', "json"),
        ('[get_weather(city="Oslo")]', "pythonic"),
    ],
    ids=[
        "hermes",
        "mistral",
        "mistral thinks",
        "old mistral",
        "kimi",
        "deepseek 3",
        "deepseek 3.1",
        "json",
        "pythonic",
    ],
)
def test_raw_calls_are_told_from_structured_ones_and_their_dialect_is_named(endpoint, text, dialect):
    report = check(says([["say", text]], [["say", "It rains."]], endpoints=(endpoint,)), endpoint)
    ids = "present" if dialect == "kimi_k2" else "missing"
    assert (report.form, report.dialect, report.calls, report.ids) == ("raw", dialect, 1, ids)
    assert report.passed


def test_a_server_that_runs_the_tool_and_reports_no_result_passes_by_its_text():
    report = check(says([*WEATHER, ["say", "It rains in Oslo."]]))
    assert (report.passed, report.answered) == (True, True)
    assert "ToolResult" not in report.order


@BOTH
def test_duplicates_are_counted_and_are_no_calls(endpoint):
    from stream.replay.behavior import Behavior

    report = check(says(WEATHER, [["say", "It rains."]], behavior=Behavior(duplicate=True)), endpoint)
    assert (report.calls, report.duplicates) == (2, 2)


@pytest.mark.parametrize(
    ("server", "field", "value", "fault"),
    [
        (says([["say", "I think it rains."]]), "form", "none", "no call came"),
        (
            says([["call", "weather", {"city": "Oslo"}]], [["say", "Hm."]]),
            "invalid",
            {"unknown_tool": 1},
            "no call was valid (unknown_tool)",
        ),
        (says(WEATHER, [["finish", "stop"]]), "answered", False, "no answer followed the results"),
        (says(WEATHER, [["break"]]), "answered", False, "peer closed connection"),
        ("ollama-refuses-tools", "tool_refused", True, "it was offered no tools"),
        (says([*WEATHER, ["break"]]), "answered", False, "peer closed connection"),
    ],
    ids=["no call", "unknown tool", "no answer", "cut", "refused", "cut after the call"],
)
def test_a_model_that_does_not_work_fails_and_the_report_says_in_what(server, field, value, fault):
    report = check(server)
    assert not report.passed
    assert fault in report.faults[0]
    assert getattr(report, field) == value


def test_a_plain_question_that_is_answered_with_a_call_fails():
    report = check(Scenario(name="own", about="calls always", turns=[WEATHER, [["say", "It rains."]]]))
    assert report.plain_calls == 2
    assert report.faults == ("it called a tool where none was offered",)
    assert not report.passed


def test_the_suggestion_is_an_entry_for_a_file_of_capabilities(tmp_path):
    report = check(says([["say", '[get_weather(city="Oslo")]']], [["say", "It rains."]]), model="house-model")
    file = tmp_path / "models.toml"
    file.write_text(report.suggestion)
    known = capabilities_of("house-model", file)
    assert (known.source, known.tools, known.dialect, known.parallel) == ("override", True, "pythonic", False)
    assert tomllib.loads(report.suggestion)["family"][0]["patterns"] == ["house-model"]


def run(server, *arguments):
    """The command in a thread of its own, as it runs a loop of its own."""

    async def go():
        async with ReplayServer(scenario(server) if isinstance(server, str) else server, tokens_per_s=None) as running:
            line = ["--base-url", running.base_url, "--model", "qwen3:8b", *arguments]
            return await asyncio.to_thread(CliRunner().invoke, command, line)

    return asyncio.run(go())


def test_the_command_prints_what_came_and_an_entry_for_the_table():
    result = run("ollama-weather")
    assert result.exit_code == 0, result.output
    assert "tool calls work" in result.output
    assert "structured, parsed by the server" in result.output
    assert "[[family]]" in result.output


@pytest.mark.parametrize(("version", "told"), [("0.7.1", True), ("0.8.0", False)])
def test_the_command_says_that_the_server_is_too_old_for_the_models_calls(version, told):
    pages = {"/api/show": {"capabilities": ["tools"]}, "/api/version": {"version": version}}
    server = says(WEATHER, [["say", "It rains."]], pages=pages)
    result = run(server)
    assert result.exit_code == 0, result.output
    said = "Ollama 0.7.1 is older than 0.8.0, the first that parses the calls of qwen3:8b while it streams"
    assert (said in result.output) is told
    assert (said in (json.loads(run(server, "--json").stdout)["server_too_old"] or "")) is told


def test_the_command_prints_json_for_programs():
    result = run("ollama-weather", "--json", "--api", "ollama")
    report = json.loads(result.stdout)
    assert report["passed"] is True
    assert report["api"] == "ollama"


def test_the_command_ends_with_1_where_the_check_fails():
    result = run("ollama-plain-text")
    assert result.exit_code == 1
    assert result.output.startswith("qwen3:8b (chat): the check failed: no call came\n")


def test_the_command_ends_with_1_where_there_is_no_server():
    result = CliRunner().invoke(command, ["--base-url", "http://127.0.0.1:9", "--model", "m"])
    assert result.exit_code == 1
    assert result.output.startswith("m (chat): the check failed: cannot reach http://127.0.0.1:9")
    assert result.output.endswith("; is the server running?\n")
    assert result.output.count("\n") == 1


def test_a_server_elsewhere_that_cannot_be_reached_is_not_the_users_to_start():
    result = CliRunner().invoke(command, ["--base-url", "http://nowhere.invalid", "--model", "m"])
    assert "cannot reach http://nowhere.invalid/v1" in result.output
    assert "is the server running?" not in result.output


def test_json_of_a_server_that_is_not_there_holds_nothing_to_save():
    result = CliRunner().invoke(command, ["--base-url", "http://127.0.0.1:9", "--model", "m", "--json"])
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["suggestion"] is None
    assert "[[family]]" not in result.stdout


def test_without_options_the_variables_name_the_server_and_the_model(monkeypatch):
    monkeypatch.setenv("OLLAMA_LOCAL_BASE", "http://127.0.0.1:9")
    monkeypatch.setenv("ACTOR_MODEL", "qwen3:8b")
    result = CliRunner().invoke(command, [])
    assert result.output.startswith("qwen3:8b (chat): the check failed: cannot reach http://127.0.0.1:9/")
