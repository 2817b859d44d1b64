"""Empty answers recovered, tools offered in tiers, attempts counted."""

import logging

import pytest

import stream
from stream.errors import StreamTypeError
from stream.events import EmptyToolCalls, StreamFailed, ToolResult
from stream.services.recovery import DIRECT_ANSWER
from tests.support.model_server import QUESTION, TOOLS, chat, says, tool

BOTH = pytest.mark.parametrize("endpoint", ["openai", "ollama"])
EMPTY = pytest.mark.parametrize(
    ("name", "endpoint"),
    [
        ("ollama-empty-tool-calls", "openai"),
        ("ollama-empty-tool-calls", "ollama"),
        ("ollama-announced-calls", "openai"),
    ],
    ids=["empty array, openai", "empty array, native", "announced calls that never come"],
)


def recovering(name, endpoint="openai", attempts=None, **options):
    tools = options.pop("tools", TOOLS)
    messages = options.pop("messages", QUESTION)
    wrapped = options.pop("wrapped", lambda connection: connection)
    return chat(
        name,
        endpoint=endpoint,
        tools=tools,
        messages=messages,
        wrap=lambda c: stream.services.Recovery(wrapped(c), attempts=attempts, **options),
    )


# Empty tool calls


@EMPTY
def test_an_answer_of_calls_that_never_come_is_detected_logged_and_counted(caplog, name, endpoint):
    attempts = stream.services.Attempts()
    with caplog.at_level(logging.INFO, logger="stream"):
        recovering(name, endpoint, attempts)
    assert "Empty tool call pattern detected" in caplog.text
    assert attempts.snapshot()["qwen3:8b"]["empty_answers"] == 1


@EMPTY
def test_the_question_is_asked_again_without_tools_and_told_to_be_answered_directly(name, endpoint):
    exchange = recovering(name, endpoint)
    first, second = exchange.bodies
    assert first["tools"]
    assert "tools" not in second
    assert second["messages"] == [{"role": "system", "content": DIRECT_ANSWER}, *QUESTION]
    assert DIRECT_ANSWER == "Answer the question directly without calling any tools."
    assert exchange.text == "Two and two is four."
    assert exchange.of(stream.AskedAgain) == [stream.AskedAgain(2, "without_tools")]
    assert not exchange.of(EmptyToolCalls, StreamFailed)


@EMPTY
def test_nothing_of_an_empty_answer_is_passed_on_when_another_follows(name, endpoint):
    assert recovering(name, endpoint).order == ["AskedAgain", "TextDelta", "Usage", "Finish"]


def test_asking_again_can_be_switched_off_and_the_empty_answer_then_ends_the_stream():
    exchange = recovering("ollama-empty-tool-calls", retry=False)
    assert len(exchange.requests) == 1
    assert isinstance(exchange.events[-1], EmptyToolCalls)


def test_both_attempts_are_logged_with_their_number_outcome_and_timings(caplog):
    clock = iter([0.0, 1.25, 2.0, 2.5])
    with caplog.at_level(logging.INFO, logger="stream"):
        recovering("ollama-empty-tool-calls", now=lambda: next(clock))
    (line,) = [record.getMessage() for record in caplog.records if "Asked again" in record.getMessage()]
    assert "attempt 2" in line
    assert "a valid answer" in line
    assert "0.50 s after the first attempt's 1.25 s" in line


def test_a_retry_that_brings_nothing_either_is_logged_as_that_and_ends_with_the_empty_answer(caplog):
    with caplog.at_level(logging.INFO, logger="stream"):
        exchange = recovering("ollama-silent")
    assert "no valid answer" in caplog.text
    assert len(exchange.requests) == 2
    assert exchange.text == ""


@BOTH
def test_an_answer_with_text_or_a_call_is_passed_on_as_it_is(endpoint):
    for name in ("ollama-plain-text", "ollama-tool-call", "fork-tool-call"):
        plain = chat(name, endpoint=endpoint, tools=TOOLS)
        guarded = recovering(name, endpoint)
        assert guarded.events == plain.events
        assert len(guarded.requests) == 1


