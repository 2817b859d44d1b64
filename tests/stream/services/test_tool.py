"""One type of tool from many sources; the sample pair; what may stand in a debug log."""

import ast
import asyncio
import enum
import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, lru_cache, partial, update_wrapper
from types import SimpleNamespace
from typing import Annotated, Literal

import mcp.types
import pydantic
import pytest

import stream
from stream.errors import StreamTypeError, StreamValueError
from stream.services.answer import run_tool
from tests.support.model_server import BOTH, chat, running, says

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize(
    "source",
    [
        {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA}},
        {"name": "w", "description": "d", "parameters": SCHEMA},
        {"name": "w", "description": "d", "schema": {"parameters": SCHEMA}},
        {"name": "w", "description": "d", "schema": {"parametersJsonSchema": SCHEMA}},
        {"name": "w", "description": "d", "parametersJsonSchema": SCHEMA},
        {"name": "w", "description": "d", "inputSchema": SCHEMA},
        {"name": "w", "description": "d", "input_schema": SCHEMA},
        SimpleNamespace(name="w", title=None, description="d", inputSchema=SCHEMA),
        SimpleNamespace(name="w", title=None, description="d", input_schema=SCHEMA),
        mcp.types.Tool.model_validate({"name": "w", "description": "d", "inputSchema": SCHEMA}),
        stream.Tool(name="w", description="d", parameters=SCHEMA),
    ],
    ids=[
        "openai",
        "bare",
        "gemini cli of 2025",
        "gemini cli",
        "gemini",
        "mcp dict",
        "mcp dict in snake case",
        "mcp object",
        "mcp 2 object",
        "mcp package",
        "tool",
    ],
)
def test_every_form_of_a_tool_makes_the_same_tool(source):
    assert stream.Tool.of(source) == stream.Tool(name="w", description="d", parameters=SCHEMA)


def openai_tool(**fields):
    return {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA, **fields}}


@BOTH
@pytest.mark.parametrize("strict", [True, False, None])
def test_strict_is_sent_where_a_tool_gives_it_and_nowhere_else(endpoint, strict):
    given = {} if strict is None else {"strict": strict}
    for tool in (openai_tool(**given), {**openai_tool(**given)["function"]}, stream.Tool.of(openai_tool(**given))):
        body = chat("ollama-plain-text", endpoint=endpoint, model="mistral", tools=[tool]).bodies[0]
        assert body["tools"] == [openai_tool(**given)]


def test_a_strict_that_is_no_bool_is_refused():
    with pytest.raises(StreamTypeError, match="strict of w is 'yes'; it must be a bool or None"):
        stream.Tool.of(openai_tool(strict="yes"))


def test_a_function_with_type_hints_is_a_tool():
    class Unit(enum.Enum):
        C = "celsius"
        F = "fahrenheit"

    def get_weather(
        city: Annotated[str, "name of the city"],
        days: int = 1,
        unit: Unit = Unit.C,
        mode: Literal["short", "long"] = "short",
        tags: list[str] | None = None,
    ) -> str:
        """Get the weather
        in a city.

        More that the model need not read.
        """

    made = stream.Tool.of(get_weather)
    properties = made.parameters["properties"]
    assert (made.name, made.description) == ("get_weather", "Get the weather in a city.")
    assert made.parameters["required"] == ["city"]
    assert properties["city"] == {"type": "string", "description": "name of the city"}
    assert properties["days"] == {"type": "integer", "default": 1}
    assert properties["mode"]["enum"] == ["short", "long"]
    assert "title" not in {*made.parameters, *properties["city"]}


def test_pydantics_fields_describe_an_argument_too():
    def speak(
        lang: Annotated[str, pydantic.Field(description="its language", min_length=2)] = "en",
        voice: str = pydantic.Field("low", description="a voice"),
    ) -> str:
        return f"{lang} {voice}"

    made = stream.Tool.of(speak)
    lang = {"type": "string", "default": "en", "description": "its language", "minLength": 2}
    voice = {"type": "string", "default": "low", "description": "a voice"}
    assert made.parameters["properties"] == {"lang": lang, "voice": voice}
    assert made.function(lang="de") == "de low"


def test_a_function_without_parameters_is_a_tool_where_nothing_else_was_imported():
    code = "import stream\ndef now(): ...\nprint(stream.Tool.of(now).parameters)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(ran.stdout) == {"type": "object", "properties": {}}


@dataclass
class Place:
    city: str
    country: str = "NO"


def test_arguments_are_converted_to_the_hinted_types_when_the_tool_runs():
    seen = []

    def visit(place: Place, when: float) -> str:
        """Visit a place."""
        seen.append((place, when))
        return "ok"

    server = says([["call", "visit", {"place": {"city": "Oslo"}, "when": 3}]], [["say", "Done."]])
    exchange = running(server, [visit])
    assert seen == [(Place("Oslo", "NO"), 3.0)]
    assert exchange.results == [("visit", False, "ok")]


