"""Responses, Anthropic and Gemini: each request is checked by the provider's own types, each history by what came."""

import asyncio
import json

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

import stream
from stream.errors import StreamValueError
from stream.events import (
    AnswerParts,
    AskedAgain,
    Finish,
    InvalidToolCall,
    ReasoningDelta,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    Usage,
)
from stream.replay.provider_streams import SIGNATURE
from stream.replay.recording import Recording
from stream.replay.scenarios import scenario
from stream.services.asking import _parts
from stream.services.chat_request import ChatRequest
from stream.services.provider_requests import anthropic_body, gemini_body, responses_body
from tests.support.model_server import QUESTION, TOOLS, chat, recovering, says, tool

APIS = ("chat", "responses", "ollama", "anthropic", "gemini")
PROVIDERS = ("responses", "anthropic", "gemini")
EACH = pytest.mark.parametrize("api", APIS)
EACH_PROVIDER = pytest.mark.parametrize("api", PROVIDERS)
TYPES = {
    "responses": TypeAdapter(ResponseCreateParamsStreaming),
    "anthropic": TypeAdapter(MessageCreateParamsStreaming),
}
GEMINI = {"contents", "tools", "toolConfig", "systemInstruction", "generationConfig"}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value if isinstance(value, str) or not hasattr(value, "__iter__") else [plain(one) for one in value]


def check(api, body):
    """The body satisfies the provider's own types, which know every field in it."""
    if api in TYPES:
        assert plain(TYPES[api].validate_python(body)) == body  # an unknown field would be left out
    elif api == "gemini":
        assert set(body) <= GEMINI
        for content in body["contents"]:
            types.Content.model_validate_json(json.dumps(content))  # these types forbid unknown fields
        for offered in body.get("tools", ()):
            types.Tool.model_validate(offered)
        types.GenerationConfig.model_validate(body.get("generationConfig", {}))
        types.ToolConfig.model_validate(body.get("toolConfig", {}))


def turn(script, api, tools=TOOLS, **options):
    exchange = chat(script, endpoint=api, model="m", wrap=lambda c: stream.ToolRunner(c, tools, **options))
    for body in exchange.bodies:
        check(api, body)
    return exchange


def rounds(api, *turns, **options):
    return says(*turns, endpoints=(api,), **options)


TWO_ROUNDS = (
    [["think", "Hm."], ["say", "Let me look."], ["call", "list_directory", {"path": "."}]],
    [["say", "One more."], ["call", "read_file", {"path": "a.txt"}], ["call", "read_file", {"path": "b.txt"}]],
    [["say", "They say hello."]],
)


@EACH
def test_a_turn_of_two_rounds_runs_its_tools_and_ends_with_the_answer(api):
    exchange = turn(rounds(api, *TWO_ROUNDS), api)
    assert exchange.results == [
        ("list_directory", False, '["a.txt", "b.txt"]'),
        ("read_file", False, "hello from a.txt"),
        ("read_file", False, "hello from b.txt"),
    ]
    assert exchange.text == "Let me look.One more.They say hello."
    assert [end.index for end in exchange.of(ToolCallEnd)] == [0, 1, 2]
    assert len(exchange.bodies) == 3
    assert exchange.of(InvalidToolCall) == []


def test_signed_thinking_goes_back_to_anthropic_unchanged():
    first, second, third = turn(rounds("anthropic", *TWO_ROUNDS), "anthropic").bodies
    assert [message["role"] for message in third["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert (
        second["messages"][1]["content"]
        == third["messages"][1]["content"]
        == [
            {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "call_00000000", "name": "list_directory", "input": {"path": "."}},
        ]
    )
    assert second["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_00000000", "content": '["a.txt", "b.txt"]'}
    ]
    assert len(third["messages"][4]["content"]) == 2
    assert first["messages"] == [{"role": "user", "content": [{"type": "text", "text": QUESTION[0]["content"]}]}]