def test_a_failure_is_no_empty_answer_and_is_not_asked_again_here():
    exchange = recovering("openai-rate-limit")
    assert len(exchange.requests) == 1
    assert isinstance(exchange.events[-1], StreamFailed)


def test_an_answer_that_is_white_space_alone_counts_as_empty():
    exchange = recovering(says([["say", " "]], without_tools=[["say", "Here."]]))
    assert exchange.text == "Here."


# Tiers


def listed(group, names, call=None):
    """An MCP server's tools, as its `tools/list` has them."""
    entries = [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in names]
    return [stream.Tool.of_mcp(entry, call, group=group) for entry in entries]


ZWAVE = listed("zwave", ["get_zwave_nodes", "list_nodes", "get_device_state", "set_value", "ping", "heal_network"])
PLAYWRIGHT = listed("playwright", ["browser_highlight", *(f"browser_{number}" for number in range(21))])
DATETIME = listed("custom", ["get_current_datetime"])
CUSTOM = listed("custom", ["set_timer", "play_music"])
ALL = [*ZWAVE, *PLAYWRIGHT, *DATETIME, *CUSTOM]
WITHOUT_SOURCE = [one.openai() for one in ALL]
DEVICE = [one.name for one in ZWAVE]


def offered(question, endpoint="openai", model="mistral", tools=ALL, **options):
    exchange = chat(
        "ollama-plain-text",
        endpoint=endpoint,
        model=model,
        messages=[{"role": "user", "content": question}],
        tools=tools,
        wrap=lambda c: stream.services.ToolTiers(c, **options),
    )
    return [entry["function"]["name"] for entry in exchange.bodies[0].get("tools", ())]


def test_the_documents_31_tools_are_there():
    assert (len(ZWAVE), len(PLAYWRIGHT), len(ALL)) == (6, 22, 31)


@BOTH
@pytest.mark.parametrize(
    "question",
    [
        "Turn on the lamp in the kitchen",
        "Is the garage door locked? Lock it.",
        "Dim the lights",
        "Switch the heater off",
        "How warm is it in the living room?",
        "Could you please turn the lights in the hall down a bit?",
    ],
)
def test_a_device_question_gets_the_device_tools_alone(endpoint, question):
    assert offered(question, endpoint) == DEVICE


def test_a_custom_tool_is_offered_where_the_question_needs_it_by_name():
    assert offered("Turn off the lights and play music") == [*DEVICE, "play_music"]
    assert offered("Turn off the lights. Set a timer for ten minutes.") == [*DEVICE, "set_timer"]


def test_a_tool_that_the_choice_names_is_offered_and_chosen():
    exchange = chat(
        "ollama-plain-text",
        tools=ALL,
        tool_choice="play_music",
        messages=[{"role": "user", "content": "Surprise me"}],
        wrap=stream.services.ToolTiers,
    )
    (body,) = exchange.bodies
    assert [entry["function"]["name"] for entry in body["tools"]] == ["play_music"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "play_music"}}


@pytest.mark.parametrize(
    "name", ["get_zwave_nodes", "list_nodes", "get_device_state", "turn_on_light", "set_thermostat", "lock_door"]
)
def test_without_a_source_a_device_tool_is_known_by_whole_words_of_its_name(name):
    tools = [*WITHOUT_SOURCE[6:], tool(name).openai()]
    assert offered("Switch the heater off", tools=tools) == [name]


@pytest.mark.parametrize("question", ["What time is it?", "Who wrote Faust?"])
def test_without_a_source_the_other_tiers_have_their_tools_too(question):
    assert offered(question, tools=WITHOUT_SOURCE) == offered(question)


@BOTH
@pytest.mark.parametrize("question", ["What time is it?", "Which day is it today?", "What's the date tomorrow?"])
def test_a_time_question_gets_the_datetime_tool_alone(endpoint, question):
    assert offered(question, endpoint) == ["get_current_datetime"]


