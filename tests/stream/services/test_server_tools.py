"""Servers that run tools of their own (`mcp_discover` and what it discovers): nobody takes their calls for invented."""

import asyncio

import pytest

import stream
from stream.errors import StreamTypeError
from stream.events import (
    AskedAgain,
    Finish,
    InvalidToolCall,
    TaskStatus,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from stream.replay.behavior import Behavior
from tests.support.model_server import BOTH, TOOLS, chat, running, says, tool, validated
from tests.support.routing import Pipeline

FORK = Behavior(role_everywhere=True, empty_content=True, same_index=True, task=True)
DISCOVER, DISCOVERED = ["call", "mcp_discover", {"pattern": "*file*"}], ["call", "read_text_file", {"path": "a"}]
RESULT, ANSWER = ["results", ["a"]], ["say", "It is empty."]


def heard(events, pipeline=None, **options):
    """The cues that sound for the events, with a second between them: nothing is coalesced."""
    pipeline = pipeline or Pipeline(**options)
    sounded = []
    for event in events:
        sounded += [(event, cue) for cue in pipeline.handle(event)]
        pipeline.pass_s(1.0)
    return sounded


def announced(events, pipeline=None, **options):
    """The cues by which calls are announced."""
    return [cue for event, cue in heard(events, pipeline, **options) if isinstance(event, ToolCallStart)]


@BOTH
def test_discovering_a_tool_and_calling_it_is_no_error(endpoint):
    exchange = running("fork-discover", TOOLS, endpoint)
    assert [(name, given) for name, given in exchange.calls] == [
        ("mcp_discover", {"pattern": "*file*"}),
        ("read_text_file", {"path": "a.txt"}),
    ]
    assert exchange.of(InvalidToolCall) == []
    assert len(exchange.requests) == 1, "the server ran both"
    assert exchange.text == "It says hello."
    assert announced(exchange.events, tools=TOOLS) == ["tool_call", "tool_call"]


@BOTH
def test_a_validator_lets_them_pass(endpoint):
    validator = stream.services.Validator(TOOLS, model="m")
    exchange = validated("fork-discover", endpoint, validator)
    assert {end.status for end in exchange.of(ToolCallEnd)} == {"ok"}


@BOTH
def test_a_discovered_tool_stays_known_in_later_turns_because_the_server_remembers_it(endpoint):
    validator, pipeline = stream.services.Validator(TOOLS), Pipeline(tools=TOOLS)
    first = validated(says([DISCOVER, RESULT, DISCOVERED, RESULT, ANSWER], behavior=FORK), endpoint, validator)
    heard(first.events, pipeline)
    pipeline.router.begin_turn()
    again = validated(says([DISCOVERED, RESULT, ANSWER], behavior=FORK), endpoint, validator)
    assert again.of(InvalidToolCall) == []
    assert announced(again.events, pipeline) == ["tool_call"]


def test_a_result_of_the_servers_own_shows_that_it_runs_the_tools():
    server = says([["call", "read_file", {"path": "a"}], RESULT, DISCOVERED, RESULT, ANSWER])
    exchange = running(server, TOOLS, "ollama")
    assert [result.by_server for result in exchange.of(ToolResult)] == [True, True]
    assert exchange.of(TaskStatus) == [], "nothing but the result shows it"
    assert exchange.of(InvalidToolCall) == []
    assert announced(exchange.events, tools=TOOLS) == ["tool_call", "tool_call"]


@BOTH
def test_the_pattern_can_be_another_or_none(endpoint):
    behavior = FORK if endpoint == "chat" else Behavior()
    server = says([["call", "jit_find", {}]], [["say", "Found."]], behavior=behavior)
    assert [problem.reason for problem in running(server, TOOLS, endpoint).of(InvalidToolCall)] == ["unknown_tool"]
    exchange = running(server, TOOLS, endpoint, server_tools=("jit_*",))
    assert exchange.of(InvalidToolCall) == []
    assert announced(exchange.events, tools=TOOLS) == ["error"]
    assert announced(exchange.events, tools=TOOLS, rules=stream.CueRules(server_tools=("jit_*",))) == ["tool_call"]
    none = stream.CueRules(server_tools=())
    assert announced([ToolCallStart("mcp_discover")], tools=TOOLS, rules=none) == ["error"]


QUIET = Behavior(role_everywhere=True, empty_content=True, same_index=True)
ADDED = [["call", "lookup", {"x": 1}], ["call", "search", {}]]


@BOTH
@pytest.mark.parametrize("between", [[], [["finish", "tool_calls"]], [["say", "\n"]]], ids=["", "finish", "blank"])
def test_a_call_that_the_server_answers_without_a_word_of_its_tools_was_not_invented(endpoint, between):
    server, pipeline = says([*ADDED, *between, ["say", "It rains."]], behavior=QUIET), Pipeline(tools=TOOLS)
    exchange = running(server, TOOLS, endpoint)
    assert exchange.of(InvalidToolCall) == []
    assert [(end.tool_name, end.status) for end in exchange.of(ToolCallEnd)] == [("lookup", "ok"), ("search", "ok")]
    assert len(exchange.requests) == 1
    backwards = exchange.order[::-1]
    assert backwards.index("TextDelta") < backwards.index("ToolCallEnd")
    # A router without a runner cannot wait for the answer; from then on, it knows the tools.
    heard(exchange.events, pipeline)
    pipeline.router.begin_turn()
    assert announced(exchange.events, pipeline) == ["tool_call", "tool_call"]


@BOTH
def test_a_call_that_nobody_answers_was_invented_and_is_so_before_the_finish(endpoint):
    exchange = running(says([["say", "Let me see."], *ADDED], [["say", "I cannot."]], behavior=QUIET), TOOLS, endpoint)
    assert [problem.tool_name for problem in exchange.of(InvalidToolCall)] == ["lookup", "search"]
    assert [end.status for end in exchange.of(ToolCallEnd)] == ["malformed", "malformed"]
    kinds = [type(event).__name__ for event in exchange.events]
    assert kinds.index("InvalidToolCall") < kinds.index("Finish")
    assert [result.is_error for result in exchange.of(ToolResult)] == [True, True]


@BOTH
def test_where_the_server_is_said_to_run_the_tools_no_call_is_invented(endpoint):
    exchange = running("ollama-unknown-tool", TOOLS, endpoint, executes="server")
    assert exchange.of(InvalidToolCall) == []
    every = stream.CueRules(server_tools=("*",))
    assert announced(exchange.events, tools=TOOLS, rules=every) == ["tool_call"]


@BOTH
def test_a_servers_tool_that_nobody_ran_is_not_run_here_and_the_model_is_told(endpoint):
    exchange = running(says([DISCOVER], [["say", "I have no such tool."]]), TOOLS, endpoint)
    assert exchange.of(InvalidToolCall) == []
    assert exchange.results == [
        (
            "mcp_discover",
            True,
            "The tool was not run: there is no tool 'mcp_discover'; there is list_directory, read_file.",
        )
    ]
    assert exchange.text == "I have no such tool."


@BOTH
def test_the_tools_of_a_fallback_are_not_invented(endpoint):
    search = tool("web_search", lambda query: f"found {query}", query={"type": "string"})
    server = says([["announce"]], [["say", "The web says so."]], without_tools=[], endpoints=(endpoint,))

    def wrap(connection):
        class Searches:
            """Calls the tool that the fallback brings; the first question gets nothing."""

            model = "m"

            async def chat(self, messages, *, tools=None, **fields):
                asked = [message.get("role") for message in messages]
                if "tool" in asked or not any(one.name == "web_search" for one in tools or ()):
                    async for event in connection.chat(messages, tools=tools, **fields):
                        yield event
                else:
                    yield ToolCallStart("web_search", "1")
                    yield ToolCallEnd("web_search", "1", arguments_json='{"query": "x"}')

        source = stream.services.Recovery(Searches(), fallback=stream.services.Fallback(load_tools=lambda: [search]))
        return stream.ToolRunner(source, TOOLS)

    exchange = chat(server, endpoint=endpoint, wrap=wrap)
    assert exchange.results == [("web_search", False, "found x")]
    assert exchange.of(InvalidToolCall) == []
    assert [one.how for one in exchange.of(AskedAgain)] == ["without_tools", "fallback"]
    assert announced(exchange.events, tools=TOOLS) == ["tool_call"]


def test_the_tools_of_a_fallback_are_invented_in_the_questions_after_it():
    search = tool("web_search", lambda query: f"found {query}", query={"type": "string"})
    called = [ToolCallStart("web_search", "1"), ToolCallEnd("web_search", "1", arguments_json='{"query": "x"}')]

    class Searches:
        model = "m"

        async def chat(self, messages, *, tools=None, **_fields):
            offered = [one.name for one in tools or ()]
            if messages[-1]["role"] == "tool":
                yield TextDelta("The web says so.")
            elif messages[-1]["content"] == "again" or "web_search" in offered:
                for event in called:
                    yield event
            yield Finish("stop")

    async def ask():
        source = stream.services.Recovery(Searches(), fallback=stream.services.Fallback(load_tools=lambda: [search]))
        runner = stream.ToolRunner(source, TOOLS)
        questions = ([{"role": "user", "content": question}] for question in ("once", "again"))
        return [event for question in questions async for event in runner.chat(question)]

    events = asyncio.run(ask())
    results = [event for event in events if isinstance(event, ToolResult)]
    assert results[0].content == "found x"
    assert [event.reason for event in events if isinstance(event, InvalidToolCall)] == ["unknown_tool"]
    assert [event.status for event in events if isinstance(event, ToolCallEnd)] == ["ok", "malformed"]
    assert announced(events, tools=TOOLS) == ["tool_call", "error"]


@pytest.mark.parametrize("executes", ["auto", "client"])
@pytest.mark.parametrize("reason", ["stop", "STOP", "end_turn", "completed"])
@pytest.mark.parametrize("has_it", [False, True])
def test_a_call_that_the_fallback_has_run_is_not_run_again_by_the_runner_in_front(executes, reason, has_it):
    ran, asked = [], []
    search = tool("web_search", lambda query: ran.append(query) or "found", query={"type": "string"})

    class Source:
        """Nothing for the question, a call for the fallback, then the answer."""

        model = "m"

        async def chat(self, messages, *, tools=None, **_):
            asked.append([one.name for one in tools or ()])
            if messages[-1]["role"] == "tool":
                yield TextDelta("The web says so.")
            elif asked[-1] == ["web_search"]:
                yield ToolCallStart("web_search", "1")
                yield ToolCallEnd("web_search", "1", arguments_json='{"query": "x"}')
            yield Finish(reason)

    async def go():
        fallback = stream.services.Fallback(load_tools=lambda: [search])
        source = stream.services.ToolTiers(stream.services.Recovery(Source(), fallback=fallback))
        runner = stream.ToolRunner(source, [*TOOLS, *([search] if has_it else [])], executes=executes)
        return [event async for event in runner.chat([{"role": "user", "content": "Who won?"}])]

    events = asyncio.run(go())
    assert ran == ["x"]
    assert [event.content for event in events if isinstance(event, ToolResult)] == ["found"]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["The web says so."]
    assert asked == [[], ["web_search"], ["web_search"]]


@pytest.mark.parametrize("last", ["stop", "tool_calls"])
def test_text_behind_the_finish_reason_of_a_call_shows_that_the_server_ran_it(last):
    asked, ran = [], []

    class Source:
        model = "m"

        async def chat(self, messages, **_):
            asked.append(messages)
            yield ToolCallStart("look", "1")
            yield ToolCallEnd("look", "1")
            yield Finish("tool_calls")
            yield TextDelta("Here it is.")
            yield Finish(last)

    async def go():
        runner = stream.ToolRunner(Source(), [tool("look", lambda: ran.append(1))])
        return [event async for event in runner.chat([{"role": "user", "content": "Look."}])]

    asyncio.run(go())
    assert (ran, len(asked)) == ([], 1)


@BOTH
@pytest.mark.parametrize(("name", "asked"), [("look", 2), ("mcp_look", 1)], ids=["the client's", "the server's"])
def test_a_tool_that_is_called_in_the_text_runs_whatever_words_follow_the_call(endpoint, name, asked):
    ran = []
    written = f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>\nI am looking.'
    server = says([["say", written]], [["say", "It is red."]])
    look = tool("look", lambda: ran.append(1))
    exchange = chat(server, endpoint=endpoint, wrap=lambda connection: stream.ToolRunner(connection, [look]))
    assert exchange.of(Finish)[0].reason == "stop"
    assert (len(ran), len(exchange.requests)) == (asked - 1, asked)


@BOTH
@pytest.mark.parametrize(
    ("beside", "ran"),
    [
        ('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', [1]),
        ("<tool_call>{'name': 'look'}</tool_call>", [1]),
        (None, []),
    ],
    ids=["an invented tool", "no name that can be read", "nothing but that"],
)
def test_an_invalid_call_in_the_text_does_not_make_the_words_behind_it_the_servers(endpoint, beside, ran):
    runs = []
    valid, unreadable = (
        '<tool_call>{"name": "look", "arguments": {}}</tool_call>',
        "<tool_call>{'name': 'look'}</tool_call>",
    )
    written = valid + beside if beside else unreadable
    server = says([["say", f"{written}\nI am looking."]], [["say", "It is red."]])
    look = tool("look", lambda: runs.append(1))
    exchange = chat(server, endpoint=endpoint, wrap=lambda connection: stream.ToolRunner(connection, [look]))
    assert runs == ran
    assert exchange.text.endswith("It is red.")
    if not beside:
        _question, answer, reason = exchange.bodies[-1]["messages"]
        assert answer["content"].strip() == "I am looking."
        assert answer["tool_calls"][0]["function"]["name"] == "unreadable_call"
        assert (reason["role"], reason["content"]) == (
            "tool",
            "The tool was not run: the call has no name that can be read.",
        )


def test_a_call_that_one_validator_rejected_is_not_reported_by_the_next():
    async def go():
        async def answer():
            yield ToolCallStart("fly", "1")
            yield ToolCallEnd("fly", "1")
            yield ToolCallStart("swim", "2", 1)
            yield ToolCallEnd("swim", "2", 1)

        outer = stream.services.Validator(TOOLS)
        inner = stream.services.Validator([tool("swim")])
        return [event async for event in outer.watch(inner.watch(answer()))]

    events = asyncio.run(go())
    assert [event.tool_name for event in events if isinstance(event, InvalidToolCall)] == ["fly", "swim"]
    assert [event.status for event in events if isinstance(event, ToolCallEnd)] == ["malformed", "malformed"]


@pytest.mark.parametrize("patterns", ["mcp_*", (1,), 3], ids=repr)
def test_patterns_that_are_none_are_refused(patterns):
    with pytest.raises(StreamTypeError, match="server_tools"):
        stream.CueRules(server_tools=patterns)
    with pytest.raises(StreamTypeError, match="server_tools"):
        stream.services.Validator(TOOLS, server_tools=patterns)


FENCED = '```json\n{"name": "%s", "arguments": {"pattern": "*"}}\n```'


@pytest.mark.parametrize(
    ("text", "calls", "spoken"),
    [
        (FENCED % "mcp_discover", ["mcp_discover"], ""),
        (FENCED % "find_files", [], FENCED % "find_files"),
        ('[mcp_discover(pattern="*file*")]', ["mcp_discover"], ""),
        ('[Point(x="1")]', [], '[Point(x="1")]'),
        ('{"name": "mcp_discover"}', [], '{"name": "mcp_discover"}'),
        ("Call mcp_discover() first.", [], "Call mcp_discover() first."),
    ],
    ids=["fence", "fence of another", "list", "list of another", "name alone", "as a function"],
)
def test_in_text_a_servers_tool_is_no_documentation_but_prose_may_name_it(text, calls, spoken):
    reader = stream.TextReader(["read_file"])
    events = [*reader.feed(text), *reader.close()]
    assert [event.tool_name for event in events if isinstance(event, ToolCallEnd)] == calls
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == spoken