def test_thought_signatures_go_back_to_gemini_unchanged():
    bodies = turn(rounds("gemini", *TWO_ROUNDS), "gemini").bodies
    model, results = bodies[2]["contents"][3:5]
    assert model["parts"] == [
        {"text": "One more."},
        {"functionCall": {"name": "read_file", "args": {"path": "a.txt"}}, "thoughtSignature": SIGNATURE},
        {"functionCall": {"name": "read_file", "args": {"path": "b.txt"}}},
    ]
    assert [part["functionResponse"] for part in results["parts"]] == [
        {"name": "read_file", "response": {"output": "hello from a.txt"}},
        {"name": "read_file", "response": {"output": "hello from b.txt"}},
    ]
    assert [content["role"] for content in bodies[2]["contents"]] == ["user", "model", "user", "model", "user"]


def test_encrypted_reasoning_goes_back_to_responses_unchanged():
    items = turn(rounds("responses", *TWO_ROUNDS), "responses").bodies[1]["input"]
    kinds = [item.get("type", item.get("role")) for item in items]
    assert kinds == ["user", "reasoning", "message", "function_call", "function_call_output"]
    assert items[1]["encrypted_content"] == SIGNATURE
    assert items[4] == {"type": "function_call_output", "call_id": "call_00000000", "output": '["a.txt", "b.txt"]'}


def test_streamed_arguments_go_back_to_gemini_whole():
    for name in ("gemini-streamed-arguments", "gemini-no-end"):
        call, result = turn(name, "gemini").bodies[1]["contents"][1:]
        args = {"name": "read_file", "args": {"path": "a.txt"}}
        assert call["parts"] == [{"functionCall": args, "thoughtSignature": SIGNATURE}]
        assert result["parts"][0]["functionResponse"]["response"] == {"output": "hello from a.txt"}


@pytest.mark.parametrize(
    ("script", "api"),
    [
        ("responses-web-search", "responses"),
        ("anthropic-web-search", "anthropic"),
        ("anthropic-two-calls", "anthropic"),
    ],
)
def test_text_after_a_call_and_the_servers_own_tools_do_not_keep_the_clients_calls_from_running(script, api):
    exchange = turn(script, api)
    assert exchange.results[0] == ("list_directory", False, '["a.txt", "b.txt"]')
    assert exchange.text.endswith(("There are two files.", "One of them says hello."))
    assert bool(exchange.of(TaskStatus)) == ("search" in script)


@EACH_PROVIDER
def test_beside_a_tool_of_the_server_an_invented_call_is_still_invented(api):
    script = rounds(api, [["server", "web_search", "x"], ["call", "rm_rf", {}]], [["say", "Sorry."]])
    exchange = turn(script, api)
    assert [problem.reason for problem in exchange.of(InvalidToolCall)] == ["unknown_tool"]
    assert [is_error for _, is_error, _ in exchange.results] == [True]
    assert exchange.text == "Sorry."


@EACH_PROVIDER
def test_an_error_of_a_tool_is_sent_as_the_api_has_it(api):
    def fail(**_):
        raise ValueError("no such file")

    script = rounds(api, [["call", "f", {}]], [["say", "It failed."]])
    body = turn(script, api, [tool("f", fail)]).bodies[1]
    last = (body.get("input") or body.get("messages") or body.get("contents"))[-1]
    if api == "anthropic":
        said = {"tool_use_id": "call_00000000", "content": "ValueError: no such file"}
        assert last["content"][0] == {"type": "tool_result", **said, "is_error": True}
    elif api == "gemini":
        assert last["parts"][0]["functionResponse"]["response"] == {"error": "ValueError: no such file"}
    else:
        assert last["output"] == "ValueError: no such file"


def test_an_answer_that_anthropic_pauses_goes_back_and_is_continued():
    exchange = turn("anthropic-pause", "anthropic")
    assert exchange.text == "It rains in Oslo."
    kinds = [block["type"] for block in exchange.bodies[1]["messages"][1]["content"]]
    assert kinds == ["server_tool_use", "web_search_tool_result"]
    assert exchange.bodies[1]["messages"][-1]["role"] == "assistant"


