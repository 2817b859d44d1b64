"""Refusals of tools and of thinking, as servers word them, on both endpoints."""

import asyncio
import json

import pytest

import stream
from stream.events import StreamFailed, ToolsLeftOut
from stream.replay.recording import Recording
from stream.services.retrying import refused_part
from tests.support.model_server import BOTH, QUESTION, TOOLS, Twice, chat, says
from tests.support.repairing import answers, event, http_answer

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
    "Kimi": "tool_choice 'specified' is incompatible with thinking enabled",
    "Anthropic": "Thinking may not be enabled when tool_choice forces tool use.",
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
    "a call of gpt-oss that vLLM cannot read": (
        500,
        {"error": {"message": 'unexpected tokens remaining in message header: Some("to=functions.read_file")'}},
    ),
    "gateway": (502, {"error": {"message": "does not support tools"}}),
}


# Faults of an answer, of one tool, of another field or of the number of tools.
NO_REFUSALS = [
    'unexpected tokens remaining in message header: Some("to=functions.get_weather<|channel|>commentary")',
    "Unexpected token 200002 while expecting start token 200006",
    "Unknown recipient: functions.get_weather",
    "unknown channel: commentary to=functions.f",
    "An unknown error occurred while running the tools server",
    "Unexpected error: too many tools in request",
    "Unsupported schema keyword 'oneOf' in tools",
    "Unknown parameter: 'tools.function.strict'.",
    "Unknown name \"strict\" at 'tools[0].function_declarations[0]': Cannot find field.",
    "Extra data: line 1 column 20 (char 19) in functions",
    "Invalid 'tools': unexpected empty array. Expected an array with minimum length 1.",
    "Unexpected item type in content for functions",
    "too many tools; more than 128 are not allowed",
    "More than 128 tools are not allowed",
    "More than 64 functions are not supported",
    "Request contains 40 tools, which is not allowed for your tier; at most 32",
    "Unsupported parameter: 'max_tokens' is not supported with this model when tools are used",
    "Unexpected value for temperature (tools are enabled)",
    "Unrecognized request argument supplied: parallel_tool_calls",
    "Parallel function calling is not supported with this model",
    "Invalid value: unknown model; see https://host/docs/functions",
    "unexpected end of the think block",
    "I think the server is unexpected",
]
REFUSALS = {
    "Unrecognized request argument supplied: tools": "tools",
    "Unrecognized request arguments supplied: parallel_tool_calls, tools": "tools",
    "Unknown parameter: 'tools'.": "tools",
    'Invalid JSON payload received. Unknown name "tools": Cannot find field.': "tools",
    "create() got an unexpected keyword argument 'tools'": "tools",
    "unknown field `tools`, expected one of `model`, `messages`": "tools",
    "Unrecognized key(s) in object: 'tools'": "tools",
    "Additional properties are not allowed ('tools' was unexpected)": "tools",
    "Extra inputs are not permitted, field: 'tools', value: []": "tools",
    "tools: Extra inputs are not permitted": "tools",
    "body.tools\n  Extra inputs are not permitted [type=extra_forbidden]": "tools",
    "property 'tools' is unsupported": "tools",
    '[{"loc": ["body", "tools"], "msg": "extra fields not permitted", "type": "value_error.extra"}]': "tools",
    "Unrecognized request argument supplied: tool_choice": "tool_choice",
    "Unrecognized request argument supplied: reasoning_effort": "thinking",
    "think: Extra inputs are not permitted": "thinking",
}


@pytest.mark.parametrize("words", [*NO_REFUSALS, *REFUSALS])
def test_a_part_was_refused_if_the_servers_words_name_the_field_or_the_ability(words):
    failed = StreamFailed(words, status=400)
    assert refused_part(failed, ("tool_choice", "tools", "think_value", "thinking")) == REFUSALS.get(words)


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


def test_nothing_is_asked_again_once_a_part_of_the_answer_was_given():
    error = {"error": {"message": "This model does not support tools", "code": 500}}

    async def go():
        body = event("Let me look.") + b"data: %b\n\n" % json.dumps(error).encode()
        async with answers(*[http_answer(body)] * 2) as (url, requests), stream.connect(url, "m") as connection:
            said = [event async for event in connection.chat(QUESTION, tools=TOOLS)]
        return said, len(requests), connection.capabilities.tools

    (text, failed), n_requests, has_tools = asyncio.run(go())
    assert (text.text, failed.status, n_requests, has_tools) == ("Let me look.", 500, 1, True)
