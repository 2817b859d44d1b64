"""Both endpoints side by side: addresses, fields, choice, format, names, errors, channels."""

import asyncio
import json
import logging
import re

import pytest

import cues
import stream
from stream.errors import StreamTypeError, StreamValueError
from stream.events import Finish, StreamFailed, TaskStatus, TextDelta, ToolCallEnd, ToolCallStart, ToolResult, Usage
from stream.replay.recording import Recording
from stream.replay.server import ReplayServer
from stream.services.connection import endpoint_of
from stream.session import VoiceSession
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.model_server import LIST_DIRECTORY, QUESTION, READ_FILE, TOOLS, chat, says
from tests.support.virtual_clock import VirtualClock

BOTH = pytest.mark.parametrize("endpoint", ["openai", "ollama"])


# 1. Endpoints


@pytest.mark.parametrize(
    ("base_url", "wanted", "endpoint", "url"),
    [
        ("http://127.0.0.1:11434/v1", "auto", "openai", "http://127.0.0.1:11434/v1"),
        ("http://localhost:11434", "auto", "openai", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "ollama", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/v1", "ollama", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/api/chat", "ollama", "ollama", "http://localhost:11434"),
        ("https://ollama.com", "auto", "ollama", "https://ollama.com"),
        ("https://ollama.com/v1", "openai", "openai", "https://ollama.com/v1"),
        ("https://api.groq.com/openai/v1", "auto", "openai", "https://api.groq.com/openai/v1"),
        ("https://host/v1/chat/completions", "auto", "openai", "https://host/v1"),
    ],
)
def test_a_local_server_defaults_to_the_openai_form_and_the_cloud_to_the_native_one(base_url, wanted, endpoint, url):
    assert (endpoint_of(base_url, wanted)[0], endpoint_of(base_url, wanted)[2]) == (endpoint, url)


VARIABLES = ("OLLAMA_LOCAL_BASE", "OLLAMA_HOST", "OLLAMA_CLOUD_HOST", "ACTOR_MODEL", "OLLAMA_API_KEY")


@pytest.fixture
def environment(monkeypatch):
    """Sets the variables that are named, and no other of ours."""

    def set_alone(**values):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_alone()
    return set_alone


def test_without_an_address_the_ollama_of_this_machine_is_asked_and_the_documents_model(environment):
    connection = stream.connect()
    assert connection.base_url == "http://127.0.0.1:11434"
    assert (connection.endpoint, connection.model) == ("openai", "qwen3-coder:480b")
    cloud = stream.connect("cloud")
    assert (cloud.base_url, cloud.endpoint, cloud.model) == ("https://ollama.com", "ollama", "qwen3-coder:480b")
    assert stream.connect(model="qwen3:8b").model == "qwen3:8b"


def test_actor_model_is_the_model_where_none_is_named(environment):
    environment(ACTOR_MODEL="gpt-oss:120b-cloud")
    assert stream.connect().model == "gpt-oss:120b-cloud"
    assert stream.connect("cloud").model == "gpt-oss:120b"
    assert stream.connect("http://localhost:11434", "qwen3:8b").model == "qwen3:8b"
    environment(ACTOR_MODEL=" ")
    assert stream.connect().model == "qwen3-coder:480b"