def test_a_pause_is_no_empty_answer():
    exchange = recovering("anthropic-pause", "anthropic", wrapped=lambda c: stream.ToolRunner(c, TOOLS))
    assert exchange.of(AskedAgain) == []
    assert exchange.text == "It rains in Oslo."


def test_a_message_that_a_proxy_begins_again_goes_back_once():
    content = turn("anthropic-spliced", "anthropic").bodies[1]["messages"][1]["content"]
    assert [(block["type"], block["input"]) for block in content] == [("tool_use", {"path": "."})]


@EACH_PROVIDER
def test_the_last_round_offers_no_tools_and_the_request_is_still_valid(api):
    script = rounds(api, [["call", "read_file", {"path": "a.txt"}]], [["say", "Enough."]])
    body = turn(script, api, rounds=1).bodies[1]
    if api == "anthropic":  # which refuses a history with calls unless their tools are defined
        assert body["tool_choice"] == {"type": "none"}
        assert [one["name"] for one in body["tools"]] == ["read_file"]
    else:
        assert "tools" not in body


@EACH_PROVIDER
def test_a_call_written_as_text_is_run_and_goes_back_as_a_call(api):
    raw = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'
    exchange = turn(rounds(api, [["say", raw]], [["say", "It says hello."]]), api)
    assert exchange.results == [("read_file", False, "hello from a.txt")]
    assert exchange.text == "It says hello."
    assert "tool_call>" not in json.dumps(exchange.bodies[1])


def test_a_call_that_gemini_cannot_write_is_asked_for_again_without_a_nameless_call():
    malformed = [["finish", "MALFORMED_FUNCTION_CALL"]]
    bodies = turn(rounds("gemini", malformed), "gemini", rounds=1).bodies
    assert bodies[0]["contents"] == bodies[1]["contents"]


@EACH
def test_the_usage_comes_before_the_finish(api):
    exchange = chat(rounds(api, [["say", "Hello."]]), endpoint=api, model="m")
    assert [type(event) for event in exchange.of(Usage, Finish)] == [Usage, Finish]
    (usage,) = exchange.of(Usage)
    assert (usage.prompt_tokens, usage.completion_tokens) == (20, 10)
    assert exchange.of(AnswerParts) == []


@EACH_PROVIDER
def test_thinking_is_reasoning_and_the_answer_is_text(api):
    exchange = chat(rounds(api, [["think", "Hm."], ["say", "Hello."]]), endpoint=api, model="m")
    assert "".join(event.text for event in exchange.of(ReasoningDelta)) == "Hm."
    assert "".join(event.text for event in exchange.of(TextDelta)) == "Hello."


