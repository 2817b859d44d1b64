"""What each model can do, tools translated for it, invented calls found, prompts per model."""

import asyncio
import dataclasses
import json
import logging

import pytest

import stream
from stream.errors import StreamTypeError, StreamValueError
from stream.events import ToolCallEnd, ToolCallStart, ToolResult, Usage
from stream.replay.recording import Recording
from stream.services.models import CHOICES, _table, capabilities_of, guidance, translate_tools
from tests.support.model_server import LIST_DIRECTORY, QUESTION, READ_FILE, TOOLS, chat, says, tool
from tests.support.routing import ALL, Pipeline, bank

BOTH = pytest.mark.parametrize("endpoint", ["openai", "ollama"])


# Phase 1: what models can do


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # As document 003 has them.
        ("qwen2.5-coder:32b", {"format": "hermes", "max_tools": 64, "prompt": "hermes", "multi_turn": "good"}),
        ("mistral:latest", {"format": "openai", "max_tools": 128, "parallel": True, "multi_turn": "excellent"}),
        ("mistral-nemo", {"family": "mistral"}),
        ("codestral:22b", {"family": "mistral"}),
        ("deepseek-chat", {"format": "openai", "max_tools": 128, "multi_turn": "poor"}),
        ("deepseek-reasoner", {"tools": True, "reasoning": True, "multi_turn": "poor"}),
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


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '[[family]]\nname = "x"\n',
        '[[family]]\npatterns=["x"]\nmaxtools=1\n',
        '[[family]]\npatterns=["x"]\nformat="xml"\n',
        '[[family]]\npatterns=["x"]\nmin_ollama="new"\n',
    ],
    ids=["no toml", "no patterns", "unknown key", "unknown value", "no version"],
)
def test_an_override_file_that_is_wrong_is_refused(tmp_path, text):
    file = tmp_path / "models.toml"
    file.write_text(text)
    with pytest.raises(StreamValueError):
        capabilities_of("m", file)


def test_what_is_known_comes_back_from_its_own_override_entry(tmp_path):
    file = tmp_path / "models.toml"
    known = capabilities_of("gpt-oss:20b")
    file.write_text(known.toml("my-model"))
    again = capabilities_of("my-model", file)
    assert dataclasses.replace(again, source="table") == known


