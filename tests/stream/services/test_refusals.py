"""Refusals of tools and of thinking, as servers word them, on both endpoints."""

import json

import pytest

from stream.events import StreamFailed, ToolsLeftOut
from stream.replay.recording import Recording
from tests.support.model_server import BOTH, TOOLS, Twice, chat, says

EXTRA = [{"type": "extra_forbidden", "loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]
LITELLM = "litellm.UnsupportedParamsError: mistral does not support parameters: ['{}'], for model=mistral-tiny"
OPENROUTER = "No endpoints found that support the provided 'tool_choice' value."
OF_TOOLS = {
    "Ollama": (400, {"error": {"message": "registry.ollama.ai/library/gemma3:4b does not support tools"}}),
    "vLLM": (
        400,
        {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'},
    ),
    "OpenRouter": (404, {"error": {"message": "No endpoints found that support tool use.", "code": 404}}),
    "llama-server": (500, {"error": {"code": 500, "message": "tools param requires --jinja flag"}}),
    "older llama-server": (500, {"error": {"code": 500, "message": "Unsupported param: tools"}}),
    "Groq": (400, {"error": {"message": "`tool calling` is not supported with this model"}}),
    "OpenAI": (400, {"error": {"message": "Unsupported parameter: 'tools' is not supported with this model."}}),
    "FastAPI": (422, {"detail": EXTRA}),
    "LiteLLM": (400, {"error": {"message": LITELLM.format("tools")}}),
    "Mistral": (400, {"message": "Function calling is not enabled for this model", "code": "3051"}),
    "Gemini": (400, {"error": {"message": "Function calling is not enabled for models/gemma-3-27b-it"}}),
    "Together": (400, {"error": {"message": "Function calling is not supported for this model."}}),
    "OpenRouter's default choice": (404, {"error": {"message": OPENROUTER}}),
}
OF_THINKING = {
    "Ollama": (400, {"error": '"gemma3" does not support thinking'}),
    "LiteLLM": (400, {"error": {"message": LITELLM.format("reasoning_effort")}}),
}
# https://github.com/ollama/ollama/blob/main/server/routes.go, and OpenAI's models that take some efforts alone.
OF_A_VALUE = {
    "Ollama": 'think value "high" is not supported for this model',
    "OpenAI": "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
}
OF_CHOICE = {
    "OpenAI": "Unsupported value: 'tool_choice' does not support 'required' with this model.",
    "OpenRouter": OPENROUTER,
    "DeepSeek": "deepseek-reasoner does not support this tool_choice",
}
OTHERS = {
    "unknown model": (404, {"error": {"message": "model 'tools' not found, try pulling it first"}}),
    "full context": (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}),
    "wrong schema": (400, {"error": {"message": "Invalid schema for function 'f': None is not of type 'object'"}}),
    "fault in a tool": (422, {"detail": [{**EXTRA[0], "loc": ["body", "tools", 0, "function", "strict"]}]}),
    "fault in a tool, as a path": (
        400,
        {"error": {"message": "Extra inputs are not permitted, field: 'tools[0].function.strict', value: False"}},
    ),
    "fault in a tool, as a path without a number": (
        400,
        {"error": {"message": "Unknown parameter: 'tools.function.strict'."}},
    ),
    "gateway": (502, {"error": {"message": "does not support tools"}}),
}


class Refusing:
    """A server that refuses the requests that have one of these fields."""

    as_recorded, pages = False, {}

    def __init__(self, status, body, names):
        self.status, self.body, self.names = status, body, names

    def answer(self, path, request):
        if self.names & set(request):
            return Recording(name="own", kind="json", body=json.dumps(self.body).encode(), status=self.status)
        return says([["say", "Hello."]]).answer(path, request)


def refusing(status, body, **options):
    return says([["say", "Hello."]], refusal={"status": status, "body": json.dumps(body)}, **options)


@BOTH
@pytest.mark.parametrize("server", OF_TOOLS)
def test_a_server_that_refuses_tools_is_asked_again_without_them(endpoint, server):
    exchange = chat(refusing(*OF_TOOLS[server], refuses_tools_only=True), endpoint=endpoint, tools=TOOLS)
    assert exchange.of(ToolsLeftOut) == [ToolsLeftOut(("list_directory", "read_file"), "refused")]
    assert exchange.text == "Hello."
    assert "tools" not in exchange.bodies[-1]


@BOTH
@pytest.mark.parametrize("fault", OTHERS)
def test_another_fault_is_no_refusal_of_tools(endpoint, fault):
    exchange = chat(refusing(*OTHERS[fault]), endpoint=endpoint, tools=TOOLS)
    assert [type(event) for event in exchange.events] == [StreamFailed]


@BOTH
@pytest.mark.parametrize("server", OF_THINKING)
@pytest.mark.parametrize("think", ["high", False])
def test_a_server_that_refuses_to_think_so_is_asked_again_without_it(endpoint, server, think):
    exchange = chat(Refusing(*OF_THINKING[server], {"think", "reasoning_effort"}), endpoint=endpoint, think=think)
    assert exchange.text == "Hello."
    assert [bool({"think", "reasoning_effort"} & set(body)) for body in exchange.bodies] == [True, False]


@BOTH
@pytest.mark.parametrize("server", OF_A_VALUE)
def test_a_refused_amount_of_thinking_is_left_out_of_that_request_and_the_next_one_asks_for_its_own(endpoint, server):
    refusing_value = Refusing(400, {"error": {"message": OF_A_VALUE[server]}}, {"think", "reasoning_effort"})
    exchange = chat(refusing_value, endpoint=endpoint, think="high", wrap=Twice)
    assert exchange.text == "Hello." * 2
    assert [bool({"think", "reasoning_effort"} & set(body)) for body in exchange.bodies] == [True, False] * 2


@BOTH
@pytest.mark.parametrize("server", OF_CHOICE)
@pytest.mark.parametrize("choice", ["required", "read_file"])
def test_a_refused_choice_is_left_out_of_that_request_and_the_tools_stay(endpoint, server, choice):
    refusing_choice = Refusing(400, {"error": {"message": OF_CHOICE[server]}}, {"tool_choice"})
    exchange = chat(refusing_choice, endpoint=endpoint, tools=TOOLS, tool_choice=choice, wrap=Twice)
    assert exchange.text == "Hello." * 2
    assert exchange.of(ToolsLeftOut) == []
    assert ["tool_choice" in body for body in exchange.bodies] == [True, False] * 2
    wanted = ["list_directory", "read_file"] if choice == "required" else ["read_file"]
    assert [[tool["function"]["name"] for tool in body["tools"]] for body in exchange.bodies] == [wanted] * 4


def test_a_refusal_of_tools_with_a_status_of_a_passing_fault_is_not_sent_again():
    exchange = chat(refusing(*OF_TOOLS["llama-server"], refuses_tools_only=True), tools=TOOLS)
    assert ["tools" in body for body in exchange.bodies] == [True, False]