@BOTH
@pytest.mark.parametrize("question", ["Who wrote Faust?", "Tell me a joke", "", "Why is the sky blue?"])
def test_a_general_question_gets_no_tools(endpoint, question):
    assert offered(question, endpoint) == []


def test_a_general_question_whose_answer_is_empty_goes_to_the_fallback():
    search = tool("web_search", lambda: "The web says so.")
    exchange = chat(
        "ollama-needs-search",
        tools=ALL,
        messages=[{"role": "user", "content": "Who wrote Faust?"}],
        wrap=lambda c: stream.services.ToolTiers(
            stream.services.Recovery(c, fallback=stream.services.Fallback(load_tools=lambda: [search]))
        ),
    )
    assert "tools" not in exchange.bodies[0]
    assert exchange.of(stream.AskedAgain) == [stream.AskedAgain(2, "fallback")]


def test_the_browsers_tools_come_with_the_fallback_and_later_questions_get_their_own_tier():
    async def browse(name, _):
        return f"{name} says so"

    class Asks:
        """A question that comes back empty, then a question about a device."""

        def __init__(self, connection):
            browser = [one.name for one in PLAYWRIGHT]
            fallback = stream.services.Fallback(load_tools=lambda: listed("playwright", browser, browse))
            self.source = stream.services.ToolTiers(stream.services.Recovery(connection, fallback=fallback))

        async def chat(self, _):
            for question in ("Who wrote Faust?", "Dim the lights"):
                async for event in self.source.chat([{"role": "user", "content": question}], tools=ALL):
                    yield event

    server = says([["call", "browser_1", {}]], [["say", "Goethe."]], without_tools=[])
    exchange = chat(server, wrap=Asks)
    asked = [[entry["function"]["name"] for entry in body.get("tools", ())] for body in exchange.bodies]
    assert asked[0] == []
    assert asked[1] == asked[2] == [one.name for one in PLAYWRIGHT]
    assert asked[3] == DEVICE
    assert exchange.of(ToolResult)[0].content == "browser_1 says so"


def test_the_tiers_stand_in_front_of_the_recovery_or_they_would_leave_out_its_fallback():
    with pytest.raises(StreamTypeError, match=r"source is a ToolTiers; .* ToolTiers\(Recovery\(model\)\)"):
        recovering("ollama-plain-text", wrapped=stream.services.ToolTiers)


def test_the_fallbacks_tools_are_loaded_when_it_comes_to_that_and_never_offered_again():
    loads = []
    search = tool("web_search", lambda: "found")
    server = says([["call", "web_search", {}]], [["say", "The web says so."]], without_tools=[])

    async def load():
        loads.append(1)
        return [search]

    async def twice(connection):
        recovery = stream.services.Recovery(connection, fallback=stream.services.Fallback(load_tools=load))
        for _ in range(2):
            async for event in recovery.chat(QUESTION):
                yield event

    class Twice:
        def __init__(self, connection):
            self.connection = connection

        def chat(self, _):
            return twice(self.connection)

    exchange = chat(server, wrap=Twice)
    asked = [[entry["function"]["name"] for entry in body.get("tools", ())] for body in exchange.bodies]
    assert asked == [[], ["web_search"], ["web_search"], [], ["web_search"], ["web_search"]]
    assert len(loads) == 2
    assert exchange.text == "The web says so." * 2
    assert [result[0] for result in exchange.results] == ["web_search", "web_search"]


def test_the_classifier_and_the_tiers_can_be_replaced(tmp_path):
    class Always:
        async def classify(self, _):
            return "mail"

    file = tmp_path / "tiers.toml"
    file.write_text('[[tier]]\nname = "mail"\ntools = ["send_*"]\nkeywords = ["write to"]\n')
    tiers = stream.services.load_tiers(file)
    tools = [*ALL, tool("send_mail")]
    assert offered("anything", tools=tools, tiers=tiers, classifier=Always()) == ["send_mail"]
    assert offered("Write to Anna", tools=tools, tiers=tiers) == ["send_mail"]