REFUSALS = {
    "responses": ({"type": "requests", "code": "rate_limit_exceeded"}, "rate_limit_exceeded"),
    "anthropic": ({"type": "rate_limit_error"}, "rate_limit_error"),
    "gemini": ({"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "30s"}]}, "429"),
}


@EACH_PROVIDER
def test_a_refused_request_has_message_code_status_and_wait(api):
    error, code = REFUSALS[api]
    body = json.dumps({"type": "error", "error": {"message": "Slow down", **error}})
    refusal = {"status": 429, "body": body, "headers": {} if api == "gemini" else {"retry-after": "30"}}
    failure = chat(rounds(api, refusal=refusal), endpoint=api, model="m").failure
    assert (failure.message, failure.code, failure.status, failure.retry_after_ms) == ("Slow down", code, 429, 30000.0)


@EACH_PROVIDER
def test_an_error_in_mid_stream_and_a_connection_that_breaks_end_the_answer(api):
    failed = chat(rounds(api, [["say", "Let me"], ["fail", "Overloaded"]]), endpoint=api, model="m")
    assert (failed.text, failed.failure.message) == ("Let me", "Overloaded")
    broken = chat(rounds(api, [["say", "Let me"], ["break"]]), endpoint=api, model="m")
    assert (broken.text, broken.failure.code) == ("Let me", "connection")


@EACH_PROVIDER
def test_a_server_that_is_not_there_is_named_without_its_password(api):
    async def go():
        retries = stream.services.Retries(attempts=1)
        async with stream.connect("http://u:hidden@127.0.0.1:9", "m", api=api, retries=retries) as connection:
            return [event async for event in connection.chat(QUESTION)]

    (event,) = asyncio.run(go())
    assert (event.code, "hidden" in event.message) == ("connection", False)
    assert event.message.startswith("cannot reach http://127.0.0.1:9")


# Bodies.

BODIES = {"responses": responses_body, "anthropic": anthropic_body, "gemini": gemini_body}
IMAGE = "data:image/png;base64,aGVsbG8="
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "title": "Sum"}
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": IMAGE}]},
    {"role": "assistant", "content": " ", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
    ]},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
    {"role": "tool", "tool_call_id": "c2", "content": "two"},
    {"role": "user", "content": "And?"},
    {"role": "user", "content": "Well?"},
]  # fmt: skip


def body_of(api, messages=QUESTION, **fields):
    body = BODIES[api](ChatRequest(model="m", messages=messages, **fields))
    check(api, {key: value for key, value in body.items() if key != "model"} if api == "gemini" else body)
    return body