def learn(pages, model, endpoint="openai"):
    async def go():
        from stream.replay.server import ReplayServer

        async with (
            ReplayServer(says([["say", "x"]], pages=pages)) as server,
            stream.connect(server.base_url, model, endpoint=endpoint) as connection,
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


@pytest.mark.parametrize("pages", [{}, {"/api/show": []}, {"/api/show": {"capabilities": "all"}}])
def test_a_server_that_cannot_tell_leaves_the_table_as_it_is(pages):
    assert learn(pages, "qwen3:8b") == capabilities_of("qwen3:8b")


# Phase 2: tools translated


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


# Every key of the table does what its name says


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


class Files:
    def classify(self, _):
        return "files"


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


def test_another_kind_of_server_is_not_asked_for_a_version(caplog):
    with caplog.at_level(logging.INFO, logger="stream"):
        learn({"/api/version": {"version": "0.1.0"}}, "ministral-3:14b")
    assert not caplog.records


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


class Twice:
    """Asks the same question twice."""

    def __init__(self, connection):
        self.connection = connection

    async def chat(self, messages, **fields):
        for _ in range(2):
            async for event in self.connection.chat(messages, **fields):
                yield event


@BOTH
@pytest.mark.parametrize("think", [True, "low"])
def test_a_model_that_does_not_think_is_asked_again_without_it_and_later_at_once(caplog, endpoint, think):
    with caplog.at_level(logging.INFO, logger="stream"):
        exchange = chat(Refusing("thinking"), endpoint=endpoint, model="llama3.2", think=think, wrap=Twice)
    assert exchange.text == "Twelve degrees." * 2
    assert not exchange.failure
    field = "reasoning_effort" if endpoint == "openai" else "think"
    assert [field in body for body in exchange.bodies] == [True, False, False]
    lines = [record.getMessage() for record in caplog.records if "think" in record.getMessage()]
    assert lines == ["llama3.2 does not think, says the server: asked again without `think`"]


@BOTH
def test_a_server_that_refuses_thinking_and_tools_is_asked_without_either(endpoint):
    server = Refusing("thinking", "tools")
    exchange = chat(server, endpoint=endpoint, model="llama3.2", think=True, tools=TOOLS)
    assert exchange.text == "Twelve degrees."
    assert exchange.of(stream.ToolsLeftOut) == [stream.ToolsLeftOut(("list_directory", "read_file"), "refused")]
    assert len(exchange.requests) == 3


@BOTH
def test_a_model_without_tools_may_still_think(endpoint):
    exchange = chat(Refusing("tools"), endpoint=endpoint, model="house-model", think=True, tools=TOOLS, wrap=Twice)
    assert ["reasoning_effort" in body or "think" in body for body in exchange.bodies] == [True, True, True]
    assert ["tools" in body for body in exchange.bodies] == [True, False, False]


@BOTH
@pytest.mark.parametrize("thinks", [True, False])
def test_think_is_not_sent_where_the_server_has_said_that_the_model_does_not_think(endpoint, thinks):
    words = ["completion", "thinking"] if thinks else ["completion"]
    server = says([["say", "Hello."]], pages={"/api/show": {"capabilities": words}})

    class Learning(Twice):
        async def chat(self, messages, **fields):
            assert (await self.connection.learn()).reasoning is thinks
            async for event in self.connection.chat(messages, **fields):
                yield event

    exchange = chat(server, endpoint=endpoint, model="house-model", think="low", wrap=Learning)
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
    exchange = chat(
        NoStreamOfCalls(),
        endpoint=endpoint,
        options={"overrides": UNSTREAMED},
        wrap=lambda c: stream.ToolRunner(c, TOOLS),
    )
    assert exchange.calls == [("list_directory", {"path": "."})]
    assert exchange.text == "Let me look.There are two files."
    assert [event.completion_tokens for event in exchange.of(Usage)] == [7, 7]
    assert [body["stream"] for body in exchange.bodies] == [False, False]
    assert all("stream_options" not in body for body in exchange.bodies)


@BOTH
def test_without_tools_such_a_model_is_streamed_like_any_other(endpoint):
    exchange = chat(NoStreamOfCalls(), endpoint=endpoint, options={"overrides": UNSTREAMED})
    assert exchange.text == "There are two files."
    assert exchange.bodies[0]["stream"] is True


@BOTH
@pytest.mark.parametrize("body", [b"", b"Bad gateway", b"[]", b"{}"], ids=["nothing", "a page", "a list", "an object"])
def test_a_whole_answer_that_is_none_is_a_failure_and_raises_nothing(endpoint, body):
    class Broken(NoStreamOfCalls):
        def answer(self, *_):
            return answered(body)

    exchange = chat(Broken(), endpoint=endpoint, tools=TOOLS, options={"overrides": UNSTREAMED})
    assert exchange.failure is not None


def test_the_tables_models_are_streamed():
    assert all(entry.get("streaming", True) for entry in _table()["family"]), "Ollama streams all calls since 0.8.0"


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
    first = {"auto": "auto", "any": "required", "none": "none" if endpoint == "openai" else None}[choice]
    assert sent == [first, None]


# Phase 3: calls checked


def validator(strictness="on", **properties):
    return stream.services.Validator([tool("set_timer", **properties), READ_FILE], strictness=strictness, model="m")


def call(name="set_timer", arguments="{}", status="ok"):
    return ToolCallEnd(name, "c1", 0, arguments, status)


MINUTES = {"minutes": {"type": "integer", "minimum": 1}}


@pytest.mark.parametrize(
    ("given", "reason", "says"),
    [
        (call("set_timers", '{"minutes": 5}'), "unknown_tool", "did you mean set_timer"),
        (call("Set-Timer", '{"minutes": 5}'), "unknown_tool", "did you mean set_timer"),
        (call("fly_to_the_moon", "{}"), "unknown_tool", "there is set_timer, read_file"),
        (call(arguments='{"minutes": '), "not_json", "not a JSON object"),
        (call(arguments="[5]"), "not_json", "not a JSON object"),
        (call(arguments="five", status="malformed"), "not_json", "not a JSON object"),
        (call("", status="malformed"), "not_json", "no name"),
        (call(arguments="{}"), "schema", "lacks minutes"),
        (call(arguments='{"minutes": "soon"}'), "schema", "minutes must satisfy type"),
        (call(arguments='{"minutes": 0}'), "schema", "minutes must satisfy minimum: 1"),
    ],
    ids=["near name", "other case", "far name", "cut", "array", "malformed", "nameless", "missing", "type", "range"],
)
def test_a_call_that_cannot_be_run_is_reported_with_its_reason(given, reason, says):
    problem = validator(**MINUTES).check(given)
    assert problem.reason == reason
    assert says in problem.message


def test_a_good_call_is_no_problem():
    assert validator(**MINUTES).check(call(arguments='{"minutes": 5}')) is None


def test_suggestions_come_closest_first():
    assert validator().check(call("read_files")).suggestions[0] == "read_file"
    assert validator().check(call("xyz")).suggestions == ()


def test_a_problem_never_repeats_the_value_that_was_wrong():
    problem = validator(code={"type": "string", "pattern": "^[0-9]+$"}).check(call(arguments='{"code": "my password"}'))
    assert problem.reason == "schema"
    assert "password" not in problem.message


def test_text_that_spells_a_value_is_taken_for_it_unless_it_is_strict():
    given = call(arguments='{"minutes": "5"}')
    lenient, strict = validator(**MINUTES), validator("strict", **MINUTES)
    assert lenient.check(given) is None
    assert lenient.arguments(given) == {"minutes": 5}
    assert strict.check(given).reason == "schema"


def test_strict_takes_no_argument_that_the_schema_does_not_name():
    given = call(arguments='{"minutes": 5, "sound": "gong"}')
    assert validator(**MINUTES).check(given) is None
    assert "does not know" in validator("strict", **MINUTES).check(given).message


def test_switched_off_nothing_is_checked_or_counted():
    off = validator("off", **MINUTES)
    assert off.check(call("fly")) is None
    assert off.counts == {}


def test_problems_are_counted_by_model():
    counted = validator(**MINUTES)
    for given in (call("fly"), call("fly"), call(arguments="{}"), call(arguments='{"minutes": 1}')):
        counted.check(given)
    assert counted.counts == {("m", "unknown_tool"): 2, ("m", "schema"): 1, ("m", "ok"): 1}


def test_a_schema_that_is_none_is_refused_when_the_tool_is_registered():
    with pytest.raises(StreamValueError, match="not a JSON Schema"):
        validator(minutes={"type": "integr"})


BAD_CALLS = pytest.mark.parametrize("name", ["ollama-unknown-tool", "ollama-bad-arguments"])
CHECKED = pytest.mark.parametrize("strictness", ["on", "strict"])


def watched(name, endpoint, strictness="on"):
    """The events of an answer with a validator over them, and no runner."""

    class Watched:
        def __init__(self, connection):
            self.connection = connection

        def chat(self, messages, **fields):
            validator = stream.services.Validator(TOOLS, strictness=strictness)
            return validator.watch(self.connection.chat(messages, tools=TOOLS, **fields))

    return chat(name, endpoint=endpoint, wrap=Watched)


@BOTH
def test_an_invented_call_is_reported_in_the_stream_and_left_to_the_pipeline(endpoint):
    exchange = watched("ollama-unknown-tool", endpoint)
    assert exchange.order[:3] == ["ToolCallStart", "InvalidToolCall", "ToolCallEnd"]
    (problem,) = exchange.of(stream.InvalidToolCall)
    assert (problem.tool_name, problem.suggestions[0]) == ("list_directories", "list_directory")


@BOTH
@CHECKED
@BAD_CALLS
def test_a_loop_that_runs_what_ends_ok_runs_no_invalid_call(endpoint, strictness, name):
    """The loop of the page: it looks at the status of a call's end, and at nothing else."""
    ran = [event for event in watched(name, endpoint, strictness).events if isinstance(event, ToolCallEnd)]
    assert [event.status for event in ran] == ["malformed"]
    assert list(stream.complete_calls(ran)) == []
    with_runner = chat(name, endpoint=endpoint, wrap=lambda c: stream.ToolRunner(c, TOOLS, validation=strictness))
    assert list(stream.complete_calls(with_runner.events)) == []


@BOTH
@CHECKED
@pytest.mark.parametrize("declared", [None, TOOLS], ids=["tools not known to the router", "known"])
@pytest.mark.parametrize(("name", "cue"), [("ollama-unknown-tool", "invented"), ("ollama-bad-arguments", "malformed")])
def test_an_invalid_call_sounds_as_one_error_of_its_own_kind(endpoint, strictness, declared, name, cue):
    pipeline = Pipeline(
        {**ALL, **bank("invented", "malformed")},
        tools=declared,
        rules=stream.CueRules(invented="invented", malformed="malformed"),
    )
    exchange = chat(name, endpoint=endpoint, wrap=lambda c: stream.ToolRunner(c, TOOLS, validation=strictness))
    sounded = []
    for event in exchange.events:
        sounded += pipeline.handle(event)
        pipeline.pass_s(1.0)
    assert [one for one in sounded if one != "tool_call"] == [cue]


@BOTH
@pytest.mark.parametrize("strictness", ["on", "off"])
def test_a_call_that_cannot_be_read_tells_the_model_so_and_not_that_there_is_no_such_tool(endpoint, strictness):
    server = says([["say", '<tool_call>{"name": "read_file", "arguments": {"path": }}</tool_call>']], [["say", "Oh."]])
    exchange = chat(server, endpoint=endpoint, wrap=lambda c: stream.ToolRunner(c, TOOLS, validation=strictness))
    ((_, is_error, content),) = exchange.results
    assert is_error
    assert "arguments" in content
    assert "JSON object" in content


@BOTH
@pytest.mark.parametrize(
    ("name", "says"), [("ollama-unknown-tool", "did you mean list_directory"), ("ollama-bad-arguments", "lacks path")]
)
def test_a_bad_call_is_not_run_and_the_model_is_told_why(endpoint, name, says):
    ran = []
    tools = [dataclasses.replace(one, function=lambda **given: ran.append(given)) for one in TOOLS]
    attempts = stream.services.Attempts()
    exchange = chat(
        name,
        endpoint=endpoint,
        model="qwen3:8b",
        wrap=lambda c: stream.ToolRunner(c, tools, attempts=attempts),
    )
    assert ran == []
    assert exchange.of(ToolResult)[0].is_error
    assert says in exchange.bodies[1]["messages"][-1]["content"]
    assert exchange.text.startswith("I was wrong")
    assert sum(attempts.snapshot()["qwen3:8b"]["invalid_calls"].values()) == 1


# Future 5: success rates by model and tool


@BOTH
def test_results_are_counted_by_model_and_tool_with_their_success_rate(endpoint):
    attempts = stream.services.Attempts()
    outcomes = iter(["fine", OSError("gone"), "fine"])

    def read(**_):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    tools = [LIST_DIRECTORY, dataclasses.replace(READ_FILE, function=read)]
    server = says([["call", "read_file", {"path": "a"}], ["call", "list_directory", {"path": "."}]], [["say", "Done."]])
    for _ in range(3):
        chat(server, endpoint=endpoint, wrap=lambda c: stream.ToolRunner(c, tools, attempts=attempts))
    assert attempts.snapshot()["qwen3:8b"]["tools"] == {
        "list_directory": {"success": 3, "failure": 0, "rate": 1.0},
        "read_file": {"success": 2, "failure": 1, "rate": pytest.approx(2 / 3)},
    }
    assert attempts.tool_rate("qwen3:8b", "read_file") == pytest.approx(2 / 3)
    assert attempts.tool_rate("qwen3:8b", "write_file") == 0.0
    metrics = attempts.prometheus()
    assert 'cue_engine_tool_results_total{model="qwen3:8b",tool="read_file",outcome="success"} 2' in metrics
    assert 'cue_engine_tool_results_total{model="qwen3:8b",tool="read_file",outcome="failure"} 1' in metrics


def test_results_of_the_server_itself_and_of_calls_that_could_not_run_are_counted_too():
    attempts = stream.services.Attempts()
    wrap = {"wrap": lambda c: stream.ToolRunner(c, TOOLS, attempts=attempts)}
    chat("fork-tool-call", endpoint="ollama", model="ministral-3:14b", **wrap)
    chat("ollama-bad-arguments", model="mistral", **wrap)
    chat(says([["call", "read_file", {"path": "a"}]], [["call", "read_file", {"path": "a"}]]), model="poor", **wrap)
    counted = {model: counts["tools"] for model, counts in attempts.snapshot().items()}
    assert counted["ministral-3:14b"]["list_directory"]["success"] == 1
    assert counted["mistral"] == {"read_file": {"success": 0, "failure": 1, "rate": 0.0}}
    assert counted["poor"]["read_file"] == {"success": 5, "failure": 1, "rate": pytest.approx(5 / 6)}


def test_a_tool_that_was_invented_is_no_label_of_its_own():
    attempts = stream.services.Attempts()
    chat("ollama-unknown-tool", wrap=lambda c: stream.ToolRunner(c, TOOLS, attempts=attempts))
    counts = attempts.snapshot()["qwen3:8b"]
    assert (counts["tools"], counts["invalid_calls"]) == ({}, {"unknown_tool": 1})
    assert "list_directories" not in attempts.prometheus()


def test_the_fallbacks_tools_are_counted_with_the_others():
    search = tool("web_search", lambda: "The web says so.")
    attempts = stream.services.Attempts()
    chat(
        says([["call", "web_search", {}]], [["say", "The web says so."]], without_tools=[]),
        wrap=lambda c: stream.services.Recovery(
            c, attempts=attempts, fallback=stream.services.Fallback(load_tools=lambda: [search])
        ),
    )
    assert attempts.snapshot()["qwen3:8b"]["tools"]["web_search"]["success"] == 1


# Phase 4: prompts


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("mistral", "Available functions:"),
        ("kimi-k2", "Break a large task into steps"),
        ("qwen2.5-coder:32b", "only a tool from this list"),
    ],
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