STRUCTURED = ("structuredContent", "structured_content")  # a dict in every form
SNAKE = {"isError": "is_error", "structuredContent": "structured_content"}


def objects(value):
    if isinstance(value, list):
        return [objects(one) for one in value]
    if isinstance(value, dict):
        fields = {name: one if name in STRUCTURED else objects(one) for name, one in value.items()}
        return SimpleNamespace(**fields)
    return value


def snake(result):
    return {SNAKE.get(name, name): value for name, value in result.items()}


RESULT = mcp.types.CallToolResult
FILE = {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "of a file"}}
TEXT = {"type": "text", "text": "12 degrees"}
LINK = {"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESULTS = {
    "a text": ({"content": [TEXT, IMAGE]}, (False, "12 degrees")),
    "an error": ({"content": [TEXT], "isError": True}, (True, "12 degrees")),
    "an embedded file": ({"content": [TEXT, FILE], "isError": False}, (False, "12 degrees\nof a file")),
    "a linked file": ({"content": [LINK]}, (False, "a.txt: file:///a.txt")),
    "structured alone": ({"content": [], "structuredContent": {"t": 12}, "isError": False}, (False, '{"t": 12}')),
    "nothing": ({"content": [], "isError": False}, (False, "")),
}
FORMS = {
    "dict": lambda result: result,
    "dict in snake case": snake,
    "object": objects,
    "object in snake case": lambda result: objects(snake(result)),
    "package": RESULT.model_validate,
    "package's dict": lambda result: RESULT.model_validate(result).model_dump(),
    "package's dict by alias": lambda result: RESULT.model_validate(result).model_dump(by_alias=True),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("result", RESULTS)
def test_every_form_of_an_mcp_result_is_its_text_and_whether_it_failed(form, result):
    sent, wanted = RESULTS[result]
    tool = stream.Tool(name="w", function=lambda: FORMS[form](sent))
    assert asyncio.run(run_tool(tool, {}, 10.0)) == wanted


@pytest.mark.parametrize(
    "value",
    [{"content": ["a"]}, {"content": []}, {"content": "a", "isError": True}, {"content": [{"type": "chapter"}]}],
)
def test_a_dict_that_is_no_mcp_result_reaches_the_model_whole(value):
    assert asyncio.run(run_tool(stream.Tool(name="w", function=lambda: value), {}, 10.0)) == (False, json.dumps(value))


def test_an_mcp_session_runs_the_tools_that_it_lists():
    class Session:
        def __init__(self):
            self.calls = []

        async def call_tool(self, name, arguments):
            self.calls.append((name, arguments))
            failed = arguments["city"] == "Atlantis"
            texts = [SimpleNamespace(type="text", text="12 degrees"), SimpleNamespace(type="image", data="…")]
            return SimpleNamespace(content=texts, isError=failed)

    session = Session()
    listed = SimpleNamespace(name="weather", title=None, description="Weather", inputSchema=SCHEMA)
    made = stream.Tool.of_mcp(listed, session.call_tool)
    server = says([["call", "weather", {"city": "Oslo"}], ["call", "weather", {"city": "Atlantis"}]], [["say", "x"]])
    exchange = running(server, [made])
    assert session.calls == [("weather", {"city": "Oslo"}), ("weather", {"city": "Atlantis"})]
    assert sorted(exchange.results) == [("weather", False, "12 degrees"), ("weather", True, "12 degrees")]


class Switch:
    """Switch a lamp."""

    def __init__(self):
        self.seen = []

    def __call__(self, lamp: str, on: bool = True) -> str:
        self.seen.append((lamp, on))
        return "ok"


class AsyncSwitch(Switch):
    async def __call__(self, lamp: str, on: bool = True) -> str:
        return super().__call__(lamp, on)


@pytest.mark.parametrize("kind", [Switch, AsyncSwitch])
def test_an_object_to_call_is_a_tool_with_the_name_of_its_class(kind):
    switch = kind()
    made = stream.Tool.of(switch)
    assert (made.name, [*made.parameters["properties"]]) == (kind.__name__, ["lamp", "on"])
    assert made.parameters["required"] == ["lamp"]
    assert asyncio.run(run_tool(made, {"lamp": "desk", "on": "false"}, 10.0)) == (False, "ok")
    assert switch.seen == [("desk", False)]
    assert stream.Tool.of(Switch()).description == "Switch a lamp."


def test_the_bound_arguments_of_a_partial_are_neither_shown_to_the_model_nor_replaced_by_it():
    def search(site: str, query: str, days: int = 7, key: str = "") -> str:
        """Search a site."""
        return f"{site} {query} {days + 1} {key}"

    made = stream.Tool.of(partial(partial(search, "wiki"), key="hunter2"))
    assert (made.name, made.description) == ("search", "Search a site.")
    assert [*made.parameters["properties"]] == ["query", "days"]
    assert "hunter2" not in json.dumps(made.openai())
    arguments = {"query": "Oslo", "days": "1", "key": "mine"}
    assert asyncio.run(run_tool(made, arguments, 10.0)) == (False, "wiki Oslo 2 hunter2")
    assert stream.Tool.of(partial(Switch(), on=False)).name == "Switch"


class Counted:
    """A decorator that is an object."""

    def __init__(self, function):
        update_wrapper(self, function)
        self.function, self.n_calls = function, 0

    def __call__(self, *args, **arguments):
        self.n_calls += 1
        return self.function(*args, **arguments)


@pytest.mark.parametrize("wrap", [cache, lru_cache(maxsize=4), Counted], ids=["cache", "lru_cache", "an object"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_that_a_decorator_has_made_an_object_is_a_tool_like_the_function(wrap, is_async):
    def look(city: str, days: int = 1) -> str:
        """Look."""
        return f"{city} {days + 1}"

    async def later(city: str, days: int = 1) -> str:
        """Look."""
        return look(city, days)

    wrapped = wrap(later if is_async else look)
    made = stream.Tool.of(wrapped)
    assert (made.name, made.description) == ("later" if is_async else "look", "Look.")
    assert made.parameters == stream.Tool.of(look).parameters
    assert asyncio.run(run_tool(made, {"city": "Oslo", "days": "2"}, 10.0)) == (False, "Oslo 3")
    assert stream.Tool.of(partial(wrapped, "Oslo")).parameters["properties"].keys() == {"days"}


def test_an_object_to_call_with_a_name_of_its_own_has_that():
    named = Switch()
    named.__name__ = "lamp_switch"
    assert stream.Tool.of(named).name == "lamp_switch"
    assert [*stream.Tool.of(named).parameters["properties"]] == ["lamp", "on"]


def test_a_partial_of_an_async_function_is_a_tool():
    async def later(site: str, query: str) -> str:
        return f"{site} {query}"

    made = stream.Tool.of(partial(later, "wiki"))
    assert asyncio.run(run_tool(made, {"query": "Oslo"}, 10.0)) == (False, "wiki Oslo")


def positional(city, /): ...


def unreadable(city: "Nowhere"): ...  # noqa: F821  (a name that is not there)


def variable(**rest): ...


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        (3, StreamTypeError, "must be a stream.Tool"),
        ({"type": "function"}, StreamValueError, "needs `function`"),
        (SimpleNamespace(input_schema=SCHEMA), StreamValueError, "name is None"),
        ({"name": "with space"}, StreamValueError, "with space"),
        ({"name": "x" * 65}, StreamValueError, "1 to 64"),
        ({"name": "w", "parameters": {"type": "array"}}, StreamValueError, "it must be 'object'"),
        ({"name": "w", "parameters": "city"}, StreamTypeError, "JSON Schema"),
        (SimpleNamespace(name="w", inputSchema=None), StreamValueError, "inputSchema"),
        (positional, StreamTypeError, "passed by keyword"),
        (variable, StreamTypeError, "passed by keyword"),
        (unreadable, StreamTypeError, "arguments of unreadable cannot be read"),
        (partial(positional, 1, 2), StreamTypeError, "arguments of positional cannot be read"),
        (open, StreamTypeError, "open cannot be a tool"),
        (min, StreamTypeError, "arguments of min cannot be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_tool_is_refused_with_what_is_wrong(source, error, says):
    with pytest.raises(error, match=says):
        stream.Tool.of(source)


def test_a_tool_that_requires_no_argument_says_so_in_the_request():
    schema = {"type": "object", "properties": {"depth": {"type": "integer"}}, "additionalProperties": False}
    for tool in (stream.Tool(name="ping"), stream.Tool(name="ls", parameters=schema)):
        sent = tool.openai()["function"]["parameters"]
        assert sent == {**tool.parameters, "required": []}


def test_a_server_that_runs_the_filesystem_tools_is_sent_their_definitions_as_they_stand():
    path = {"list_directory": "Directory path", "read_file": "File path"}
    says = {"list_directory": "List contents of a directory", "read_file": "Read contents of a file"}
    wanted = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": says[name],
                "parameters": {
                    "type": "object",
                    "properties": {"path": {"type": "string", "description": path[name]}},
                    "required": ["path"],
                },
            },
        }
        for name in ("list_directory", "read_file")
    ]
    assert wanted == stream.services.FILESYSTEM_TOOLS
    for endpoint in ("chat", "ollama"):
        exchange = chat(
            "ollama-tool-call", endpoint=endpoint, model="mistral:latest", tools=stream.services.FILESYSTEM_TOOLS
        )
        assert exchange.bodies[0]["tools"] == wanted


@pytest.mark.parametrize("expected_s", [-1.0, float("inf"), float("nan")])
def test_a_time_that_is_not_finite_and_0_or_more_is_refused(expected_s):
    with pytest.raises(StreamValueError, match="expected_s"):
        stream.Tool(name="search", expected_s=expected_s)
