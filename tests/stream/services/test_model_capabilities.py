"""The capabilities of a model: what is known of it, and the tools and words that it is sent for that."""

import asyncio
import dataclasses
import logging

import pytest

import stream
from stream.errors import StreamValueError
from stream.services.models import CHOICES, ModelCapabilities, _table, capabilities_of, guidance, translate_tools
from tests.support.model_server import BOTH, QUESTION, READ_FILE, TOOLS, chat, says, tool


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # As document 003 has them.
        ("qwen2.5-coder:32b", {"format": "hermes", "max_tools": 64, "prompt": "hermes", "multi_turn": "good"}),
        ("qwen/qwen-2.5-coder-32b-instruct", {"family": "qwen2.5-coder", "format": "hermes"}),  # OpenRouter
        ("mistral:latest", {"format": "openai", "max_tools": 128, "parallel": True, "multi_turn": "excellent"}),
        ("mistral-nemo", {"family": "mistral"}),
        ("codestral:22b", {"family": "mistral"}),
        ("deepseek-chat", {"format": "openai", "max_tools": 128, "multi_turn": "poor"}),
        ("deepseek-reasoner", {"tools": True, "reasoning": True, "multi_turn": "poor"}),
        ("deepseek-r1:671b", {"tools": True, "reasoning": True, "dialect": "deepseek_v3"}),
        ("deepseek-ai/DeepSeek-R1-0528", {"tools": True, "reasoning": True}),
        ("deepseek-r1:8b", {"tools": False, "reasoning": True}),  # Ollama has no template for tools for it
        ("kimi-k2:1t-cloud", {"format": "openai", "max_tools": 64, "prompt": "agentic", "multi_turn": "excellent"}),
        # The families of the workstation's fork.
        ("ministral-3:14b", {"format": "custom", "dialect": "mistral_new"}),
        ("gpt-oss:20b", {"format": "custom", "dialect": "harmony", "reasoning": True, "parallel": False}),
        ("qwen3-coder-tools", {"format": "custom", "dialect": "qwen3_coder_xml"}),
        ("hf.co/unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", {"family": "qwen3-coder"}),
        ("qwen3:0.6b", {"max_tools": 8}),
        ("gemma3:4b", {"tools": False}),
        ("somebody/unheard-of:7b", {"family": "unknown", "tools": True, "max_tools": 32, "source": "default"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_table_knows_what_a_model_can_do(model, expected):
    known = dataclasses.asdict(capabilities_of(model))
    assert {key: known[key] for key in expected} == expected


def test_every_line_of_the_table_is_whole_and_within_what_is_allowed():
    for entry in _table()["family"]:
        known = capabilities_of(entry["patterns"][0].replace("*", ""))
        assert known.source == "table", entry["name"]
        assert all(getattr(known, key) in allowed for key, allowed in CHOICES.items())
        assert known.min_ollama.count(".") == 2


def test_an_override_file_wins_key_by_key(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text('[[family]]\nname = "mine"\npatterns = ["mistral*", "house-*"]\nmax_tools = 3\n')
    changed = capabilities_of("mistral:7b", file)
    assert (changed.max_tools, changed.multi_turn, changed.source) == (3, "excellent", "override")
    assert capabilities_of("house-model", file).family == "mine"
    assert capabilities_of("qwen3", file).source == "table"


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "mistral:latest", "kimi-k2:1t-cloud", "GPT-4o"])
def test_a_models_own_entry_as_it_is_suggested_overrides_the_table(model, tmp_path):
    file = tmp_path / "models.toml"
    file.write_text(dataclasses.replace(capabilities_of(model), max_tools=3).toml(model))
    assert stream.connect("http://m.invalid", model, overrides=file).capabilities.max_tools == 3
    assert capabilities_of("somebody/else", file).source == "default"


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '[[family]]\nname = "x"\n',
        '[[family]]\npatterns=["x"]\nmaxtools=1\n',
        '[[family]]\npatterns=["x"]\nformat="xml"\n',
        '[[family]]\npatterns=["x"]\nmin_ollama="new"\n',
        "family = 3",
        "family = [3]",
        "[[family]]\npatterns = [3]",
        f"family = {'[' * 9999}",
    ],
    ids=["no toml", "no patterns", "unknown key", "unknown value", "no version", "number", "numbers", "texts", "deep"],
)
def test_an_override_file_that_is_wrong_is_refused(tmp_path, text):
    file = tmp_path / "models.toml"
    file.write_text(text)
    with pytest.raises(StreamValueError):
        capabilities_of("m", file)


def test_a_name_that_no_host_can_have_says_nothing_of_its_models():
    async def go():
        async with stream.connect("http://xn--ß.invalid", "m") as connection:
            return await connection.learn()

    assert asyncio.run(go()) == capabilities_of("m")


def learn(pages, model, endpoint="chat", capabilities=None):
    async def go():
        from stream.replay.server import ReplayServer

        async with (
            ReplayServer(says([["say", "x"]], pages=pages)) as server,
            stream.connect(server.base_url, model, api=endpoint, capabilities=capabilities) as connection,
        ):
            return await connection.learn()

    return asyncio.run(go())


@BOTH
def test_a_server_that_can_tell_is_asked_and_believed(endpoint):
    show = {"/api/show": {"capabilities": ["completion"], "details": {"family": "qwen3"}}}
    assert learn(show, "qwen3:8b", endpoint).tools is False
    show = {"/api/show": {"capabilities": ["completion", "tools", "thinking"], "details": {"family": "qwen3"}}}
    learned = learn(show, "my-own-assistant", endpoint)
    assert (learned.family, learned.format, learned.tools, learned.reasoning) == ("qwen3", "hermes", True, True)
    assert learned.source == "server"
    own = ModelCapabilities(max_tools=2, parallel=False, prompt="agentic")
    learned = learn(show, "my-own-assistant", endpoint, own)
    assert learned == dataclasses.replace(own, reasoning=True, source="server")


