"""Who runs the tools, what becomes of every outcome, and what goes back to the model."""

import asyncio
import json
import re

import pytest

import stream
from stream.errors import StreamError
from stream.events import StreamFailed
from stream.replay.recording import Recording
from stream.replay.scenarios import names
from tests.support.model_server import BOTH, TOOLS, calling, running, says, tool

SERVER_RUNS = [
    (name, endpoint)
    for name in names()
    if name.startswith("fork-") and name not in ("fork-raw-json", "fork-json-channel", "fork-text-channel")
    for endpoint in ("chat", "ollama")
]


@pytest.mark.parametrize(("name", "endpoint"), SERVER_RUNS, ids=lambda value: value)
def test_where_the_server_runs_the_tools_nothing_is_run_here(name, endpoint):
    ran = []
    exchange = running(name, [tool("list_directory", lambda **given: ran.append(given))], endpoint)
    assert ran == []
    assert len(exchange.requests) <= 1


def test_who_runs_the_tools_can_be_said():
    ran = []
    tools = [tool("list_directory", lambda **given: ran.append(given) or "a.txt")]
    running("fork-tool-call", tools, executes="client", rounds=1)
    assert ran == [{"path": "/home/user"}]
    assert len(running("ollama-tool-call", TOOLS, executes="server").requests) == 1


def test_text_between_a_call_and_its_result_does_not_keep_it_from_being_run():
    exchange = running("vllm-text-after-call", TOOLS)
    assert exchange.results == [("list_directory", False, '["a.txt", "b.txt"]')]
    assert exchange.text.endswith("There are two files.")


@BOTH
@pytest.mark.parametrize("kind", ["sync", "async", "returns an awaitable"])
def test_sync_and_async_tools_run_alike(endpoint, kind):
    async def slow(n):
        await asyncio.sleep(0)
        return n + 1

    def later(n):
        return slow(n)

    functions = {"sync": lambda n: n + 1, "async": slow, "returns an awaitable": later}
    exchange = running(calling(("add", {"n": 1})), [tool("add", functions[kind], n={"type": "integer"})], endpoint)
    assert exchange.results == [("add", False, "2")]


def test_the_calls_of_one_answer_run_at_the_same_time_and_their_results_come_as_they_are_ready():
    async def go_first():
        await second_done.wait()
        for _ in range(5):  # long enough for the other's result to be on its way
            await asyncio.sleep(0)
        return "first"

    async def go_second():
        second_done.set()
        return "second"

    second_done = asyncio.Event()
    server = calling(("first", {}), ("second", {}))
    exchange = running(server, [tool("first", go_first), tool("second", go_second)])
    assert [result[2] for result in exchange.results] == ["second", "first"]
    answers = [message["content"] for message in exchange.bodies[1]["messages"] if message["role"] == "tool"]
    assert answers == ["first", "second"], "the model gets them in the order of its calls"


def test_switched_off_they_run_one_after_the_other():
    order = []
    tools = [tool(name, lambda name=name: order.append(name)) for name in ("first", "second")]
    running(calling(("first", {}), ("second", {})), tools, parallel=False)
    assert order == ["first", "second"]


def test_a_tool_that_takes_too_long_is_given_up():
    async def forever():
        await asyncio.Event().wait()

    exchange = running(calling(("wait", {})), [tool("wait", forever)], timeout_s=0.01)
    assert exchange.results == [("wait", True, "The tool took longer than 0.01 s.")]


def test_a_long_result_is_cut_and_says_so():
    exchange = running(calling(("much", {})), [tool("much", lambda: "x" * 50)], longest_result=10)
    assert exchange.results == [("much", False, "xxxxxxxxxx\n[cut: 40 more characters]")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a", "a"),
        (["ä", 1], '["ä", 1]'),
        ({"x": None}, '{"x": null}'),
        (2.5, "2.5"),
        (set, "<class 'set'>"),
    ],
    ids=str,
)
def test_whatever_a_tool_returns_becomes_text(value, text):
    exchange = running(calling(("get", {})), [tool("get", lambda: value)])
    assert exchange.results[0][2].strip('"') == text.strip('"')


@BOTH
def test_calls_without_ids_are_told_apart_when_their_results_go_back(endpoint):
    if endpoint == "chat":
        exchange = running("litellm-empty-ids", TOOLS)
        messages = exchange.bodies[1]["messages"]
        ids = [call["id"] for call in messages[1]["tool_calls"]]
        assert len(set(ids)) == 2
        assert [message["tool_call_id"] for message in messages[2:]] == ids
    else:
        from stream.replay.behavior import Behavior

        exchange = running(
            says([["call", "list_directory", {"path": "."}]], [["say", "Done."]], behavior=Behavior(ids="none")),
            TOOLS,
            "ollama",
        )
        assert exchange.bodies[1]["messages"][-1]["tool_name"] == "list_directory"


def test_a_forced_choice_holds_for_the_first_round_alone():
    exchange = running("ollama-tool-call", TOOLS, fields={"tool_choice": "required", "temperature": 0.1})
    assert [body.get("tool_choice") for body in exchange.bodies] == ["required", None]
    assert [body["temperature"] for body in exchange.bodies] == [0.1, 0.1]


def test_rounds_are_bounded_and_the_last_one_offers_no_tools_so_that_an_answer_comes():
    server = says([["call", "read_file", {"path": "a"}]], without_tools=[["say", "Enough."]])
    exchange = running(server, TOOLS, rounds=2)
    assert ["tools" in body for body in exchange.bodies] == [True, True, False]
    assert exchange.text == "Enough."