@pytest.mark.parametrize(
    ("host", "base_url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":56789", "http://127.0.0.1:56789"),
        ("192.168.1.7", "http://192.168.1.7:11434"),
        ("192.168.1.7:8080", "http://192.168.1.7:8080"),
        ("workstation", "http://workstation:11434"),
        ("workstation:8080/", "http://workstation:8080"),
        ("http://workstation", "http://workstation"),
        ("https://models.example/ollama", "https://models.example/ollama"),
        (' "http://workstation:8080" ', "http://workstation:8080"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::]", "http://[::1]:11434"),
        ("http://0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("ollama.com", "https://ollama.com"),
    ],
)
def test_ollamas_own_variable_says_where_the_server_is(environment, host, base_url):
    environment(OLLAMA_HOST=host)
    assert stream.connect(model="m").base_url == base_url


def test_the_documents_variables_for_the_addresses_win(environment):
    environment(
        OLLAMA_HOST="workstation",
        OLLAMA_LOCAL_BASE="http://127.0.0.1:8080/v1",
        OLLAMA_CLOUD_HOST="https://proxy.example",
        OLLAMA_API_KEY="key-of-the-cloud",
    )
    local, cloud = stream.connect(model="m"), stream.connect("cloud", "gpt-oss:120b-cloud")
    assert (local.base_url, local.endpoint) == ("http://127.0.0.1:8080", "openai")
    assert (cloud.base_url, cloud.endpoint, cloud.model) == ("https://proxy.example", "ollama", "gpt-oss:120b")
    assert cloud._http.headers["authorization"] == "Bearer key-of-the-cloud"
    assert "authorization" not in local._http.headers


@pytest.mark.parametrize("value", ["ftp://host", "host:port", "http://", "host:99999"])
@pytest.mark.parametrize("name", ["OLLAMA_HOST", "OLLAMA_LOCAL_BASE"])
def test_a_variable_that_holds_no_address_is_named_in_the_error(environment, name, value):
    environment(**{name: value})
    with pytest.raises(StreamValueError, match=f"{name} is '{value}'"):
        stream.connect(model="m")


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_the_server_that_the_variables_name_is_asked_for_their_model(environment, scheme):
    async def go():
        bodies = []
        script = says([["say", "Good evening."]])
        async with ReplayServer(script, tokens_per_s=None, on_request=lambda *it: bodies.append(it)) as server:
            address = server.base_url.removeprefix("http://").removesuffix("/v1")
            environment(OLLAMA_HOST=f"{scheme}{address}", ACTOR_MODEL="ministral-3:14b")
            async with stream.connect() as connection:
                text = [event.text async for event in connection.chat(QUESTION) if isinstance(event, TextDelta)]
        return "".join(text), bodies

    text, ((path, body),) = asyncio.run(asyncio.wait_for(go(), 20.0))
    assert (text, path, body["model"]) == ("Good evening.", "/v1/chat/completions", "ministral-3:14b")


@pytest.mark.parametrize(("endpoint", "path"), [("openai", "/v1/chat/completions"), ("ollama", "/api/chat")])
def test_each_endpoint_is_asked_at_its_own_path(endpoint, path):
    assert chat("ollama-plain-text", endpoint=endpoint).paths == [path]


@pytest.mark.parametrize("base_url", ["localhost:11434", "ftp://host", "", "http://"])
def test_an_address_that_is_none_is_refused(base_url):
    with pytest.raises(StreamValueError, match="base_url"):
        stream.connect(base_url, "m")


def test_a_key_goes_to_the_server_it_was_given_for_and_an_environment_key_to_nobody_else(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OLLAMA_API_KEY", "key-of-the-cloud")

    def key(url, **options):
        connection = stream.connect(url, "m", **options)
        header = connection._http.headers.get("authorization")
        return header, connection._openai.api_key if connection._openai else None

    assert key("http://localhost:11434") == (None, "none")
    assert key("http://localhost:11434", api_key="mine") == ("Bearer mine", "mine")
    assert key("https://ollama.com") == ("Bearer key-of-the-cloud", None)
    assert key("https://api.openai.com/v1") == ("Bearer sk-of-openai", "sk-of-openai")


# 2. Tool definitions


@BOTH
def test_tools_are_defined_in_the_same_form_on_both_endpoints(endpoint):
    body = chat("ollama-tool-call", endpoint=endpoint, tools=TOOLS, model="mistral").bodies[0]
    assert body["tools"] == [LIST_DIRECTORY.openai(), READ_FILE.openai()]
    assert all(entry["type"] == "function" for entry in body["tools"])


# 3. Request fields


def test_native_fields_are_written_as_the_native_endpoint_reads_them():
    body = chat(
        "ollama-plain-text",
        endpoint="ollama",
        format="json",
        temperature=0.2,
        think="low",
        extra={"keep_alive": "5m"},
    ).bodies[0]
    assert body == {
        "model": "qwen3:8b",
        "messages": QUESTION,
        "stream": True,
        "format": "json",
        "options": {"temperature": 0.2},
        "think": "low",
        "keep_alive": "5m",
    }


def test_openai_fields_are_written_as_the_openai_endpoint_reads_them():
    body = chat("ollama-plain-text", format="json", temperature=0.2, think=False, extra={"seed": 7}).bodies[0]
    assert body == {
        "model": "qwen3:8b",
        "messages": QUESTION,
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_object"},
        "temperature": 0.2,
        "reasoning_effort": "none",
        "seed": 7,
    }


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"temperature": -1.0}, StreamValueError, "temperature"),
        ({"format": 3}, StreamValueError, "format"),
        ({"think": "a lot"}, StreamValueError, "think"),
        ({"tools": TOOLS, "tool_choice": "write_file"}, StreamValueError, "write_file"),
        ({"format": "json", "response_format": {"type": "json_object"}}, StreamTypeError, "one of them"),
        ({"response_format": "json"}, StreamTypeError, "response_format is 'json'"),
        ({"parallel_tool_calls": "no"}, StreamTypeError, "parallel_tool_calls is 'no'"),
        ({"messages": ["hello"]}, StreamTypeError, "messages"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, StreamValueError, "two tools"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_that_cannot_be_sent_is_refused_before_anything_is_sent(fields, error, says):
    with pytest.raises(error, match=says):
        chat("ollama-plain-text", **fields)


def test_the_history_of_calls_is_written_in_each_endpoints_form():
    history = [
        *QUESTION,
        {
            "role": "assistant",
            "content": None,
            "thinking": "I should look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "hello"},
    ]
    native = chat("ollama-plain-text", endpoint="ollama", messages=history).bodies[0]["messages"]
    assert native[1:] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "I should look.",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "read_file", "arguments": {"path": "a"}}}],
        },
        {"role": "tool", "content": "hello", "tool_call_id": "c1", "tool_name": "read_file"},
    ]
    openai = chat("ollama-plain-text", messages=history).bodies[0]["messages"]
    assert openai[1:] == [{key: value for key, value in history[1].items() if key != "thinking"}, history[2]]