@BOTH
@pytest.mark.parametrize(
    ("version", "reasoning"),
    [("0.9.0", False), ("0.13.1", False), ("0.0.0", False), (None, False), ("0.8.0", True), ("0.6.4", True)],
)
def test_a_server_that_does_not_list_thinking_denies_it_unless_it_is_too_old_to_list_it(endpoint, version, reasoning):
    shown = {"/api/show": {"capabilities": ["completion", "tools"], "details": {"family": "qwen3"}}}
    pages = shown if version is None else {**shown, "/api/version": {"version": version}}
    assert learn(pages, "qwen3:8b", endpoint).reasoning is reasoning
    assert learn(pages, "llama3.2", endpoint).reasoning is False


@pytest.mark.parametrize("pages", [{}, {"/api/show": []}, {"/api/show": {"capabilities": "all"}}])
def test_a_server_that_cannot_tell_leaves_the_table_as_it_is(pages):
    assert learn(pages, "qwen3:8b") == capabilities_of("qwen3:8b")


def show_and(version):
    shown = {"/api/show": {"capabilities": ["completion", "tools"], "details": {"family": "mistral3"}}}
    return shown if version is None else {**shown, "/api/version": {"version": version}}


@BOTH
@pytest.mark.parametrize(
    ("version", "model", "warned"),
    [
        ("0.13.0", "ministral-3:14b", True),
        ("0.13.0-rc2", "ministral-3:14b", True),
        ("0.7.1", "mistral:latest", True),
        ("0.13.1", "ministral-3:14b", False),
        ("0.13.1-rc0", "ministral-3:14b", False),
        ("1.0.0", "ministral-3:14b", False),
        ("0.9.0", "mistral:latest", False),
        ("0.0.0", "ministral-3:14b", False),
        ("of my own", "ministral-3:14b", False),
        (7, "ministral-3:14b", False),
        (None, "ministral-3:14b", False),
    ],
)
def test_a_server_that_is_too_old_for_the_models_calls_is_told_in_one_line(caplog, endpoint, version, model, warned):
    with caplog.at_level(logging.INFO, logger="stream"):
        learn(show_and(version), model, endpoint)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    known = capabilities_of(model)
    said = (
        f"Ollama {str(version).split('-')[0]} is older than {known.min_ollama}, the first that parses the calls of"
        f" {model} while it streams; they may come as text ({known.dialect}), which is read here"
    )
    assert lines == ([said] if warned else [])


# Tools translated


def test_a_model_without_tools_is_sent_none_and_that_is_reported():
    exchange = chat("ollama-plain-text", model="gemma3:4b", tools=TOOLS)
    assert "tools" not in exchange.bodies[0]
    assert exchange.events[0] == stream.ToolsLeftOut(("list_directory", "read_file"), "untrained")
    assert exchange.text == "It is sunny in Paris."


@BOTH
def test_tools_past_the_models_maximum_are_cut_and_that_is_reported(endpoint):
    many = [tool(f"tool_{place}", path={"type": "string"}) for place in range(31)]
    exchange = chat("ollama-plain-text", endpoint=endpoint, model="qwen3:0.6b", tools=many)
    assert [entry["function"]["name"] for entry in exchange.bodies[0]["tools"]] == [f"tool_{n}" for n in range(8)]
    (warning,) = exchange.of(stream.ToolsLeftOut)
    assert (len(warning.tool_names), warning.reason) == (23, "maximum")


def test_hermes_models_are_told_when_to_use_a_tool_and_others_get_the_description_as_it_is():
    plain, _ = translate_tools([READ_FILE], capabilities_of("mistral"))
    hermes, _ = translate_tools([READ_FILE], capabilities_of("qwen2.5-coder"))
    assert plain[0]["function"]["description"] == "Does read_file."
    assert hermes[0]["function"]["description"].startswith("Does read_file.\n\nUse this tool")
    assert plain[0]["function"]["parameters"] == hermes[0]["function"]["parameters"]


# Guidance


@pytest.mark.parametrize(
    ("model", "words"),
    [("mistral", "Available functions:"), ("kimi-k2", "sub-tasks"), ("qwen2.5-coder:32b", "Think step by step")],
    ids=["standard", "agentic", "hermes"],
)
def test_guidance_is_worded_for_the_model_and_lists_the_tools(model, words):
    text = guidance(TOOLS, capabilities_of(model))
    assert words in text
    assert "- list_directory: Does list_directory." in text


def test_without_tools_or_for_a_model_that_knows_none_there_is_no_guidance():
    assert guidance([], capabilities_of("mistral")) == ""
    assert guidance(TOOLS, capabilities_of("gemma3")) == ""


@BOTH
def test_guidance_is_added_to_the_system_prompt_only_where_it_is_asked_for(endpoint):
    asked = [{"role": "system", "content": "You are kind."}, *QUESTION]

    def system(**options):
        exchange = chat("ollama-plain-text", endpoint=endpoint, messages=asked, tools=TOOLS, options=options)
        return exchange.bodies[0]["messages"][0]["content"]

    assert system() == "You are kind."
    assert system(guide=True).startswith("You are kind.\n\nAvailable tools:")
    bare = chat("ollama-plain-text", endpoint=endpoint, tools=TOOLS, options={"guide": True}).bodies[0]["messages"]
    assert [message["role"] for message in bare] == ["system", "user"]
