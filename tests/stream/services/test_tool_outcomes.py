"""Whatever a tool raises or returns is an outcome, and whatever is said can be sent."""

import asyncio
import concurrent.futures
import datetime as dt
import enum
import json
import threading
import uuid

import pytest

import stream
from stream.events import ToolCallEnd, ToolResult
from tests.support.model_server import BOTH, QUESTION, calling, chat, running, says, tool

TOGETHER = pytest.mark.parametrize("parallel", [True, False], ids=["together", "one by one"])


class CallingFirst:
    """A source that makes calls at first, and asks a connection then."""

    model = "scripted"

    def __init__(self, connection, calls):
        self._connection, self._calls = connection, calls

    async def chat(self, messages, **fields):
        calls, self._calls = self._calls, ()
        for number, (name, written) in enumerate(calls):
            yield ToolCallEnd(name, f"c{number}", number, written, "ok")
        if not calls:
            async for event in self._connection.chat(messages, **fields):
                yield event


def answered(endpoint, tools, *calls):
    """Events of a turn that begins with these calls, and the requests that follow."""
    wrap = lambda connection: stream.ToolRunner(CallingFirst(connection, calls), tools)  # noqa: E731
    return chat(says([["say", "Done."]]), endpoint=endpoint, wrap=wrap)


class MuteError(Exception):
    def __str__(self):
        raise ValueError("even its words fail")


def raising(error):
    def fail():
        raise error

    return fail


def raising_later(error):
    async def fail():
        raise error

    return fail


@BOTH
@TOGETHER
@pytest.mark.parametrize(
    ("fail", "told"),
    [
        (raising(asyncio.CancelledError()), "CancelledError"),
        (raising_later(asyncio.CancelledError()), "CancelledError"),
        (raising_later(asyncio.CancelledError("the other side hung up")), "CancelledError: the other side hung up"),
        (raising(concurrent.futures.CancelledError()), "CancelledError"),
        (raising(StopIteration()), "StopIteration"),
        (raising(SystemExit(2)), "SystemExit: 2"),
        (raising_later(SystemExit(2)), "SystemExit: 2"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising_later(BaseExceptionGroup("of a task group", [asyncio.CancelledError()])),
            "BaseExceptionGroup: of a task group (1 sub-exception)"),
        (raising(MuteError()), "MuteError"),
    ],
    ids=[
        "cancelled", "cancelled later", "cancelled with words", "a future of its own", "no next item", "exit",
        "exit later", "a closed generator", "a cancelled group", "an exception without words",
    ],
)  # fmt: skip
def test_whatever_a_tool_raises_is_an_outcome_and_the_turn_goes_on(endpoint, parallel, fail, told):
    server = calling(("burn", {}), ("fine", {}), then="It burned.")
    exchange = running(server, [tool("burn", fail), tool("fine", lambda: "fine")], endpoint, parallel=parallel)
    assert sorted(exchange.results) == [("burn", True, told), ("fine", False, "fine")]
    assert exchange.text == "It burned."


def test_tools_that_hang_take_no_thread_of_others_and_do_not_keep_the_program_alive():
    released = threading.Event()
    rescue = threading.Timer(10.0, released.set)
    rescue.start()

    class ThenElsewhere:
        """A connection that uses asyncio's own threads before it asks."""

        model = "m"

        def __init__(self, connection):
            self.connection = connection

        async def chat(self, messages, **fields):
            async with asyncio.timeout(5.0):
                assert await asyncio.to_thread(lambda: 1) == 1
            async for event in self.connection.chat(messages, **fields):
                yield event

    tools = [tool("hang", released.wait), tool("fine", lambda: "fine")]
    server = calling(*[("hang", {})] * 40, ("fine", {}))
    wrap = lambda c: stream.ToolRunner(ThenElsewhere(c), tools, timeout_s=0.3)  # noqa: E731
    exchange = chat(server, wrap=wrap)
    assert exchange.results[0] == ("fine", False, "fine")
    assert [result[2] for result in exchange.results[1:]] == ["The tool took longer than 0.3 s."] * 40
    assert exchange.text == "Done."
    assert not released.is_set(), "the loop ended while the tools were hanging"
    rescue.cancel()
    released.set()


async def cancelling_itself():
    asyncio.current_task().cancel()
    await asyncio.Event().wait()


async def cancelling_itself_at_the_end():
    asyncio.current_task().cancel()
    return "done"