def test_images_are_written_as_the_native_endpoint_takes_them():
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0"}},
    ]
    message = chat("ollama-plain-text", endpoint="ollama", messages=[{"role": "user", "content": parts}]).bodies[0]
    assert message["messages"] == [{"role": "user", "content": "What is this?", "images": ["iVBORw0"]}]


# 4. Calls in the stream


@BOTH
def test_calls_are_read_from_both_endpoints_with_name_arguments_and_id(endpoint):
    exchange = chat("ollama-two-calls", endpoint=endpoint, tools=TOOLS)
    assert exchange.calls == [("list_directory", {"path": "."}), ("read_file", {"path": "a.txt"})]
    assert [event.tool_call_id for event in exchange.of(ToolCallEnd)] == ["call_00000000", "call_00000001"]


def test_the_native_extras_come_as_events():
    exchange = chat("fork-reasoning", endpoint="ollama", tools=TOOLS)
    assert [event.status for event in exchange.of(TaskStatus)] == ["working", "completed"]
    assert exchange.of(TaskStatus)[0].task_id
    assert [event.content for event in exchange.of(ToolResult)]
    assert "not available" in exchange.of(ToolResult)[0].content
    assert exchange.thinking.startswith("We need to list files.")
    assert exchange.of(Usage)[0].eval_ms == pytest.approx(110.0)
    assert exchange.of(Usage)[0].completion_tokens == 10


# 5. Tool choice


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("any", "required"),
        ("read_file", {"type": "function", "function": {"name": "read_file"}}),
        (
            {"type": "function", "function": {"name": "read_file"}},
            {"type": "function", "function": {"name": "read_file"}},
        ),
    ],
    ids=["auto", "none", "required", "any", "name", "object"],
)
def test_a_choice_is_written_in_the_openai_form(choice, sent):
    assert chat("ollama-tool-call", tools=TOOLS, tool_choice=choice).bodies[0]["tool_choice"] == sent


def test_on_the_native_endpoint_a_choice_also_works_where_the_server_ignores_the_field():
    def names(choice):
        body = chat("ollama-tool-call", endpoint="ollama", tools=TOOLS, tool_choice=choice).bodies[0]
        return [entry["function"]["name"] for entry in body.get("tools", ())], body.get("tool_choice")

    assert names("none") == ([], None)
    assert names("read_file") == (["read_file"], {"type": "function", "function": {"name": "read_file"}})
    assert names("auto") == (["list_directory", "read_file"], "auto")


@BOTH
@pytest.mark.parametrize("choice", ["read_file", {"type": "function", "function": {"name": "read_file"}}])
def test_a_tool_that_is_forced_is_offered_alone_because_ollama_reads_no_choice_on_either_endpoint(endpoint, choice):
    body = chat("ollama-tool-call", endpoint=endpoint, tools=TOOLS, tool_choice=choice).bodies[0]
    assert [entry["function"]["name"] for entry in body["tools"]] == ["read_file"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "read_file"}}


# 6. Streaming


class Gate:
    """A clock on which the server's next piece is due when somebody says so."""

    def __init__(self):
        self.open = asyncio.Semaphore(1)

    def now(self):
        return 0.0

    async def sleep(self, _):
        await self.open.acquire()


