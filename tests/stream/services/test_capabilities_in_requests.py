"""Parallel calls, thinking and whole answers: capabilities that change a request."""

import asyncio
import dataclasses
import json
import logging

import pytest

import stream
from stream.events import Usage
from stream.replay.recording import Recording
from tests.support.model_server import BOTH, TOOLS, Files, Twice, chat, running, says


@BOTH
def test_a_model_that_calls_one_tool_at_a_time_is_asked_for_one_and_others_as_ever(endpoint):
    def sent(model, tools=TOOLS, **fields):
        exchange = chat("ollama-plain-text", endpoint=endpoint, model=model, tools=tools, **fields)
        return exchange.bodies[0].get("parallel_tool_calls")

    assert sent("gpt-oss:20b") is False
    assert sent("mistral") is None
    assert sent("gpt-oss:20b", tools=None) is None
    assert sent("gemma3:4b") is None, "a model without tools is offered none"


@BOTH
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("model", ["mistral:latest", "gpt-oss:20b"])
def test_the_caller_decides_about_parallel_calls_before_the_table(endpoint, wanted, model):
    exchange = chat(
        "ollama-two-calls",
        endpoint=endpoint,
        model=model,
        tools=TOOLS,
        parallel_tool_calls=wanted,
        wrap=lambda c: stream.services.ToolTiers(stream.services.Recovery(c), classifier=Files()),
    )
    assert exchange.bodies[0]["parallel_tool_calls"] is wanted


@pytest.mark.parametrize(
    ("model", "fields", "at_once"),
    [
        ("mistral", {}, 2),
        ("mistral", {"parallel_tool_calls": False}, 1),
        ("gpt-oss:20b", {}, 1),
        ("gpt-oss:20b", {"parallel_tool_calls": True}, 2),
    ],
    ids=["parallel", "the caller says no", "the table says no", "the caller says yes"],
)
@pytest.mark.parametrize("stacked", [False, True], ids=["bare", "services between"])
def test_calls_that_come_together_all_the_same_run_one_after_the_other(model, fields, at_once, stacked):
    running, most = set(), []

    async def run(path):
        running.add(path)
        for _ in range(9):
            await asyncio.sleep(0)
            most.append(len(running))
        running.remove(path)
        return "done"

    tools = [dataclasses.replace(one, function=run) for one in TOOLS]

    def wrap(connection):
        between = (
            stream.services.ToolTiers(stream.services.Recovery(connection), classifier=Files())
            if stacked
            else connection
        )
        return stream.ToolRunner(between, tools)

    says_two = says(
        [["call", "list_directory", {"path": "a"}], ["call", "read_file", {"path": "b"}]], [["say", "Both are done."]]
    )
    exchange = chat(says_two, model=model, wrap=wrap, **fields)
    assert [result[:2] for result in exchange.results] == [("list_directory", False), ("read_file", False)]
    assert max(most) == at_once


REFUSES = {
    "thinking": b'{"error": "\\"llama3.2\\" does not support thinking"}',
    "tools": b'{"error": "registry.ollama.ai/library/gemma3:1b does not support tools"}',
}


class Refusing:
    """An Ollama whose model takes none of these; it looks at `think` first, as Ollama does."""

    as_recorded, pages = False, {}

    def __init__(self, *refused):
        self.refused, self.turns = refused, says([["say", "Twelve degrees."]])

    def answer(self, path, request):
        thinks = request.get("think") or request.get("reasoning_effort")
        for what, asked in (("thinking", thinks), ("tools", request.get("tools"))):
            if asked and what in self.refused:
                return answered(REFUSES[what], 400)
        return self.turns.answer(path, request)


@BOTH
@pytest.mark.parametrize("think", [True, "low"])
def test_a_model_that_does_not_think_is_asked_again_without_it_and_later_at_once(caplog, endpoint, think):
    with caplog.at_level(logging.INFO, logger="stream"):
        exchange = chat(Refusing("thinking"), endpoint=endpoint, model="llama3.2", think=think, wrap=Twice)
    assert exchange.text == "Twelve degrees." * 2
    assert not exchange.failure
    field = "reasoning_effort" if endpoint == "chat" else "think"
    assert [field in body for body in exchange.bodies] == [True, False, False]
    lines = [record.getMessage() for record in caplog.records if "think" in record.getMessage()]
    assert lines == ["The server says that llama3.2 does not think: asked again without `think`"]


@BOTH
def test_a_server_that_refuses_thinking_and_tools_is_asked_without_either(endpoint):
    server = Refusing("thinking", "tools")
    exchange = chat(server, endpoint=endpoint, model="llama3.2", think=True, tools=TOOLS)
    assert exchange.text == "Twelve degrees."
    assert exchange.of(stream.ToolsLeftOut) == [stream.ToolsLeftOut(("list_directory", "read_file"), "refused")]
    assert len(exchange.requests) == 3