@EACH_PROVIDER
def test_a_talk_from_elsewhere_is_written_in_each_apis_form(api):
    body = body_of(api, TALK)
    if api == "anthropic":
        assert body["system"] == "Be brief."
        user, assistant, results = body["messages"]
        source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
        assert user["content"][1] == {"type": "image", "source": source}
        assert [block["input"] for block in assistant["content"]] == [{"a": 1}, {}]  # blank text is left out
        kinds = [block["type"] for block in results["content"]]
        assert kinds == ["tool_result", "tool_result", "text", "text"]
    elif api == "gemini":
        assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
        user, model, results = body["contents"]
        assert user["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}
        assert model["parts"][-1] == {"functionCall": {"name": "f", "args": {}}}
        named = [part["functionResponse"]["name"] for part in results["parts"][:2]]
        assert (named, len(results["parts"])) == (["f", "f"], 4)
    else:
        assert body["input"][1]["content"][1] == {"type": "input_image", "image_url": IMAGE, "detail": "auto"}
        outputs = [item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"]
        assert outputs == ["c1", "c2"]


CHOICES = {
    "responses": {"auto": "auto", "required": "required", "f": {"type": "function", "name": "f"}},
    "anthropic": {"auto": {"type": "auto"}, "required": {"type": "any"}, "f": {"type": "tool", "name": "f"}},
    "gemini": {"auto": {"mode": "AUTO"}, "required": {"mode": "ANY"}, "f": {"mode": "ANY"}},
}


@EACH_PROVIDER
@pytest.mark.parametrize("choice", ["auto", "required", "f", "none"])
def test_a_choice_of_tools_is_written_as_the_api_reads_it(api, choice):
    named = {"type": "function", "function": {"name": "f"}} if choice == "f" else choice
    tools = [tool("f").openai(), tool("g").openai()]
    body = body_of(api, tools=tools, tool_choice=named)
    if choice == "none":
        assert "tools" not in body
        return
    sent = body["toolConfig"]["functionCallingConfig"] if api == "gemini" else body["tool_choice"]
    assert sent == CHOICES[api][choice]
    offered = body["tools"][0]["functionDeclarations"] if api == "gemini" else body["tools"]
    assert [one["name"] for one in offered] == (["f"] if choice == "f" else ["f", "g"])


@EACH_PROVIDER
def test_format_temperature_and_thinking_are_written_as_the_api_reads_them(api):
    body = body_of(api, format=SCHEMA, temperature=0.5, think="low")
    if api == "responses":
        assert body["text"] == {"format": {"type": "json_schema", "name": "Sum", "schema": SCHEMA}}
        assert (body["temperature"], body["reasoning"]) == (0.5, {"effort": "low"})
    elif api == "anthropic":
        assert body["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
        assert ("temperature" in body, body["thinking"]) == (False, {"type": "adaptive"})
    else:
        assert body["generationConfig"] == {
            "temperature": 0.5,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
        }


def test_one_call_at_a_time_is_asked_for_where_the_api_has_it():
    tools = [tool("f").openai()]
    assert body_of("responses", tools=tools, parallel_tool_calls=False)["parallel_tool_calls"] is False
    body = body_of("anthropic", tools=tools, parallel_tool_calls=False)
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@EACH_PROVIDER
def test_extra_fields_override_all_others(api):
    extra = {"responses": {"store": False}, "anthropic": {"max_tokens": 5}, "gemini": {"cachedContent": "c"}}[api]
    assert BODIES[api](ChatRequest(model="m", messages=QUESTION, extra=extra)).items() >= extra.items()
    exchange = chat(rounds(api, [["say", "Hi."]]), endpoint=api, model="m", extra=extra)
    assert exchange.bodies[0].items() >= extra.items()


@pytest.mark.parametrize("api", ["responses", "anthropic"])
def test_an_answer_is_a_stream_whatever_the_extra_fields_say(api):
    exchange = chat(rounds(api, [["say", "Hi."]]), endpoint=api, model="m", extra={"stream": False})
    assert exchange.bodies[0]["stream"] is True
    assert [event.text for event in exchange.events if isinstance(event, TextDelta)] == ["Hi."]


def test_what_an_api_cannot_be_sent_is_refused():
    with pytest.raises(StreamValueError, match="JSON Schema"):
        body_of("anthropic", format="json")
    for api in ("anthropic", "gemini"):
        with pytest.raises(StreamValueError, match="not empty"):
            body_of(api, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ""}])


@EACH
def test_the_parts_of_one_api_are_not_sent_to_another(api):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts = {"anthropic": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"secret": 1}}]}
    history = [*QUESTION, {"role": "assistant", "content": "Hm.", "tool_calls": [call], "provider_parts": parts},
               {"role": "tool", "tool_call_id": "c1", "content": "ok"}]  # fmt: skip
    sent = json.dumps(chat(rounds(api, [["say", "Hi."]]), endpoint=api, model="m", messages=history).bodies[0])
    assert ("secret" in sent) == (api == "anthropic")
    assert "provider_parts" not in sent


@EACH_PROVIDER
@pytest.mark.parametrize("junk", [None, 5, [], {}, {"type": 7}, {"anthropic": [{}], "gemini": [{}], "responses": [{}]}])
def test_a_stream_that_makes_up_no_answer_has_no_parts_and_raises_nothing(api, junk):
    class Piece:
        def model_dump_json(self, **_):
            return json.dumps(junk)

    assert len(_parts(api, [Piece(), Piece()], [])) <= 1


class BusyOnce:
    """Answers the first request with a body, the others with a scenario."""

    as_recorded, pages = False, {}

    def __init__(self, body, then):
        self.first, self.then = [Recording(name="busy", kind="sse", body=body)], then

    def answer(self, path, request):
        return self.first.pop() if self.first else self.then.answer(path, request)


@pytest.mark.parametrize("kind", ["overloaded_error", "api_error"])
def test_a_stream_that_begins_with_an_error_which_passes_is_asked_for_again(kind):
    body = f'event: error\ndata: {{"type": "error", "error": {{"type": "{kind}", "message": "Busy"}}}}\n\n'.encode()
    exchange = chat(BusyOnce(body, scenario("anthropic-tool-call")), endpoint="anthropic")
    assert exchange.text == "Let me look."
    assert len(exchange.requests) == 2
