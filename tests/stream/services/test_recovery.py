"""Empty answers: detected, asked again without tools, and the fallback."""

import asyncio
import logging

import pytest

import stream
from stream.errors import StreamTypeError
from stream.events import EmptyToolCalls, Finish, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.services.recovery import DIRECT_ANSWER
from tests.support.model_server import BOTH, QUESTION, TOOLS, Twice, chat, recovering, says, tool

EMPTY = pytest.mark.parametrize(
    ("name", "endpoint"),
    [("ollama-empty-tool-calls", "chat"), ("ollama-empty-tool-calls", "ollama"), ("ollama-announced-calls", "chat")],
    ids=["empty array, openai", "empty array, native", "announced calls that never come"],
)


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


def test_a_question_without_tools_is_asked_again_too_if_there_is_no_fallback():
    class Directly:
        as_recorded, pages = False, {}

        def answer(self, path, request):
            is_direct = request["messages"][0]["content"] == DIRECT_ANSWER
            return says([["say", "Four."]] if is_direct else [["say", " "]]).answer(path, request)

    exchange = chat(Directly(), wrap=stream.services.Recovery)
    assert exchange.text.strip() == "Four."
    assert len(exchange.bodies) == 2


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


def test_a_failure_is_no_empty_answer_and_is_not_asked_again_here():
    exchange = recovering("openai-rate-limit")
    assert len(exchange.requests) == 1
    assert isinstance(exchange.events[-1], StreamFailed)


def test_an_answer_that_is_white_space_alone_counts_as_empty():
    exchange = recovering(says([["say", " "]], without_tools=[["say", "Here."]]))
    assert exchange.text == "Here."


TOLD = "functions.list_directory(path='.')"


@BOTH
def test_an_answer_that_only_tells_of_a_call_counts_as_empty(endpoint):
    attempts = stream.services.Attempts()
    exchange = recovering(says([["say", TOLD]], without_tools=[["say", "Here."]]), endpoint, attempts)
    assert [end.told for end in exchange.of(stream.ToolCallEnd)] == [True]
    assert exchange.text == "Here."
    assert attempts.snapshot()["qwen3:8b"]["empty_answers"] == 1


@BOTH
def test_a_call_that_is_told_of_is_no_empty_answer_if_the_runner_runs_it(endpoint):
    def wrap(connection):
        return stream.ToolRunner(stream.services.Recovery(connection), TOOLS, told="run")

    exchange = chat(says([["say", TOLD]], [["say", "Two files."]]), endpoint=endpoint, wrap=wrap)
    assert [result[0] for result in exchange.results] == ["list_directory"]
    assert not exchange.of(stream.AskedAgain)
    assert exchange.text == "Two files."


# The fallback


@pytest.mark.parametrize("wrapped", [stream.services.ToolTiers, lambda c: stream.ToolRunner(c, [])])
def test_tiers_and_runners_stand_in_front_of_the_recovery_as_they_would_change_what_it_offers(wrapped):
    with pytest.raises(StreamTypeError, match=r"source is a (\w+); it must wrap Recovery: \1\(Recovery\(model\), …\)"):
        recovering("ollama-plain-text", wrapped=wrapped)


def test_the_fallbacks_tools_are_loaded_when_it_comes_to_that_and_never_offered_again():
    loads = []
    search = tool("web_search", lambda: "found")
    server = says([["call", "web_search", {}]], [["say", "The web says so."]], without_tools=[])

    async def load():
        loads.append(1)
        return [search]

    fallback = stream.services.Fallback(load_tools=load)
    exchange = chat(server, wrap=lambda c: Twice(stream.services.Recovery(c, fallback=fallback)))
    asked = [[entry["function"]["name"] for entry in body.get("tools", ())] for body in exchange.bodies]
    assert asked == [[], ["web_search"], ["web_search"], [], ["web_search"], ["web_search"]]
    assert len(loads) == 2
    assert exchange.text == "The web says so." * 2
    assert [result[0] for result in exchange.results] == ["web_search", "web_search"]


@pytest.mark.parametrize("says_more", [True, False])
def test_a_fallback_that_says_nothing_after_its_results_is_asked_once_more_without_tools(says_more):
    asked = []

    class CallsAndIsSilent:
        model = "m"

        async def chat(self, messages, *, tools=None, **_fields):
            asked.append((messages[-1]["role"], [one.name for one in tools or ()]))
            if asked[-1] == ("user", ["web_search"]):
                yield ToolCallStart("web_search", "1")
                yield ToolCallEnd("web_search", "1", arguments_json="{}")
            elif asked[-1] == ("tool", []) and says_more:
                yield TextDelta("Brazil.")
            yield Finish("stop")

    async def ask():
        search = tool("web_search", lambda: "Brazil won.")
        fallback = stream.services.Fallback(load_tools=lambda: [search])
        recovery = stream.services.Recovery(CallsAndIsSilent(), fallback=fallback)
        return [event async for event in recovery.chat(QUESTION)], recovery.attempts.snapshot()["m"]["retry"]

    events, retries = asyncio.run(ask())
    assert asked == [("user", []), ("user", ["web_search"]), ("tool", ["web_search"]), ("tool", [])]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Brazil."] * says_more
    assert retries["success"] == says_more
    results = [n for n, event in enumerate(events) if isinstance(event, ToolResult)]
    assert [event for event in events[results[-1] + 1 :] if isinstance(event, Finish)] == [Finish("stop")]