# Phase 5: together


@BOTH
def test_the_whole_workflow_detects_translates_checks_runs_and_answers(endpoint):
    exchange = chat(
        "ollama-two-calls",
        endpoint=endpoint,
        model="qwen3:8b",
        options={"guide": True},
        wrap=lambda c: stream.ToolRunner(stream.services.Recovery(c), TOOLS),
    )
    assert [result[:2] for result in sorted(exchange.results)] == [("list_directory", False), ("read_file", False)]
    assert exchange.text == "One of them says hello."
    assert [event.index for event in exchange.of(ToolCallStart)] == [0, 1]
    roles = [message["role"] for message in exchange.bodies[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


def test_a_model_that_is_poor_over_several_rounds_is_given_fewer_of_them():
    again = says([["call", "read_file", {"path": "a"}]], [["call", "read_file", {"path": "a"}]])

    def requests(model, between):
        return len(chat(again, model=model, wrap=lambda c: stream.ToolRunner(between(c), TOOLS)).requests)

    def all_between(connection):
        return stream.services.ToolTiers(stream.services.Recovery(connection), classifier=Files())

    for between in (lambda connection: connection, all_between):
        assert [requests(model, between) for model in ("deepseek-chat", "qwen3:8b", "kimi-k2")] == [3, 6, 9]


def test_the_sample_tools_are_offered_like_any_other(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    tools = stream.services.filesystem_tools(tmp_path)
    exchange = chat("ollama-two-calls", wrap=lambda c: stream.ToolRunner(c, tools))
    assert sorted(exchange.results) == [("list_directory", False, '["a.txt"]'), ("read_file", False, "hello")]
    assert {t.name for t in tools} == {LIST_DIRECTORY.name, READ_FILE.name}


def test_a_models_name_is_a_text():
    with pytest.raises(StreamTypeError, match="model is 3; it must be a model's name"):
        capabilities_of(3)