@BOTH
def test_events_come_while_the_answer_is_still_being_written(endpoint):
    async def go():
        gate, words = Gate(), []
        async with (
            ReplayServer(says([["say", "One two three four"]]), clock=gate) as server,
            stream.connect(server.base_url, "m", endpoint=endpoint) as connection,
        ):
            async for event in connection.chat(QUESTION):
                if isinstance(event, TextDelta):
                    words.append(event.text.strip())
                    # Only now may the server write its next word; a client that waits for more would wait forever.
                    for _ in range(1 if len(words) < 4 else 9):
                        gate.open.release()
        return words

    assert asyncio.run(asyncio.wait_for(go(), 10.0)) == ["One", "two", "three", "four"]


@BOTH
def test_reads_that_cut_lines_and_characters_anywhere_change_nothing(endpoint):
    exchange = chat("openai-odd-reads", endpoint=endpoint, tools=TOOLS)
    assert exchange.text == "Schöne Grüße 😀!"
    assert exchange.calls == [("list_directory", {"path": "/home/Zoë"})]


# 7. Structured outputs

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_a_schema_for_the_answer_is_written_in_each_endpoints_form():
    native = chat("ollama-plain-text", endpoint="ollama", format=SCHEMA).bodies[0]
    assert native["format"] == SCHEMA
    assert "response_format" not in native
    openai = chat("ollama-plain-text", format=SCHEMA).bodies[0]
    assert openai["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    assert "format" not in openai


@pytest.mark.parametrize(("title", "name"), [("Plan", "Plan"), ("A plan: für Zoë", "A_plan_f_r_Zo_"), (None, "answer")])
def test_a_schema_is_named_after_its_title_in_the_letters_that_openai_takes(title, name):
    schema = {**SCHEMA, "title": title} if title else SCHEMA
    body = chat("ollama-plain-text", format=schema).bodies[0]
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


RESPONSE_FORMATS = pytest.mark.parametrize(
    ("response_format", "native"),
    [
        ({"type": "json_object"}, "json"),
        ({"type": "json_object", "schema": SCHEMA}, SCHEMA),
        ({"type": "json_schema", "json_schema": {"name": "uicp_plan", "schema": SCHEMA}}, SCHEMA),
        (
            {
                "type": "json_schema",
                "json_schema": {"name": "uicp_plan", "description": "a plan", "strict": True, "schema": SCHEMA},
            },
            SCHEMA,
        ),
        ({"type": "text"}, None),
    ],
    ids=["json", "json with a schema", "schema", "strict schema", "text"],
)


@RESPONSE_FORMATS
def test_the_openai_form_of_a_format_is_translated_for_the_native_endpoint(response_format, native):
    body = chat("ollama-plain-text", endpoint="ollama", response_format=response_format).bodies[0]
    assert body.get("format") == native
    assert "response_format" not in body


@RESPONSE_FORMATS
def test_a_response_format_goes_to_the_openai_endpoint_as_it_was_given(response_format, native):
    body = chat("ollama-plain-text", response_format=response_format).bodies[0]
    assert body["response_format"] == response_format
    assert "format" not in body


def test_a_response_format_that_only_one_server_knows_goes_there_and_cannot_be_translated():
    grammar = {"type": "grammar", "grammar": "root ::= [a-z]+"}
    assert chat("ollama-plain-text", response_format=grammar).bodies[0]["response_format"] == grammar
    with pytest.raises(StreamValueError, match=r"'grammar'.*json_schema"):
        chat("ollama-plain-text", endpoint="ollama", response_format=grammar)


# 8. Model names: tests/stream/services/test_model_names.py has the table


@BOTH
def test_a_cloud_model_of_the_local_daemon_keeps_its_suffix(endpoint):
    body = chat("ollama-plain-text", endpoint=endpoint, model="qwen3-coder-480b-cloud").bodies[0]
    assert body["model"] == "qwen3-coder:480b-cloud"


def test_the_clouds_own_api_gets_the_name_without_the_suffix():
    assert stream.connect("https://ollama.com", "qwen3-coder:480b-cloud").model == "qwen3-coder:480b"


# 9. Errors


def test_an_error_in_the_done_line_keeps_status_code_detail_and_retry_time():
    exchange = chat("fork-error-in-done", endpoint="ollama")
    assert exchange.text == "Working on it."
    assert exchange.events[-1] == StreamFailed(
        "Request failed", code="BadGateway", status=502, retry_after_ms=5000, request_id="r-1"
    )


@pytest.mark.parametrize(
    ("error", "told", "text"),
    [
        (
            {"status": 502, "code": "BadGateway", "detail": "Request failed", "requestId": "r-1", "retryAfterMs": 5000},
            StreamFailed("Request failed", "BadGateway", 502, 5000.0, "r-1"),
            "[BadGateway] Request failed (status=502)",
        ),
        (
            {"status": 500},
            StreamFailed("Request failed", "UpstreamFailure", 500),
            "[UpstreamFailure] Request failed (status=500)",
        ),
        (
            {"detail": "out of memory"},
            StreamFailed("out of memory", "UpstreamFailure"),
            "[UpstreamFailure] out of memory",
        ),
        (
            {"code": "BadGateway", "detail": None, "status": "soon"},
            StreamFailed("Request failed", "BadGateway"),
            "[BadGateway] Request failed",
        ),
        ({}, StreamFailed("Request failed", "UpstreamFailure"), "[UpstreamFailure] Request failed"),
    ],
    ids=["all of it", "a status alone", "a detail alone", "a code alone", "an empty one"],
)
def test_what_an_error_in_the_done_line_does_not_say_has_the_documents_words(error, told, text):
    exchange = chat(says([["say", "Working on it."], ["fail", error]]), endpoint="ollama", options=ONCE)
    assert exchange.text == "Working on it."
    assert exchange.events[-1] == told
    assert str(told) == text


ONCE = {"retries": stream.services.Retries(attempts=1)}


@BOTH
@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"error": {}}', b'{"error": null}', b'{"error": {"status": 502}}', b"null"]
)
def test_an_error_answer_that_says_nothing_has_the_documents_words_too(endpoint, body):
    exchange = chat(Flaky([refusal(502, body)], None), endpoint=endpoint, options=ONCE)
    assert exchange.events == [StreamFailed("Request failed", "UpstreamFailure", 502)]


