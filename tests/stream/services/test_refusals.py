"""Refusals of tools and of thinking, as servers word them, on both endpoints."""

import asyncio
import json

import pytest

import stream
from stream.events import StreamFailed, ToolsLeftOut
from stream.replay.recording import Recording
from stream.services.retrying import REFUSAL_WORDS, refused_part
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
    # As its hosted NIMs answer; no issue quotes it, programs that look for it do.
    "NVIDIA": (400, {"error": "Tool use has not been enabled, because it is unsupported by meta/llama3-8b-instruct."}),
    # agno-agi/agno 2929, songquanpeng/one-api 2214
    "DashScope": (
        400,
        {"error": {"message": "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."}},
    ),
    # truefoundry/models 944
    "DeepInfra": (405, {"error": {"message": "Tool calling is not supported for model: mistralai/Mistral-Small-24B"}}),
    # hotovo/aider-desk 86
    "Novita": (
        400,
        {"code": 400, "reason": "INVALID_REQUEST_BODY", "message": "model features function calling not support"},
    ),
    # RooCodeInc/Roo-Code 10259
    "SGLang": (500, {"error": {"message": "Internal server error: Unsupported tool_call_parser: None"}}),
    # google/adk-python 952
    "xAI": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Invalid request content: The model does not support tool use or function calling but tools or"
            " tool_choice have been specified on the request.",
        },
    ),
    # sbintuitions/flexeval 242
    "OpenAI, of a chat model": (
        400,
        {
            "error": {
                "message": "tools is not supported in this model. For a list of"
                " supported models, refer to https://platform.openai.com"
            }
        },
    ),
    # FoundationAgents/OpenManus 123
    "Volcengine": (
        400,
        {
            "error": {
                "message": "The parameter `` specified in the request are not valid: the requested model does not"
                " support function calling, please switch to a different model"
            }
        },
    ),
    "OpenRouter's default choice": (404, {"error": {"message": OPENROUTER}}),
}
OF_THINKING = {
    "Ollama": (400, {"error": '"gemma3" does not support thinking'}),
    "LiteLLM": (400, {"error": {"message": LITELLM.format("reasoning_effort")}}),
    # omnigent-ai/omnigent 1686
    "xAI": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Argument not supported on this model: reasoning_effort",
        },
    ),
    "without a verb": (400, {"error": {"message": "reasoning_effort not supported for this model"}}),
    "Gemini": (400, {"error": {"message": "Thinking level is not supported for this model."}}),
}
# Words of a 400, or a status and a body. Sources: issues of the repositories on GitHub, beside each.
OF_A_VALUE = {
    "Ollama, of a model": 'think value "high" is not supported for this model',  # musistudio/claude-code-router 1093
    # ollama/ollama, api/types.go
    "Ollama, of a word": (
        400,
        {"error": 'invalid think value: "max" (must be "high", "medium", "low", true, or false)'},
    ),
    "Ollama, of a type": 'think must be a boolean or string ("high", "medium", "low", true, or false)',
    # diegosouzapw/OmniRoute 10160
    "Ollama, /v1": 'invalid reasoning value: \'max\' (must be "high", "medium", "low", or "none")',
    "OpenAI": "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",  # Kilo-Org/cloud 3807
    # Wei-Shaw/sub2api 1001
    "OpenAI, without the field": "Unsupported value: 'xhigh' is not supported with the 'gpt-5.1' model. Supported"
    " values are: 'none', 'low', 'medium', and 'high'.",
    # pipecat-ai/pipecat 4043: with other tools, or none, the effort may be taken
    "OpenAI, with tools": "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.",
    # architects-toolkit/SmartHopper 647
    "Mistral": (
        400,
        {
            "object": "error",
            "message": "reasoning_effort='medium' is not supported for this model. Must be one of "
            "(<ReasoningEffort.none: 'none'>, <ReasoningEffort.high: 'high'>)",
            "code": "3051",
        },
    ),
    "Groq": "`reasoning_effort` must be one of `none` or `default`",  # earendil-works/pi 1745
    # VicBilibily/GCMP 384
    "DashScope": "'reasoning_effort' must be one of: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh'",
    # continuedev/continue 9981, Tencent/WeKnora 682
    "qwen3-next": "Expected 'reasoning_effort' to be one of: 'high', 'low', 'medium', 'minimal'; found 'none'.",
    # router-for-me/CLIProxyAPI 1307
    "Kimi": "Validation error for `reasoning_effort`: expected one of `'low' | 'medium' | 'high'`, received `'xhigh'`.",
    # router-for-me/CLIProxyAPI 1572
    "SGLang": "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': "
    "\"Input should be 'low', 'medium' or 'high'\", 'input': 'xhigh'}",
    # The same of FastAPI, without a server's own words.
    "FastAPI": (
        422,
        {"detail": [{"type": "literal_error", "loc": ["body", "think"], "msg": "Input should be 'low' or 'high'"}]},
    ),
    # ctrl-space-labs/gendox-core 480
    "Gemini": "Invalid reasoning_effort: minimal.\nValid values are: high, low, medium, none",
    # jenslys/opencode-gemini-auth 14
    "Vertex": "Unable to submit request because thinking_level MEDIUM is not supported by this model.",
    "LiteLLM": "litellm.APIConnectionError: Invalid reasoning effort: xhigh",  # BerriAI/litellm 40748
    # ls1intum/edutelligence 749, from the template of Qwen3.8
    "a chat template": (
        500,
        {"error": {"message": "Unexpected reasoning effort high. Supported types are xhigh and low."}},
    ),
    "CLIProxyAPI": 'level "max" not supported, valid levels: low, medium, high, xhigh',  # nguyenphutrong/quotio 287
    # earendil-works/pi 8454: `think=False`
    "OpenRouter": "Reasoning is mandatory for this endpoint and cannot be disabled.",
}
OF_CHOICE = {
    "OpenAI": "Unsupported value: 'tool_choice' does not support 'required' with this model.",
    "OpenAI, as a path": "'$.tool_choice' is invalid.",  # langchain-ai/langchain 16767
    "OpenRouter": OPENROUTER,
    "DeepSeek": "deepseek-reasoner does not support this tool_choice",  # can1357/oh-my-pi 945
    "Kimi": "tool_choice 'specified' is incompatible with thinking enabled",  # can1357/oh-my-pi 1077
    "Anthropic": "Thinking may not be enabled when tool_choice forces tool use.",
    # cloudwego/eino 994
    "DashScope": "The tool_choice parameter does not support being set to required or object in thinking mode",
    # lmstudio-ai/lmstudio-bug-tracker 670
    "LM Studio": (400, {"error": "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}),
    # 567-labs/instructor 1766
    "Cerebras": (
        400,
        {
            "message": "Unsupported tool_choice: type='function' function=ChoiceObjectFunction(name='Steps'). "
            "Expected 'auto' or 'none'.",
            "type": "invalid_request_error",
            "param": "tool_choice",
            "code": "wrong_api_format",
        },
    ),
    "vLLM": '`tool_choice` must either be a named tool, "auto", or "none".',  # vllm-project/vllm 12834
    # vllm-project/vllm 24232
    "vLLM 0.9": 'Invalid value for `tool_choice`: required! Only named tools, "none" or "auto" are supported.',
    # vllm-project/vllm 10567
    "vLLM, of a form": "[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, Incorrectly formatted"
    ' `tool_choice`. Should be like `{"type": "function", "function": {"name": "my_function"}}`\'}]',
    "mlx-openai-server": (500, {"error": {"message": "Tool choice must be 'auto' when tools are provided."}}),  # its 49
    "llama-server": "Invalid tool_choice: required",  # ggml-org/llama.cpp, common/chat.cpp
    # Xerxes-2/clewdr 126
    "clewdr": 'Failed to deserialize the JSON body into the target type: tool_choice: invalid type: string "auto",'
    " expected internally tagged enum ToolChoice at line 1 column 32671",
    # ai-dynamo/dynamo 10963
    "Dynamo": "Failed to deserialize the JSON body into the target type: data did not match any variant of untagged"
    " enum ToolChoiceParam at line 1 column 833",
    # The same of FastAPI, without a server's own words.
    "FastAPI": (
        422,
        {
            "detail": [
                {"type": "literal_error", "loc": ["body", "tool_choice"], "msg": "Input should be 'auto' or 'none'"}
            ]
        },
    ),
}
# The words of a refusal in what a server quotes: no words of its own.
QUOTED = {"model": "m", "messages": [{"role": "user", "content": "tool_choice: unsupported, think: must be high"}]}
OF_ANOTHER_FIELD = {
    "a schema": (
        400,
        {"error": {"message": "Invalid schema for function 'f': In context=('properties', 'think'), it must be"}},
    ),
    "Ollama, of a call": (500, {"error": 'error parsing tool call: raw=\'{"text":"I think"\', err=invalid character'}),
    "Ollama, of a call with an apostrophe": (
        500,
        {"error": 'error parsing tool call: raw=\'{"q":"what\'s a tool_choice"\', err=unexpected end of JSON input'},
    ),
    "vLLM, of a request": (
        400,
        {"message": str([{"type": "missing", "loc": ("body",), "msg": "Field required", "input": QUOTED}])},
    ),
    "FastAPI, of a request": (
        422,
        {"detail": [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": QUOTED}]},
    ),
}
OTHERS = {
    "how calls are sent": (400, {"error": {"message": "Streaming tool calls are not supported"}}),
    "some calls": (
        400,
        {"error": {"message": "mixed provider-side and client-side tool calls are not supported in v1"}},
    ),
    "tools beside another field": (400, {"error": {"message": "This API does not support tools with stream=true"}}),
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
    "Parallel function calling is not supported with this model",
    "Invalid value: unknown model; see https://host/docs/functions",
    "Parallel tool calls are not supported with this model",
    "More than one tool call is not supported",
    "Forced tool use is unsupported",
    "Tool calling is not supported with streaming",
    "Tool use is not supported in streaming mode",
    "Tool calls are not supported in the last message",
    "Assistant tool calls are not supported in message history",
    "tools are not supported when n > 1",
    "response_format with tools is not supported",
    "Hosted tools are not supported with the ChatCompletions API",
    "This model does not support tools and response_format at the same time",
    "does not support functions with names longer than 64 characters",
    "This endpoint does not support tools of type 'custom'",
    "the API does not support tool call ids longer than 9",
    "Role 'tool' is not supported",
    "Exception in tool-call-parser hermes: Expecting ',' delimiter",
    "n\n  Field required [type=missing, input_value={'a': 'tools: extra inputs are n...ot allowed'}, input_type=dict]",
    # microsoft/autogen 5814
    "<400> InternalError.Algo.InvalidParameter: Empty tool_calls is not supported in message.",
    "Function calling with a response mime type: 'application/json' is unsupported",  # Simpleyyt/ai-manus 101
    "Tool use with function calling is unsupported",  # google/adk-python 134: a tool of Gemini's own beside functions
    # google-gemini/deprecated-generative-ai-js 241
    "Function calling mode `ANY` is not enabled for api version v1beta",
    "unexpected end of the think block",
    "I think the server is unexpected",
    "I think the value must be one of 3",
    "model 'qwen3-235b-a22b-thinking-2507' not found",
    "No endpoints found for moonshotai/kimi-k2-thinking.",
    "The model `grok-4-fast-non-reasoning` does not exist",
    "unknown model deepseek/reasoning:latest",
    "Request contains an invalid argument.",  # Gemini, of any field
    "Invalid schema for function 'f': In context=('properties', 'tool_choice'), 'required' must be an array",
    "Invalid schema for response_format 'plan': In context=('properties', 'reasoning_effort'), 'type' must be a string",
    "tools.0.function.parameters.reasoning_effort: Input should be 'low'",
    '[{"type": "literal_error", "loc": ["body", "messages", 0, "tool_choice"], "msg": "Input should be \'auto\'"}]',
    "Invalid 'messages[0].content': expected a string; reasoning_effort must be set, too",
    '[{"loc": ["body", "user"], "input": {"tool_choice": "none", "think": "high"}}, {"msg": "Input should be 0"}]',
    "This model doesn't support tool use in streaming mode.",  # Bedrock
    "Invalid value: 'x'. Supported values are: 'a'. (param: messages[0].role)",
]
ALL = tuple(REFUSAL_WORDS)
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
    "Model 'm' does not support tool calls.": "tools",  # gateways' words for the same, as the next ones
    "This model doesn't support tools": "tools",
    "Tool calls are not supported by this model": "tools",
    "Tools are not currently supported for this model": "tools",
    "Function calling is unsupported for this model": "tools",
    "tool_use is not supported": "tools",
    "tools not supported": "tools",
    # MicrosoftDocs/azure-docs 121504
    "Functions are not supported for this API version or this model version.": "tools",
    "Tool use is not supported with the selected model": "tools",
    "The model does not support tools and functions": "tools",
    "Argument not supported on this model: tools": "tools",
    "Argument not supported on this model: parallel_tool_calls": "parallel_tool_calls",
    "Unrecognized request argument supplied: stream_options": "stream_options",
    "Unknown parameter: 'stream_options.include_usage'.": "stream_options",
    "Unrecognized request argument supplied: parallel_tool_calls": "parallel_tool_calls",
    "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.": "parallel_tool_calls",
    "litellm: m does not support parameters: ['parallel_tool_calls'], for model=m": "parallel_tool_calls",
    'Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find field.': "parallel_tool_calls",
    "{'parallel_tool_calls': Extra inputs are not permitted}": "parallel_tool_calls",
    # Ollama before gpt-oss, whose `think` is a bool: Go's words for a text in its place.
    "json: cannot unmarshal string into Go struct field ChatRequest.think of type bool": "think_value",
    # OpenAI names the field beside the sentence.
    "Invalid value: 'max'. Supported values are: 'low', 'medium', and 'high'. (param: reasoning_effort)": "think_value",
    "Invalid value: 'required'. Supported values are: 'none' and 'auto'. (param: tool_choice)": "tool_choice",
    "Unrecognized request argument supplied: tool_choice": "tool_choice",
    "Additional properties are not allowed ('tool_choice' was unexpected)": "tool_choice",
    "object at /tool_choice has additional properties which are not allowed": "tool_choice",
    "tool_choice 'required' is not supported, see https://docs.example.com/tools.html": "tool_choice",
    "Unrecognized request argument supplied: reasoning_effort": "thinking",
    "think: Extra inputs are not permitted": "thinking",
    "unknown field `reasoning_effort`, expected one of `model`, `messages`": "thinking",
    "Model grok-4-latest does not support parameter reasoningEffort.": "thinking",  # BerriAI/litellm 16265
    "non-reasoning model does not support reasoning_effort": "thinking",  # lambda-symbolics/autolith 25
    "reasoning_effort is not enabled for this model": "thinking",
    "Argument not supported on this model: reasoningEffort": "thinking",
    "Reasoning effort is not supported by this model": "thinking",
    "This model does not support reasoning effort 'none'": "think_value",
    # The name is enough for these two, whatever the fault: at worst there is one request more, and the fault stays.
    "When using `tool_choice`, `tools` must be set.": "tool_choice",
    "tool_choice of this kind cannot be honoured": "tool_choice",
    "Reasoning effort low is no longer offered": "think_value",
    "Chat Completions does not support tool calls with reasoning off": "think_value",
    "Unsupported value: 'temperature' does not support 0.2 with this model when reasoning_effort is set": "think_value",
    "`temperature` may only be set to 1 when thinking is enabled": "think_value",
    "When reasoning_effort is set, temperature must be 1": "think_value",
    "`max_tokens` must be greater than `thinking.budget_tokens`": "think_value",  # Anthropic
    "This model's maximum context length is 8192 tokens. Your request has 9000 (reasoning_effort=high)": "think_value",
}


@pytest.mark.parametrize("words", [*NO_REFUSALS, *REFUSALS])
def test_a_part_was_refused_if_the_servers_words_name_the_field_or_the_ability(words):
    failed = StreamFailed(words, status=400)
    assert refused_part(failed, ALL) == REFUSALS.get(words)


def refusal_of(words):
    """The status and the body of an answer."""
    return words if isinstance(words, tuple) else (400, {"error": {"message": words}})


class Refusing:
    """A server that refuses the requests that have one of these fields; a function makes the body from the request."""

    as_recorded, pages = False, {}

    def __init__(self, status, body, names):
        self.status, self.body, self.names = status, body, names

    def answer(self, path, request):
        if self.names & set(request):
            body = self.body(request) if callable(self.body) else self.body
            return Recording(name="own", kind="json", body=json.dumps(body).encode(), status=self.status)
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
    refusing_value = Refusing(*refusal_of(OF_A_VALUE[server]), {"think", "reasoning_effort"})
    exchange = chat(refusing_value, endpoint=endpoint, think="high", wrap=Twice)
    assert exchange.text == "Hello." * 2
    assert [bool({"think", "reasoning_effort"} & set(body)) for body in exchange.bodies] == [True, False] * 2


@BOTH
@pytest.mark.parametrize("server", OF_CHOICE)
@pytest.mark.parametrize("choice", ["required", "read_file"])
def test_a_refused_choice_is_left_out_of_that_request_and_the_tools_stay(endpoint, server, choice):
    refusing_choice = Refusing(*refusal_of(OF_CHOICE[server]), {"tool_choice"})
    exchange = chat(refusing_choice, endpoint=endpoint, tools=TOOLS, tool_choice=choice, wrap=Twice)
    assert exchange.text == "Hello." * 2
    assert exchange.of(ToolsLeftOut) == []
    assert ["tool_choice" in body for body in exchange.bodies] == [True, False] * 2
    wanted = ["list_directory", "read_file"] if choice == "required" else ["read_file"]
    assert [[tool["function"]["name"] for tool in body["tools"]] for body in exchange.bodies] == [wanted] * 4


def of_choice(request, msg='Value error, `tool_choice` must either be a named tool, "auto", or "none".'):
    return {"type": "value_error", "loc": ("body",), "msg": msg, "input": request, "ctx": {"error": {}}}


# vllm-project/vllm 10567, pydantic/pydantic-ai 728: pydantic's error holds the whole request.
QUOTING = {
    "vLLM": lambda request: {"object": "error", "message": str([of_choice(request)]), "code": 400},
    "vLLM, shown in JSON": lambda request: {
        "object": "error",
        "message": json.dumps([of_choice(request)]),
        "code": 400,
    },
    "FastAPI": lambda request: {"detail": [of_choice(request)]},
    "after another error": lambda request: {
        "detail": [of_choice({"tools": request["tools"][:1]}, "Field required"), of_choice(request)]
    },
    "before the words": lambda request: {
        "detail": [dict(reversed(of_choice({"tools": request["tools"][:1]}).items()))]
    },
}


@BOTH
@pytest.mark.parametrize("server", QUOTING)
@pytest.mark.parametrize(
    "prompt", ["", "You rent out properties, don't you?", "Messages[0] has \\ and [{( in it. " * 20]
)
def test_what_a_server_quotes_of_the_request_is_not_its_words(endpoint, server, prompt):
    messages = [{"role": "system", "content": prompt}, *QUESTION]
    quoting = Refusing(400, QUOTING[server], {"tool_choice"})
    exchange = chat(quoting, endpoint=endpoint, messages=messages, tools=TOOLS, tool_choice="required")
    assert exchange.text == "Hello."
    assert ["tool_choice" in body for body in exchange.bodies] == [True, False]


@BOTH
@pytest.mark.parametrize("fault", OF_ANOTHER_FIELD)
def test_an_error_of_another_field_of_a_request_that_thinks_and_chooses_is_passed_on(endpoint, fault):
    refusing_all = Refusing(*OF_ANOTHER_FIELD[fault], {"tools"})
    exchange = chat(refusing_all, endpoint=endpoint, tools=TOOLS, tool_choice="required", think="high")
    assert [type(event) for event in exchange.events] == [StreamFailed]
    assert exchange.bodies == exchange.bodies[:1] * len(exchange.bodies)


# agno-agi/agno 4508
CEREBRAS = {
    "message": "parallel_tool_calls=False is not supported by this model.",
    "type": "invalid_request_error",
    "param": "parallel_tool_calls",
    "code": "wrong_api_format",
}


@BOTH
def test_one_call_at_a_time_that_nobody_asked_for_is_left_out_where_it_is_refused(endpoint):
    cerebras = Refusing(400, CEREBRAS, {"parallel_tool_calls"})
    exchange = chat(cerebras, endpoint=endpoint, model="gpt-oss-120b", tools=TOOLS, wrap=Twice)
    assert exchange.text == "Hello." * 2
    assert exchange.of(ToolsLeftOut) == []
    assert [body.get("parallel_tool_calls") for body in exchange.bodies] == [False, None, None]
    assert all(len(body["tools"]) == len(TOOLS) for body in exchange.bodies)


# openai/openai-agents-python 442, yetone/avante.nvim 2347
MISTRAL = {
    "object": "error",
    "message": {"detail": [{**EXTRA[0], "loc": ["body", "stream_options", "include_usage"], "input": True}]},
    "type": "invalid_request_error",
}


def test_token_counts_are_not_asked_for_again_where_they_are_refused():
    exchange = chat(Refusing(422, MISTRAL, {"stream_options"}), tools=TOOLS, wrap=Twice)
    assert exchange.text == "Hello." * 2
    assert exchange.of(ToolsLeftOut) == []
    assert ["stream_options" in body for body in exchange.bodies] == [True, False, False]
    assert all(len(body["tools"]) == len(TOOLS) for body in exchange.bodies)


@BOTH
def test_one_call_at_a_time_that_the_user_asked_for_is_not_left_out(endpoint):
    cerebras = Refusing(400, CEREBRAS, {"parallel_tool_calls"})
    exchange = chat(cerebras, endpoint=endpoint, model="gpt-oss-120b", tools=TOOLS, parallel_tool_calls=False)
    assert [type(event) for event in exchange.events] == [StreamFailed]
    assert len(exchange.bodies) == 1


def test_a_refusal_is_looked_for_in_the_beginning_of_an_error_alone():
    failed = StreamFailed("does not support parameters: [" * 20_000, status=400)
    assert refused_part(failed, ALL) is None


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
