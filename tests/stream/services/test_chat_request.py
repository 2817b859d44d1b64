"""The fields of a request, as each endpoint reads them."""

import pytest

import stream
from stream.errors import StreamTypeError, StreamValueError
from tests.support.model_server import BOTH, QUESTION, TOOLS, calling, chat, running, says

APIS = ("chat", "ollama")


def test_native_fields_are_written_as_the_native_endpoint_reads_them():
    body = chat(
        "ollama-plain-text", endpoint="ollama", format="json", temperature=0.2, think="low", extra={"keep_alive": "5m"}
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


def test_the_temperature_of_the_connection_is_that_of_every_answer_without_one():
    def sent(**fields):
        return chat("ollama-plain-text", options={"temperature": 0.7}, **fields).bodies[0]["temperature"]

    assert (sent(), sent(temperature=0.1)) == (0.7, 0.1)


def test_each_endpoint_takes_its_own_of_two_formats():
    whole = {"type": "json_schema", "json_schema": {"name": "plan", "schema": SCHEMA}}
    formats = {"format": "json", "response_format": whole}
    assert chat("ollama-plain-text", endpoint="ollama", **formats).bodies[0]["format"] == "json"
    assert chat("ollama-plain-text", **formats).bodies[0]["response_format"] == whole


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"temperature": -1.0}, StreamValueError, "temperature"),
        ({"format": 3}, StreamValueError, "format"),
        ({"think": "a lot"}, StreamValueError, "think"),
        ({"tools": TOOLS, "tool_choice": "write_file"}, StreamValueError, "write_file"),
        ({"response_format": "json"}, StreamTypeError, "response_format is 'json'"),
        ({"parallel_tool_calls": "no"}, StreamTypeError, "parallel_tool_calls is 'no'"),
        ({"messages": ["hello"]}, StreamTypeError, "messages"),
        ({"messages": None}, StreamTypeError, "messages must be a list"),
        ({"messages": [{"content": b"hello"}]}, StreamTypeError, "the request has a bytes"),
        ({"temperature": "hot"}, StreamTypeError, "temperature is 'hot'"),
        ({"extra": "seed"}, StreamTypeError, "extra is 'seed'"),
        ({"tools": 3}, StreamTypeError, "tools is 3"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, StreamValueError, "two tools"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_that_cannot_be_sent_is_refused_before_anything_is_sent(fields, error, says):
    with pytest.raises(error, match=says):
        chat("ollama-plain-text", **fields)


class Asked:
    """A server that says hello, and keeps the requests."""

    as_recorded, pages = False, {}

    def __init__(self):
        self.requests = []

    def answer(self, path, request):
        self.requests.append(request)
        return says([["say", "Hello."]]).answer(path, request)


LAYERS = {
    "connection": lambda connection: connection,
    "runner": lambda connection: stream.ToolRunner(connection, TOOLS),
    "recovery": stream.services.Recovery,
    "tiers": stream.services.ToolTiers,
    "all": lambda connection: stream.ToolRunner(stream.services.ToolTiers(stream.services.Recovery(connection)), TOOLS),
}


@BOTH
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tempreature", r"no field 'tempreature'; did you mean 'temperature'\? .* extra=\{'tempreature': …\}"),
        ("tool", r"no field 'tool'; did you mean 'tools'\?"),
        ("reasoning_effort", r"no field 'reasoning_effort'; did you mean 'think'\?"),
        ("max_tokens", r"extra=\{'max_tokens': …\}, for /api/chat as extra=\{'options': \{'num_predict': …\}\}"),
        ("keep_alive", r"no field 'keep_alive'\. .* extra=\{'keep_alive': …\}"),
    ],
)
def test_an_unknown_field_raises_in_every_layer_with_a_known_name_and_the_way_to_send_it(endpoint, layer, name, says):
    server = Asked()
    with pytest.raises(StreamTypeError, match=says):
        chat(server, endpoint=endpoint, wrap=LAYERS[layer], **{name: 1})
    assert server.requests == []


@BOTH
@pytest.mark.parametrize("layer", LAYERS)
def test_every_known_field_passes_each_layer(endpoint, layer):
    fields = {"temperature": 0.2, "think": "low", "format": "json", "extra": {"seed": 7}, "parallel_tool_calls": True}
    server = Asked()
    chat(server, endpoint=endpoint, wrap=LAYERS[layer], told="hide", tool_choice="auto", response_format=None, **fields)
    assert [request["seed"] for request in server.requests] == [7]


@pytest.mark.parametrize("message", [{"content": [{"type": "text"}]}, {"tool_calls": [{}]}, {"content": 5}], ids=str)
def test_a_message_in_no_known_form_is_refused(message):
    with pytest.raises(StreamTypeError, match="a message is not in OpenAI's form"):
        chat("ollama-plain-text", endpoint="ollama", messages=[{"role": "user", **message}])


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


def test_parts_of_text_are_lines_of_the_one_text_that_the_native_endpoint_takes():
    parts = [{"type": "text", "text": text} for text in ("Turn on", "the kitchen light")]
    body = chat("ollama-plain-text", endpoint="ollama", messages=[{"role": "user", "content": parts}]).bodies[0]
    assert body["messages"] == [{"role": "user", "content": "Turn on\nthe kitchen light"}]