@BOTH
@TOGETHER
@pytest.mark.parametrize(
    ("function", "told"),
    [(cancelling_itself, (True, "CancelledError")), (cancelling_itself_at_the_end, (False, "done"))],
    ids=["and waiting", "and returning"],
)
def test_a_tool_that_cancels_its_own_task_does_not_cancel_the_turn(endpoint, parallel, function, told):
    tools = [tool("f", function), tool("fine", lambda: "fine")]
    exchange = running(calling(("f", {}), ("fine", {})), tools, endpoint, parallel=parallel)
    assert sorted(exchange.results) == [("f", *told), ("fine", False, "fine")]
    assert exchange.text == "Done."


@TOGETHER
def test_a_turn_that_is_cancelled_ends_its_tools_and_brings_no_result(parallel):
    async def go():
        begun, ended, events = asyncio.Event(), [], []

        async def wait():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("wait")

        async def turn():
            source = CallingFirst(None, [("wait", "{}")])
            async for event in stream.ToolRunner(source, [tool("wait", wait)], parallel=parallel).chat(QUESTION):
                events.append(event)  # noqa: PERF401  (those before it is cancelled are kept)

        task = asyncio.create_task(turn())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        return ended, [event for event in events if isinstance(event, ToolResult)]

    assert asyncio.run(asyncio.wait_for(go(), 10.0)) == (["wait"], [])


@BOTH
@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "a half \ud83d and \udcff"}],
        [{"role": "user", "content": [{"type": "text", "text": "a half \ud83d and \udcff"}]}],
    ],
    ids=["text", "parts"],
)
def test_a_text_with_halves_of_characters_can_be_asked(endpoint, messages):
    exchange = running(says([["say", "Yes."]]), [tool("f", lambda: "")], endpoint, {"messages": messages})
    assert exchange.text == "Yes."
    assert "a half \ufffd and \ufffd" in json.dumps(exchange.bodies[0], ensure_ascii=False)


@BOTH
def test_halves_of_characters_in_names_arguments_results_and_errors_reach_the_model_as_text(endpoint):
    tools = [tool("echo", lambda text: text, text={"type": "string"}), tool("burn", raising(ValueError("\udcff")))]
    exchange = answered(endpoint, tools, ("echo", '{"text": "\ud83d"}'), ("burn", "{}"), ("no\udcff", "{}"))
    assert sorted(content for _, _, content in exchange.results)[1:] == ["ValueError: \ufffd", "\ufffd"]
    assert exchange.text == "Done."


@BOTH
@pytest.mark.parametrize(
    "written",
    ['{"n": 1e999}', '{"n": -1e999}', '{"n": ' + "9" * 5000 + "}", '{"n": ' + "[" * 700 + "]" * 700 + "}",
     '{"n": ' + "[" * 9000 + "]" * 9000 + "}", '{"\\ud83d": "\\udcff"}'],
    ids=["infinite", "minus infinite", "long", "deep", "deeper", "halves"],
)  # fmt: skip
def test_arguments_that_no_request_can_hold_do_not_end_the_turn(endpoint, written):
    exchange = answered(endpoint, [stream.Tool(name="f", function=lambda **given: len(given))], ("f", written))
    assert len(exchange.results) == 1
    assert exchange.text == "Done."


class Room(enum.Enum):
    KITCHEN = "kitchen"


KEYS = [
    (dt.date(2026, 11, 24), "2026-11-24"),
    (Room.KITCHEN, "Room.KITCHEN"),
    ((59.9, 10.7), "(59.9, 10.7)"),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (b"a", "b'a'"),
    *((7, "7"), (0.5, "0.5"), (True, "true"), (None, "null"), ("text", "text")),
]


@pytest.mark.parametrize(("key", "written"), KEYS, ids=[type(key).__name__ for key, _ in KEYS])
@pytest.mark.parametrize("place", ["on top", "inside", "of MCP"])
def test_a_result_with_keys_that_json_does_not_have_reaches_the_model_as_text(key, written, place):
    given, told = {key: 3}, {written: 3}
    if place == "of MCP":
        given = {"content": [], "isError": False, "structuredContent": given}
    elif place == "inside":
        given, told = {"days": (given, [given])}, {"days": [told, [told]]}
    exchange = running(calling(("f", {})), [tool("f", lambda: given)])
    ((_, is_error, content),) = exchange.results
    assert (is_error, json.loads(content)) == (False, told)
    assert exchange.bodies[-1]["messages"][-1]["content"] == content
