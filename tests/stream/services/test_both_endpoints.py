"""Tool calls on both endpoints: in the request, in the stream, in order; nothing changes without tools."""

import asyncio

import pytest

import stream
from stream.errors import StreamValueError
from stream.events import Finish, TaskStatus, TextDelta, ToolCallEnd, ToolResult, Usage
from stream.replay.server import ReplayServer
from tests.support.model_server import BOTH, QUESTION, TOOLS, chat, running, says


@pytest.mark.parametrize("tools", [None, []], ids=["none", "an empty list"])
@BOTH
def test_without_tools_the_request_is_as_if_tools_did_not_exist(endpoint, tools):
    exchange = chat("ollama-plain-text", endpoint=endpoint, tools=tools, tool_choice="required")
    assert set(exchange.bodies[0]) <= {"model", "messages", "stream", "stream_options"}
    assert exchange.bodies[0]["messages"] == QUESTION


@BOTH
def test_without_calls_only_text_usage_and_the_end_come(endpoint):
    plain = chat("ollama-plain-text", endpoint=endpoint)
    offered = chat("ollama-plain-text", endpoint=endpoint, tools=TOOLS, model="mistral")
    assert {type(event) for event in plain.events} == {TextDelta, Usage, Finish}
    assert plain.events == offered.events
    assert plain.text == "It is sunny in Paris."


@BOTH
def test_services_in_front_change_nothing_of_a_stream_without_tools(endpoint):
    bare = chat("ollama-plain-text", endpoint=endpoint)
    stacked = chat(
        "ollama-plain-text",
        endpoint=endpoint,
        wrap=lambda c: stream.ToolRunner(stream.services.ToolTiers(stream.services.Recovery(c)), []),
    )
    assert stacked.events == bare.events
    assert stacked.bodies == bare.bodies


@BOTH
def test_the_usage_comes_before_the_end_of_the_answer(endpoint):
    assert chat("ollama-plain-text", endpoint=endpoint).order == ["TextDelta", "Usage", "Finish"]
    called = chat("ollama-tool-call", endpoint=endpoint, tools=TOOLS)
    assert called.order == ["TextDelta", "ToolCallStart", "ToolCallEnd", "Usage", "Finish"]


def test_without_usage_the_end_comes_all_the_same_and_keeps_its_place_before_what_follows():
    bare = chat("openai-no-finish", endpoint="chat")
    assert bare.order == ["TextDelta", "StreamFailed"]
    cut = chat("fork-text-after-finish", endpoint="chat", options={"usage": False}, tools=TOOLS)
    assert cut.order == ["ToolCallStart", "ToolCallEnd", "Finish", "TextDelta", "Usage", "Finish"]
    silent = chat("ollama-announced-calls", endpoint="chat", tools=TOOLS)
    assert silent.order == ["Usage", "Finish"]
    empty = chat("ollama-empty-tool-calls", endpoint="chat", tools=TOOLS)
    assert empty.order == ["Usage", "Finish", "EmptyToolCalls"]


# In the stream


@BOTH
def test_thoughts_whose_opening_tag_is_in_the_prompt_are_reasoning_in_each_round(endpoint):
    server = says(
        [["say", "They want a list.</think>\n\nLet me look."], ["call", "list_directory", {"path": "."}]],
        [["say", "Two files.</think>\n\nThere are two."]],
    )
    exchange = running(server, endpoint=endpoint, fields={"options": {"start": "reasoning"}})
    assert exchange.text.split("\n\n") == ["Let me look.", "There are two."]
    assert exchange.thinking == "They want a list.Two files."
    assert exchange.results


@BOTH
def test_a_server_that_tells_thoughts_apart_may_be_read_so_all_the_same(endpoint):
    exchange = chat(
        says([["think", "They greet me."], ["say", "Good evening."]]), endpoint=endpoint, options={"start": "reasoning"}
    )
    assert (exchange.thinking, exchange.text) == ("They greet me.", "Good evening.")


@BOTH
def test_data_that_was_asked_for_is_no_thought(endpoint):
    for text, thoughts in (('{"a": 1}', ""), ('One.</think>{"a": 1}', "One.")):
        exchange = chat(says([["say", text]]), endpoint=endpoint, options={"start": "reasoning"}, format="json")
        assert (exchange.thinking, exchange.text) == (thoughts, '{"a": 1}')


def test_an_unknown_start_raises_before_anything_is_asked():
    with pytest.raises(StreamValueError, match="start is 'thoughts'"):
        stream.connect("http://localhost:1", "m", start="thoughts")


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


# While it is written


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
            stream.connect(server.base_url, "m", api=endpoint) as connection,
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