@BOTH
def test_an_error_answer_keeps_status_code_detail_and_retry_time(endpoint):
    exchange = chat("openai-rate-limit", endpoint=endpoint)
    assert exchange.events == [
        StreamFailed(
            "Rate limit reached", code="rate_limit_exceeded", status=429, retry_after_ms=30000.0, request_id="req_1"
        )
    ]
    assert len(exchange.requests) == 1, "a server that asks for 30 s is not asked again before that"


class Flaky:
    """Fails a number of times, then serves a scenario."""

    as_recorded, pages = False, {}

    def __init__(self, failures, then):
        self.failures, self.then = list(failures), then

    def answer(self, path, request):
        return self.failures.pop(0) if self.failures else self.then.answer(path, request)


def refusal(status, body=b'{"error": "busy"}', headers=None):
    return Recording(name="refusal", kind="ndjson", body=body, status=status, headers=headers or {})


@BOTH
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_request_that_failed_before_its_first_event_is_sent_again(endpoint, status):
    exchange = chat(Flaky([refusal(status)] * 2, says([["say", "Here I am."]])), endpoint=endpoint)
    assert exchange.text == "Here I am."
    assert len(exchange.requests) == 3
    assert exchange.bodies[0] == exchange.bodies[2]


@BOTH
def test_each_retry_is_one_line_with_its_number_status_and_wait(caplog, endpoint):
    broken = Recording(name="broken", kind="sse", body=b"", complete=False)
    rude = refusal(503, b'{"error": {"message": "hunter2", "code": "hunter2"}}', headers={"retry-after-ms": "10"})
    with caplog.at_level(logging.INFO, logger="stream"):
        exchange = chat(Flaky([rude, broken], says([["say", "Here I am."]])), endpoint=endpoint)
    assert exchange.text == "Here I am."
    told = [record for record in caplog.records if record.name == "stream.services.retrying"]
    assert [record.levelno for record in told] == [logging.INFO, logging.INFO]
    first, second = (record.getMessage() for record in told)
    assert re.fullmatch(r"Attempt 2 of 3, after status 503 and a wait of \d+\.\d\d s", first)
    assert re.fullmatch(r"Attempt 3 of 3, after (connection|unfinished) and a wait of \d+\.\d\d s", second)


def test_a_request_that_is_not_sent_again_has_no_such_line(caplog):
    with caplog.at_level(logging.INFO, logger="stream"):
        chat("ollama-plain-text")
        chat("openai-rate-limit")
    assert not [record for record in caplog.records if record.name == "stream.services.retrying"]