def test_a_choice_that_the_tier_does_not_offer_is_left_out():
    exchange = chat(
        "ollama-plain-text",
        tools=ALL,
        tool_choice="required",
        messages=[{"role": "user", "content": "Tell me a joke"}],
        wrap=stream.services.ToolTiers,
    )
    assert "tool_choice" not in exchange.bodies[0]


# Attempts


def test_the_first_question_of_a_conversation_is_counted_and_logged(caplog):
    attempts = stream.services.Attempts()
    with caplog.at_level(logging.INFO, logger="stream"):
        recovering("ollama-plain-text", attempts=attempts)
        recovering("ollama-empty-tool-calls", attempts=attempts)
    assert "First query: success" in caplog.text
    assert "First query: failure" in caplog.text
    assert attempts.rate("qwen3:8b", "first_query") == 0.5


def test_a_later_question_is_counted_apart():
    attempts = stream.services.Attempts()
    history = [*QUESTION, {"role": "assistant", "content": "Two files."}, *QUESTION]
    recovering("ollama-plain-text", attempts=attempts, messages=history)
    counts = attempts.snapshot()["qwen3:8b"]
    assert (counts["first_query"]["success"], counts["later_query"]["success"]) == (0, 1)


def test_a_retry_is_counted_apart_and_logged_with_its_number(caplog):
    attempts = stream.services.Attempts()
    with caplog.at_level(logging.INFO, logger="stream"):
        recovering("ollama-empty-tool-calls", attempts=attempts)
        recovering("ollama-silent", attempts=attempts)
    assert "Retry 1: success" in caplog.text
    assert "Retry 1: failure" in caplog.text
    assert attempts.rate("qwen3:8b", "retry") == 0.5
    assert attempts.rate("qwen3:8b", "first_query") == 0.0


def test_a_round_that_brings_results_back_is_no_question_of_its_own():
    attempts = stream.services.Attempts()
    exchange = chat(
        "ollama-tool-call",
        wrap=lambda c: stream.ToolRunner(stream.services.Recovery(c, attempts=attempts), TOOLS),
    )
    assert len(exchange.of(ToolResult)) == 1
    assert attempts.snapshot()["qwen3:8b"]["first_query"]["success"] == 1
    assert attempts.snapshot()["qwen3:8b"]["later_query"]["success"] == 0


def test_the_counts_are_text_for_prometheus():
    attempts = stream.services.Attempts()
    attempts.record('a "model"', "first_query", ok=True, seconds=0.5)
    attempts.empty('a "model"')
    text = attempts.prometheus()
    assert 'cue_engine_attempts_total{model="a \\"model\\"",position="first_query",outcome="success"} 1' in text
    assert 'cue_engine_attempt_seconds_total{model="a \\"model\\"",position="first_query"} 0.5' in text
    assert 'cue_engine_empty_answers_total{model="a \\"model\\""} 1' in text
    assert text.endswith("\n")
    assert all(line.startswith(("#", "cue_engine_")) for line in text.splitlines())


# The client


@BOTH
def test_the_client_passes_address_model_and_temperature(endpoint):
    exchange = chat("ollama-plain-text", endpoint=endpoint, model="qwen3:0.6b", temperature=0.5)
    body = exchange.bodies[0]
    assert body["model"] == "qwen3:0.6b"
    assert (body.get("temperature") or body["options"]["temperature"]) == 0.5


@BOTH
def test_calls_come_with_id_name_and_arguments_and_need_no_parsing_by_the_caller(endpoint):
    exchange = chat("ollama-two-calls", endpoint=endpoint, tools=TOOLS)
    assert exchange.calls == [("list_directory", {"path": "."}), ("read_file", {"path": "a.txt"})]