@BOTH
def test_a_call_in_place_of_the_answer_after_the_fallback_gets_an_error(endpoint):
    class CallsAlways:
        as_recorded, pages = False, {}

        def answer(self, path, request):
            is_direct = any(message["content"] == DIRECT_ANSWER for message in request["messages"])
            steps = [["call", "web_search", {}]]
            if is_direct or not request.get("tools"):
                steps = [
                    ["say", '<tool_call>{"name": "web_search", "arguments": {}}</tool_call>' if is_direct else " "]
                ]
            elif request["messages"][-1]["role"] == "tool":
                steps = [["say", " "]]
            return says(steps).answer(path, request)

    fallback = stream.services.Fallback(load_tools=lambda: [tool("web_search", lambda: "Brazil won.")])

    def wrap(connection):
        return stream.ToolRunner(stream.services.Recovery(connection, fallback=fallback), [])

    exchange = chat(CallsAlways(), endpoint=endpoint, wrap=wrap)
    calls = [end.index for end in exchange.of(stream.ToolCallEnd)]
    assert calls == [0, 1]
    assert [(result.index, result.is_error) for result in exchange.of(ToolResult)] == [(0, False), (1, True)]


@pytest.mark.parametrize("question", ["Who won yesterday?", "What is the time?"], ids=["general", "of a tier"])
def test_tool_choice_none_keeps_the_fallback_out_behind_tiers_too(question):
    asked = []

    class Silent:
        model = "m"

        async def chat(self, _messages, *, tools=None, **_fields):
            asked.append([one.name for one in tools or ()])
            yield Finish("stop")

    async def ask():
        fallback = stream.services.Fallback(load_tools=lambda: [tool("web_search", lambda: "Brazil won.")])
        tiers = stream.services.ToolTiers(stream.services.Recovery(Silent(), fallback=fallback))
        runner = stream.ToolRunner(tiers, [tool("get_current_time", lambda: "noon")])
        return [event async for event in runner.chat([{"role": "user", "content": question}], tool_choice="none")]

    asyncio.run(ask())
    assert len(asked) == 2  # again, without tools
    assert ["web_search"] not in asked


class AfterResults:
    """A server that calls once, has no words after the result, and answers where it is told to do so directly."""

    as_recorded, pages = False, {}

    def __init__(self, last):
        self.last = last

    def answer(self, path, request):
        is_direct = any(message["content"] == DIRECT_ANSWER for message in request["messages"])
        steps = [["say", "Two files."]] if is_direct else CALLS if request.get("tools") else self.last
        return says(steps).answer(path, request)


CALLS = [["call", "list_directory", {"path": "."}]]


@BOTH
@pytest.mark.parametrize("last", [[["say", " "]], CALLS], ids=["white space", "a call"])
def test_an_empty_last_round_of_a_runner_is_asked_again_too(endpoint, last):
    def wrap(model):
        return stream.ToolRunner(stream.services.Recovery(model), [tool("list_directory", lambda: "a, b")], rounds=1)

    exchange = chat(AfterResults(last), endpoint=endpoint, wrap=wrap)
    assert exchange.text.strip() == "Two files."
    assert ["tools" in body for body in exchange.bodies] == [True, False, False]


def test_where_no_tool_was_chosen_the_fallback_offers_none():
    fallback = stream.services.Fallback(load_tools=list)
    exchange = chat(
        "ollama-silent",
        tools=[tool("dim")],
        tool_choice="none",
        wrap=lambda c: stream.services.Recovery(c, fallback=fallback),
    )
    assert [again.how for again in exchange.of(stream.AskedAgain)] == ["without_tools"]


@BOTH
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_fallback_whose_tools_cannot_be_loaded_leaves_the_empty_answer_and_a_warning(caplog, endpoint, asynchronous):
    def load():
        raise ConnectionError("no browser at user:hunter2@host")

    async def later():
        load()

    attempts = stream.services.Attempts()
    fallback = stream.services.Fallback(load_tools=later if asynchronous else load)
    exchange = recovering("ollama-silent", endpoint, attempts, fallback=fallback)
    assert [again.how for again in exchange.of(stream.AskedAgain)] == ["without_tools", "fallback"]
    assert len(exchange.requests) == 2
    assert exchange.text == ""
    assert exchange.of(stream.Finish) == [stream.Finish("stop")]
    assert attempts.snapshot()["qwen3:8b"]["retry"]["failure"] == 2
    assert "The fallback's tools could not be loaded (qwen3:8b): ConnectionError" in caplog.text
    assert "hunter2" not in caplog.text


def lazy():
    yield stream.Tool(name="search", function=print)
    raise ConnectionError("no browser at user:hunter2@host")


FAULTY = {
    "two of one name": (lambda: [stream.Tool(name="hunter2", function=print)] * 2, "StreamValueError"),
    "a wrong schema": (
        lambda: [stream.Tool(name="s", function=print, parameters={"properties": {"q": {"type": "hunter2"}}})],
        "StreamValueError",
    ),
    "no function": (lambda: [stream.Tool(name="hunter2")], "StreamValueError"),
    "a list that fails while it is read": (lazy, "ConnectionError"),
    "no list": (lambda: 2, "StreamTypeError"),
}


@BOTH
@pytest.mark.parametrize("fault", FAULTY)
def test_a_fallback_with_faulty_tools_leaves_the_empty_answer_and_a_warning(caplog, endpoint, fault):
    load, kind = FAULTY[fault]
    fallback = stream.services.Fallback(load_tools=load)
    exchange = recovering("ollama-silent", endpoint, stream.services.Attempts(), fallback=fallback)
    assert [again.how for again in exchange.of(stream.AskedAgain)] == ["without_tools", "fallback"]
    assert exchange.of(stream.Finish) == [stream.Finish("stop")]
    assert f"The fallback's tools could not be loaded (qwen3:8b): {kind}" in caplog.text
    assert "hunter2" not in caplog.text