@BOTH
def test_a_connection_that_breaks_before_the_first_event_is_tried_again(endpoint):
    broken = Recording(name="broken", kind="sse", body=b"", complete=False)
    exchange = chat(Flaky([broken], says([["say", "Here I am."]])), endpoint=endpoint)
    assert exchange.events[0] == TextDelta("Here")
    assert len(exchange.requests) == 2


@BOTH
def test_the_wait_that_a_server_asks_for_is_kept_where_it_is_short(endpoint):
    busy = refusal(503, headers={"retry-after-ms": "10"})
    assert chat(Flaky([busy], says([["say", "Now."]])), endpoint=endpoint).text == "Now."


@BOTH
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_request_that_is_wrong_is_not_sent_again(endpoint, status):
    exchange = chat(Flaky([refusal(status)] * 2, says([["say", "Never."]])), endpoint=endpoint)
    assert exchange.failure.status == status
    assert len(exchange.requests) == 1


@BOTH
def test_the_last_failure_is_reported_when_all_attempts_fail(endpoint):
    exchange = chat(Flaky([refusal(503, b'{"error": {"message": "still busy"}}')] * 9, None), endpoint=endpoint)
    assert [event.message for event in exchange.events] == ["still busy"]
    assert len(exchange.requests) == 3


@BOTH
def test_after_the_first_event_nothing_is_sent_again(endpoint):
    exchange = chat("openai-cut", endpoint=endpoint)
    assert exchange.text == "Let me look for"
    assert isinstance(exchange.events[-1], StreamFailed)
    assert len(exchange.requests) == 1


def test_an_error_in_mid_stream_ends_it_and_keeps_what_was_said():
    exchange = chat("llama-server-error")
    assert exchange.text == "Let me"
    assert "context shift failed" in exchange.failure.message


@BOTH
def test_a_server_that_is_not_there_is_named_without_secrets(endpoint):
    async def go():
        url = "http://user:hidden@127.0.0.1:9/v1"
        async with stream.connect(
            url, "m", endpoint=endpoint, retries=stream.services.Retries(attempts=1)
        ) as connection:
            return [event async for event in connection.chat(QUESTION)]

    (event,) = asyncio.run(go())
    assert event.code == "connection"
    assert event.message.startswith("cannot reach http://127.0.0.1:9")
    assert "hidden" not in event.message


# 10. Channels


@pytest.mark.parametrize(
    ("name", "channel"), [("fork-json-channel", "json"), ("fork-text-channel", "text"), ("ollama-plain-text", None)]
)
@BOTH
def test_text_carries_the_channel_that_the_server_marks(name, channel, endpoint):
    exchange = chat(name, endpoint=endpoint)
    assert {event.channel for event in exchange.of(TextDelta)} == {channel}


@pytest.mark.parametrize(("name", "spoken"), [("fork-json-channel", ""), ("fork-text-channel", "Here is the plan.")])
@BOTH
def test_data_for_a_program_is_not_spoken(name, spoken, endpoint):
    class Silent:
        def write(self, mixed, speech): ...

    async def go():
        mixer = cues.Mixer(24000)
        clock = VirtualClock()
        router = stream.CueRouter({}, mixer)
        session = VoiceSession(mixer=mixer, router=router, speaker=VoiceLikeSpeaker(), sink=Silent(), clock=clock)
        return await clock.drive(session.run(replayed()))

    async def replayed():
        for event in read:
            yield event

    read = chat(name, endpoint=endpoint).events
    assert asyncio.run(go()).spoken_text == spoken


@BOTH
def test_a_program_that_asks_gets_the_data_that_is_not_spoken(endpoint):
    read = chat("fork-json-channel", endpoint=endpoint).events
    data = [event.text for event in read if isinstance(event, TextDelta) and event.channel == "json"]
    assert json.loads("".join(data)) == {"plan": [1, 2]}
    assert not [event for event in stream.words_sync(read) if isinstance(event, TextDelta)]
    asked = [event for event in stream.words_sync(read, silent_channels=()) if isinstance(event, TextDelta)]
    assert json.loads("".join(event.text for event in asked)) == {"plan": [1, 2]}
    assert {event.channel for event in asked} == {"json"}


def test_calls_and_the_end_come_as_one_start_and_one_end_each():
    exchange = chat("fork-double-finish", tools=TOOLS)
    assert len(exchange.of(ToolCallStart)) == len(exchange.of(ToolCallEnd)) == 1
    assert exchange.of(Finish)
    assert json.loads(exchange.of(ToolCallEnd)[0].arguments_json) == {"path": "."}
