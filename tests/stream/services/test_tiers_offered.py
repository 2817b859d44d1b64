"""Tools offered in tiers: what a question of each kind sends to the server."""

import pytest

import stream
from stream.events import ToolResult
from tests.support.model_server import BOTH, chat, says


def listed(group, names, call=None):
    """An MCP server's tools, as its `tools/list` has them."""
    entries = [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in names]
    return [stream.Tool.of_mcp(entry, call, group=group) for entry in entries]


ZWAVE = listed("zwave", ["get_zwave_nodes", "list_nodes", "get_device_state", "set_value", "ping", "heal_network"])
PLAYWRIGHT = listed("playwright", ["browser_highlight", *(f"browser_{number}" for number in range(21))])
DATETIME = listed("custom", ["get_current_datetime"])
CUSTOM = listed("custom", ["set_timer", "play_music"])
ALL = [*ZWAVE, *PLAYWRIGHT, *DATETIME, *CUSTOM]
DEVICE = [one.name for one in ZWAVE]


def offered(question, endpoint="chat", model="mistral", tools=ALL, **options):
    exchange = chat(
        "ollama-plain-text",
        endpoint=endpoint,
        model=model,
        messages=[{"role": "user", "content": question}],
        tools=tools,
        wrap=lambda c: stream.services.ToolTiers(c, **options),
    )
    return [entry["function"]["name"] for entry in exchange.bodies[0].get("tools", ())]


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


@BOTH
@pytest.mark.parametrize("question", ["What time is it?", "Which day is it today?", "What's the date tomorrow?"])
def test_a_time_question_gets_the_datetime_tool_alone(endpoint, question):
    assert offered(question, endpoint) == ["get_current_datetime"]


@BOTH
@pytest.mark.parametrize("question", ["Who wrote Faust?", "Tell me a joke", "", "Why is the sky blue?"])
def test_a_general_question_gets_no_tools(endpoint, question):
    assert offered(question, endpoint) == []


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


def test_a_small_model_gets_the_tools_of_the_fallback_that_a_browser_needs():
    names = ["close", "resize", "console_messages", "handle_dialog", "evaluate", "file_upload", "fill_form", "install"]
    names += ["press_key", "type", "navigate", "navigate_back", "network_requests", "run_code", "take_screenshot"]
    names += ["snapshot", "click", "drag", "hover", "select_option", "tabs", "wait_for"]
    browser = listed("playwright", [f"browser_{name}" for name in names], lambda *_: "found")
    fallback = stream.services.Fallback(load_tools=lambda: browser)
    server = says([["say", "Goethe."]], without_tools=[])
    wrap = lambda c: stream.services.Recovery(c, fallback=fallback)  # noqa: E731
    offered = chat(server, model="qwen3:0.6b", wrap=wrap).bodies[-1]["tools"]
    needed = {"browser_navigate", "browser_snapshot", "browser_click", "browser_type"}
    assert len(offered) == 8
    assert needed <= {entry["function"]["name"] for entry in offered}


def test_a_choice_that_the_tier_does_not_offer_is_left_out():
    exchange = chat(
        "ollama-plain-text",
        tools=ALL,
        tool_choice="required",
        messages=[{"role": "user", "content": "Tell me a joke"}],
        wrap=stream.services.ToolTiers,
    )
    assert "tool_choice" not in exchange.bodies[0]