def test_more_options_for_ollama_leave_the_temperature():
    more = {"options": {"num_ctx": 8192}, "keep_alive": "5m"}
    body = chat("ollama-plain-text", endpoint="ollama", temperature=0.2, extra=more).bodies[0]
    assert (body["options"], body["keep_alive"]) == ({"temperature": 0.2, "num_ctx": 8192}, "5m")


# Tool choice


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("any", "required"),
        ("read_file", {"type": "function", "function": {"name": "read_file"}}),
        (
            {"type": "function", "function": {"name": "read_file"}},
            {"type": "function", "function": {"name": "read_file"}},
        ),
    ],
    ids=["auto", "required", "any", "name", "object"],
)
def test_a_choice_is_written_in_the_openai_form(choice, sent):
    assert chat("ollama-tool-call", tools=TOOLS, tool_choice=choice).bodies[0]["tool_choice"] == sent


@BOTH
def test_a_choice_of_no_tool_sends_no_tools_and_none_is_called(endpoint):
    server = says([["call", "read_file", {"path": "a"}]], without_tools=[["say", "I may not look."]])
    exchange = running(server, TOOLS, endpoint, {"tool_choice": "none"})
    (body,) = exchange.bodies
    assert not {"tools", "tool_choice"} & set(body)
    assert (exchange.text, exchange.results) == ("I may not look.", [])


@BOTH
def test_a_call_that_comes_although_no_tool_was_chosen_is_not_run_and_no_tool_is_offered_after_it(endpoint):
    exchange = running(calling(("read_file", {"path": "a"})), TOOLS, endpoint, {"tool_choice": "none"})
    assert [is_error for _, is_error, _ in exchange.results] == [True]
    assert exchange.text == "Done."
    assert not any("tools" in body for body in exchange.bodies)


@BOTH
@pytest.mark.parametrize("choice", ["read_file", {"type": "function", "function": {"name": "read_file"}}])
def test_a_tool_that_is_forced_is_offered_alone_because_ollama_reads_no_choice_on_either_endpoint(endpoint, choice):
    body = chat("ollama-tool-call", endpoint=endpoint, tools=TOOLS, tool_choice=choice).bodies[0]
    assert [entry["function"]["name"] for entry in body["tools"]] == ["read_file"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "read_file"}}


@BOTH
@pytest.mark.parametrize("choice", ["read_file", {"type": "function", "function": {"name": "read_file"}}])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda connection: stream.ToolRunner(connection, TOOLS),
        lambda connection: stream.ToolRunner(stream.services.Recovery(connection), TOOLS),
    ],
    ids=["runner", "recovery"],
)
def test_a_tool_that_is_forced_is_kept_where_the_models_maximum_cuts_others(endpoint, choice, wrap):
    limited = {"overrides": [{"patterns": ["*"], "max_tools": 1}]}
    server = calling(("read_file", {"path": "a"}))
    exchange = chat(server, endpoint=endpoint, options=limited, tool_choice=choice, wrap=wrap)
    assert [entry["function"]["name"] for entry in exchange.bodies[0]["tools"]] == ["read_file"]
    assert exchange.results == [("read_file", False, "hello from a")]


@BOTH
@pytest.mark.parametrize(("choice", "listed"), [("none", []), ("read_file", ["read_file"])])
def test_guidance_lists_the_tools_that_are_sent_and_no_others(endpoint, choice, listed):
    guided = {"guide": True}
    body = chat("ollama-tool-call", endpoint=endpoint, tools=TOOLS, tool_choice=choice, options=guided).bodies[0]
    prompt = "".join(message["content"] for message in body["messages"] if message["role"] == "system")
    assert [one.name for one in TOOLS if one.name in prompt] == listed


# Structured outputs


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


NAMED = {"name": "uicp_plan", "description": "a plan", "strict": True, "schema": SCHEMA}


@pytest.mark.parametrize(
    ("response_format", "native"),
    [
        ({"type": "json_object"}, "json"),
        ({"type": "json_object", "schema": SCHEMA}, SCHEMA),
        ({"type": "json_schema", "json_schema": NAMED}, SCHEMA),
        ({"type": "text"}, None),
    ],
    ids=["json", "json with a schema", "strict schema", "text"],
)
def test_the_openai_form_of_a_format_is_sent_as_given_and_translated_for_the_native_endpoint(response_format, native):
    sent = {api: chat("ollama-plain-text", endpoint=api, response_format=response_format).bodies[0] for api in APIS}
    assert (sent["ollama"].get("format"), sent["chat"].get("response_format")) == (native, response_format)
    assert "response_format" not in sent["ollama"]
    assert "format" not in sent["chat"]


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("content", ["Be brief.", [{"type": "text", "text": "Be brief."}]], ids=["text", "parts"])
def test_guidance_is_added_to_the_prompt_that_is_there(role, content):
    prompt = {"role": role, "content": content}
    sent = chat("ollama-plain-text", messages=[prompt, *QUESTION], tools=TOOLS, options={"guide": True}).bodies[0][
        "messages"
    ]
    assert [message["role"] for message in sent] == [role, "user"]
    said = sent[0]["content"]
    assert type(said) is type(content)
    if isinstance(content, list):
        assert said[0] == content[0]
        said = "\n\n".join(part["text"] for part in said)
    assert said.startswith("Be brief.\n\nAvailable tools:")