@BOTH
def test_a_stream_that_fails_after_a_call_runs_nothing(endpoint):
    ran = []
    server = says([["call", "read_file", {"path": "a"}], ["break"]])
    exchange = running(server, [tool("read_file", lambda **given: ran.append(given))], endpoint)
    assert isinstance(exchange.events[-1], StreamFailed)
    assert ran == []


def test_the_rounds_messages_are_handed_to_the_callers_history():
    added = []
    running("ollama-tool-call", TOOLS, fields={"added": added})
    assert [message["role"] for message in added] == ["assistant", "tool"]
    assert added[0]["content"] == "Let me look."
    assert added[0]["tool_calls"][0]["function"] == {"name": "list_directory", "arguments": '{"path": "."}'}


@BOTH
@pytest.mark.parametrize("after", ["Two files.", " Two files.", "\nTwo files."])
def test_words_with_a_call_between_them_are_apart_in_the_message_that_goes_back(endpoint, after):
    answer = [["say", "Let me check that"], ["call", "list_directory", {"path": "."}], ["say", after]]
    exchange = running(says(answer, [["say", "Done."]]), TOOLS, endpoint, executes="client")
    content = exchange.bodies[1]["messages"][1]["content"]
    assert content.replace("\n", " ") == "Let me check that Two files."


def test_arguments_that_are_no_json_go_back_as_none_because_servers_refuse_them():
    server = says([["call", "read_file", "{broken"]], [["say", "Sorry."]], endpoints=("chat",))
    exchange = running(server, TOOLS)
    assert exchange.bodies[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert exchange.results[0][1] is True


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tools": [tool("idle")]}, "no function"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 1.5}, "rounds is 1.5"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"timeout_s": "30"}, "timeout_s is '30'"),
        ({"longest_result": -1}, "longest_result"),
        ({"executes": "nobody"}, "executes"),
        ({"validation": "maybe"}, "strictness"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_runner_that_could_not_work_is_refused_when_it_is_made(options, says):
    connection = stream.connect("http://localhost:1", "m")
    with pytest.raises(StreamError, match=says):
        stream.ToolRunner(connection, options.pop("tools", TOOLS), **options)


def test_a_call_that_came_without_an_id_gets_one_that_mistrals_servers_take():
    server = says([["say", '[TOOL_CALLS]list_directory[ARGS]{"path": "."}']], [["say", "Two files."]])
    asked, answered = running(server, TOOLS).bodies[1]["messages"][-2:]
    assert re.fullmatch("[a-zA-Z0-9]{9}", asked["tool_calls"][0]["id"])
    assert answered["tool_call_id"] == asked["tool_calls"][0]["id"]


SIGNED = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "c2ln", "id": "c1", "index": 0}
WANTS_BACK = {  # a server's first deltas, and the field of the call's message that it refuses to miss or to see
    "DeepSeek": (
        [{"reasoning_content": "Look "}, {"reasoning_content": "first."}],
        {},
        "reasoning_content",
        "Look first.",
    ),
    "Groq": ([{"reasoning": "Look first."}], {}, "reasoning_content", None),
    "Gemini": ([], {"extra_content": SIGNED}, "tool_calls", SIGNED),
    # As OpenRouter sends the thoughts of Gemini and of Claude (agno-agi/agno 5802); strict servers refuse the field.
    "OpenRouter": (
        [
            {"reasoning": "Look ", "reasoning_details": [{"type": "reasoning.text", "text": "Look ", "index": 0}]},
            {"reasoning": "first.", "reasoning_details": [{"type": "reasoning.text", "text": "first.", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.text", "text": None, "signature": "Et8B", "index": 0}]},
            {"content": "", "reasoning_details": [ENCRYPTED]},
        ],
        {},
        "reasoning_details",
        [{"type": "reasoning.text", "text": "Look first.", "signature": "Et8B", "index": 0}, ENCRYPTED],
    ),
    "any other": ([{"reasoning_content": "Look first."}], {}, "reasoning_details", None),
}


class Strict:
    """A server that answers a result only if the call's message has what the server sent with the call."""

    as_recorded, pages = False, {}

    def __init__(self, thoughts, beside, field, wanted):
        self.deltas = [*thoughts, {"tool_calls": [{**CALLED, **beside}]}]
        self.field, self.wanted = field, wanted

    def answer(self, _, request):
        if request["messages"][-1]["role"] != "tool":
            return sent(*self.deltas, finish="tool_calls")
        back = request["messages"][-2].get(self.field)
        if (back[0].get("extra_content") if self.field == "tool_calls" else back) != self.wanted:
            body = json.dumps({"error": {"message": f"{self.field} must be passed back", "code": 400}}).encode()
            return Recording(name="own", kind="json", body=body, status=400)
        return sent({"content": "Two files."}, finish="stop")


CALLED = {"id": "c1", "type": "function", "function": {"name": "list_directory", "arguments": '{"path": "."}'}}


def sent(*deltas, finish):
    choices = [*({"delta": delta} for delta in deltas), {"delta": {}, "finish_reason": finish}]
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
    return Recording(name="own", kind="sse", body=f"{body}data: [DONE]\n\n".encode())


@pytest.mark.parametrize("server", WANTS_BACK)
def test_a_server_gets_back_with_a_call_what_it_sent_with_it(server):
    exchange = running(Strict(*WANTS_BACK[server]), TOOLS)
    assert (exchange.text, exchange.failure) == ("Two files.", None)