@BOTH
def test_a_server_that_has_refused_tools_is_the_reason_in_later_requests_too(endpoint):
    exchange = chat(Refusing("tools"), endpoint=endpoint, model="qwen3:8b", tools=TOOLS, wrap=Twice)
    assert exchange.of(stream.ToolsLeftOut) == [stream.ToolsLeftOut(("list_directory", "read_file"), "refused")] * 2
    assert ["tools" in body for body in exchange.bodies] == [True, False, False]


@BOTH
@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize("model", ["house-model", "qwen3:8b"], ids=["unknown", "reasoning by the table"])
def test_think_is_not_sent_where_the_server_has_said_that_the_model_does_not_think(endpoint, model, thinks):
    words = ["completion", "thinking"] if thinks else ["completion"]
    server = says([["say", "Hello."]], pages={"/api/show": {"capabilities": words}})

    class Learning(Twice):
        async def chat(self, messages, **fields):
            assert (await self.connection.learn()).reasoning is thinks
            async for event in self.connection.chat(messages, **fields):
                yield event

    exchange = chat(server, endpoint=endpoint, model=model, think="low", wrap=Learning)
    assert bool({"reasoning_effort", "think"} & set(exchange.bodies[0])) is thinks


class NoStreamOfCalls:
    """A server that cannot stream answers with tools, as llama-server before llama.cpp's pull request 12379."""

    as_recorded, pages = False, {}

    def __init__(self):
        self.turns = says([["say", "There are two files."]])

    def answer(self, path, request):
        if request["stream"]:
            refusal = b'{"error": {"code": 500, "message": "Cannot use tools with stream", "type": "server_error"}}'
            return answered(refusal, 500) if request.get("tools") else self.turns.answer(path, request)
        call = {"name": "list_directory", "arguments": {"path": "."}}
        if any(message["role"] == "tool" for message in request["messages"]):
            message = {"role": "assistant", "content": "There are two files."}
        elif path == "/api/chat":
            message = {"role": "assistant", "content": "Let me look.", "tool_calls": [{"function": call}]}
        else:
            written = {"id": "c1", "type": "function", "function": {**call, "arguments": json.dumps(call["arguments"])}}
            message = {"role": "assistant", "content": "Let me look.", "tool_calls": [written]}
        if path == "/api/chat":
            return answered({"message": message, "done": True, "done_reason": "stop", "eval_count": 7})
        usage = {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        return answered({"object": "chat.completion", "choices": [choice], "usage": usage})


def answered(body, status=200):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Recording(name="own", kind="ndjson", body=raw, status=status, headers={})


UNSTREAMED = [{"name": "old-server", "patterns": ["*"], "streaming": False}]


@BOTH
def test_a_model_whose_calls_cannot_be_streamed_is_asked_for_whole_answers_where_tools_are_offered(endpoint):
    exchange = running(NoStreamOfCalls(), TOOLS, endpoint, {"options": {"overrides": UNSTREAMED}})
    assert exchange.calls == [("list_directory", {"path": "."})]
    assert exchange.text == "Let me look.There are two files."
    assert [event.completion_tokens for event in exchange.of(Usage)] == [7, 7]
    assert [body["stream"] for body in exchange.bodies] == [False, False]
    assert all("stream_options" not in body for body in exchange.bodies)


@BOTH
@pytest.mark.parametrize("body", [b"", b"Bad gateway", b"[]", b"{}"], ids=["nothing", "a page", "a list", "an object"])
def test_a_whole_answer_that_is_none_is_a_failure_and_raises_nothing(endpoint, body):
    class Broken(NoStreamOfCalls):
        def answer(self, *_):
            return answered(body)

    exchange = chat(Broken(), endpoint=endpoint, tools=TOOLS, options={"overrides": UNSTREAMED})
    assert exchange.failure is not None


@BOTH
@pytest.mark.parametrize("choice", ["auto", "any", "none"])
def test_mistrals_words_for_a_choice_are_taken_through_all_services(endpoint, choice):
    exchange = chat(
        "ollama-tool-call",
        endpoint=endpoint,
        model="mistral:latest",
        tool_choice=choice,
        wrap=lambda c: stream.ToolRunner(
            stream.services.ToolTiers(stream.services.Recovery(c), classifier=Files()), TOOLS
        ),
    )
    sent = [body.get("tool_choice") for body in exchange.bodies]
    # OpenAI's word for `any`; Mistral's own API takes it, too. A choice holds for the first round.
    first = {"auto": "auto", "any": "required", "none": None}[choice]  # For `none` no tools go with the request.
    assert sent == [first, None]
