"""A request without tools: examples in its answer stay text, and calls of tools that are known are read."""

import pytest

import stream
from stream.events import ToolResult
from tests.support.model_server import BOTH, LIST_DIRECTORY, READ_FILE, TOOLS, chat, says

EXAMPLE = 'So:\n```json\n{"name": "Ada", "parameters": {"born": 1815}}\n```\nThat is an example.'
CALL = '```json\n{"name": "read_file", "parameters": {"path": "a"}}\n```'
JOKE = [{"role": "user", "content": "Tell me a joke"}]


class Texts:
    """A server that answers with these texts, one a request."""

    as_recorded, pages = False, {}

    def __init__(self, *texts):
        self.texts = list(texts)

    def answer(self, path, request):
        return says([["say", self.texts.pop(0)]]).answer(path, request)


SOURCES = {
    "connection": None,
    "tiers": stream.services.ToolTiers,
    "runner": lambda c: stream.ToolRunner(stream.services.ToolTiers(c), TOOLS),
    "recovery": stream.services.Recovery,
}


@BOTH
@pytest.mark.parametrize("source", SOURCES)
def test_an_example_is_text_in_an_answer_to_a_request_without_tools(endpoint, source):
    asked = {"tools": TOOLS} if source != "runner" else {}
    model = "gemma3:4b" if source in ("connection", "recovery") else "qwen3:8b"
    exchange = chat(Texts(EXAMPLE), endpoint=endpoint, model=model, messages=JOKE, wrap=SOURCES[source], **asked)
    assert "tools" not in exchange.bodies[0]
    assert exchange.text == EXAMPLE
    assert not exchange.of(stream.ToolCallEnd)


@BOTH
def test_an_example_in_a_last_round_is_text_and_a_call_has_its_refusal(endpoint):
    def ask(last):
        server = Texts(CALL, last)
        exchange = chat(server, endpoint=endpoint, wrap=lambda c: stream.ToolRunner(c, TOOLS, rounds=1))
        assert ["tools" in body for body in exchange.bodies] == [True, False]
        return exchange.text, [(result.tool_name, result.is_error) for result in exchange.of(ToolResult)]

    assert ask(EXAMPLE) == (EXAMPLE, [("read_file", False)])
    assert ask(CALL)[1] == [("read_file", False), ("read_file", True)]


@BOTH
def test_a_general_question_may_be_answered_by_a_call_in_the_text(endpoint):
    server = Texts(CALL, "Hello.")
    exchange = chat(server, endpoint=endpoint, messages=JOKE, wrap=SOURCES["runner"])
    assert "tools" not in exchange.bodies[0]
    assert [result.content for result in exchange.of(ToolResult)] == ["hello from a"]


@BOTH
def test_an_example_is_text_where_recovery_asks_again(endpoint):
    server = Texts(" ", EXAMPLE)
    exchange = chat(server, endpoint=endpoint, tools=TOOLS, wrap=SOURCES["recovery"])
    assert exchange.text.strip() == EXAMPLE


@BOTH
def test_an_example_is_text_after_the_fallbacks_tools(endpoint):
    fallback = stream.services.Fallback(load_tools=lambda: [LIST_DIRECTORY])
    call = CALL.replace("read_file", "list_directory")
    server = Texts(" ", " ", call, " ", EXAMPLE)

    def wrap(connection):
        return stream.services.Recovery(connection, fallback=fallback)

    exchange = chat(server, endpoint=endpoint, tools=[READ_FILE], wrap=wrap)
    assert len(exchange.bodies) == 5
    assert exchange.text.strip() == EXAMPLE


@BOTH
@pytest.mark.parametrize(
    "text", [CALL, 'read_file(path="a")', '{"action": "read_file", "action_input": {"path": "a"}}']
)
def test_a_call_in_the_text_of_a_tool_that_is_known_and_not_offered_is_run(endpoint, text):
    def asked(wrap, **fields):
        exchange = chat(Texts(text, "Done."), endpoint=endpoint, wrap=wrap, **fields)
        assert [entry["function"]["name"] for entry in exchange.bodies[0]["tools"]] == ["list_directory"]
        return exchange.text, [result.content for result in exchange.of(ToolResult)]

    listing = stream.services.Tier(name="general", tools=("list_directory",))
    run = ("Done.", ["hello from a"])
    assert asked(lambda c: stream.ToolRunner(c, TOOLS), tools=[LIST_DIRECTORY]) == run
    assert asked(lambda c: stream.ToolRunner(stream.services.ToolTiers(c, tiers=[listing]), TOOLS)) == run
    one = stream.services.ModelCapabilities(tools=True, max_tools=1)
    exchange = chat(Texts(text, "Done."), endpoint=endpoint, tools=TOOLS, options={"capabilities": one})
    assert [end.tool_name for end in exchange.of(stream.ToolCallEnd)] == ["read_file"]


@BOTH
def test_a_second_call_after_a_general_question_is_an_answer_to_recovery(endpoint):
    again = CALL.replace('"a"', '"b"')

    def wrap(connection):
        return stream.ToolRunner(stream.services.ToolTiers(stream.services.Recovery(connection)), TOOLS)

    exchange = chat(Texts(CALL, again, "Done."), endpoint=endpoint, messages=JOKE, wrap=wrap)
    assert [result.content for result in exchange.of(ToolResult)] == ["hello from a", "hello from b"]
    assert (exchange.text, exchange.of(stream.AskedAgain)) == ("Done.", [])
