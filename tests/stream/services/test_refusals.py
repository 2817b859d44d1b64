"""Refusals of tools and of thinking, as servers word them, on both endpoints."""

import json

import pytest

from stream.events import StreamFailed, ToolsLeftOut
from tests.support.model_server import BOTH, TOOLS, chat, says

EXTRA = [{"type": "extra_forbidden", "loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]
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
}
OTHERS = {
    "unknown model": (404, {"error": {"message": "model 'tools' not found, try pulling it first"}}),
    "full context": (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}),
    "wrong schema": (400, {"error": {"message": "Invalid schema for function 'f': None is not of type 'object'"}}),
    "gateway": (502, {"error": {"message": "does not support tools"}}),
}


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
