"""Tools offered in tiers: what a question of each kind sends to the server."""

import pytest

import stream
from stream.events import ToolResult
from tests.support.house_tools import BROWSER, HOUSE, ZWAVE, listed
from tests.support.model_server import BOTH, chat, says


def offered(question, endpoint="chat", model="mistral", tools=HOUSE, earlier=(), **options):
    exchange = chat(
        "ollama-plain-text",
        endpoint=endpoint,
        model=model,
        messages=[*earlier, {"role": "user", "content": question}],
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
    assert offered(question, endpoint) == ZWAVE


@pytest.mark.parametrize(
    ("first", "then", "tools"),
    [
        ("Is the heater on?", ["Yes, please."], ZWAVE),
        ("Turn on the lamp", ["And in the kitchen?", "ok"], ZWAVE),
        ("What time is it?", ["What about Tokyo?"], ["get_current_datetime"]),
        ("Turn on the lamp", ["And who was Newton?"], []),
        ("Turn on the lamp", ["Who was Newton?", "Yes, go ahead"], []),
        ("Turn on the lamp", ["Thank you!"], []),
        ("Switch the heater off", ["Ok, go ahead"], ZWAVE),
        ("Switch the heater off", ["Sure, go ahead"], ZWAVE),
        *(("Turn on the lamp", [said], ZWAVE) for said in ("Do it again", "Again, please.", "Once more", "Try again")),
        ("Who was Newton?", ["Once more"], []),
        ("Who painted the Mona Lisa?", ["Ok, go ahead"], []),
        ("Turn on the lamp", ["And what about the hall?"], ZWAVE),
        ("What time is it?", ["But what about Tokyo?"], ["get_current_datetime"]),
    ],
)
def test_a_follow_up_gets_the_tools_of_the_question_before_it(first, then, tools):
    earlier = [{"role": "user", "content": question} for question in (first, *then[:-1])]
    assert offered(then[-1], earlier=earlier) == tools


UNLOCK, TIME = ("Unlock the front door", "Are you sure?"), ("What time is it?", "In which city?")


@pytest.mark.parametrize(
    ("before", "answer", "tools"),
    [
        *((UNLOCK, answer, ZWAVE) for answer in ("Yes, I am sure", "I'm sure.", "Certainly", "Right", "positive")),
        *((UNLOCK, answer, ZWAVE) for answer in ("Please do", "Yes, do it now", "Yes, all of them", "Sure, go for it")),
        *(
            (TIME, answer, ["get_current_datetime"])
            for answer in ("Oslo", "In Oslo.", "Yes, the second one, please", "In New York City, please")
        ),
        *((UNLOCK, answer, []) for answer in ("No", "no thanks", "Never mind", "Who was Newton?", "who was Newton")),
        *(
            (UNLOCK, answer, [])
            for answer in ("Tell me more", "I would rather hear a joke about doctors", "Good night")
        ),
        (("Turn on the lamp", "Done."), "Oslo", []),
        (("Who was Newton?", "Which one?"), "Isaac", []),
    ],
)
def test_an_answer_to_a_question_of_the_assistants_gets_the_tools_of_the_question_before_it(before, answer, tools):
    earlier = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), before, strict=True)]
    assert offered(answer, earlier=earlier) == tools


def test_answers_to_two_questions_in_a_row_get_the_tools_of_the_first_request():
    texts = ("Set the thermostat", "In which room?", "the study", "To what?")
    earlier = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    assert offered("twenty one", earlier=earlier) == ZWAVE
    assert offered("Oslo", earlier=earlier) == ZWAVE


def test_a_tool_that_the_choice_names_is_offered_and_chosen():
    exchange = chat(
        "ollama-plain-text",
        tools=HOUSE,
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
            fallback = stream.services.Fallback(load_tools=lambda: listed("playwright", *BROWSER, call=browse))
            self.source = stream.services.ToolTiers(stream.services.Recovery(connection, fallback=fallback))

        async def chat(self, _):
            for question in ("Who wrote Faust?", "Dim the lights"):
                async for event in self.source.chat([{"role": "user", "content": question}], tools=HOUSE):
                    yield event

    server = says([["call", "browser_tabs", {}]], [["say", "Goethe."]], without_tools=[])
    exchange = chat(server, wrap=Asks)
    asked = [[entry["function"]["name"] for entry in body.get("tools", ())] for body in exchange.bodies]
    assert asked[0] == []
    assert sorted(asked[1]) == sorted(asked[2]) == sorted(BROWSER)
    assert asked[3] == ZWAVE
    assert exchange.of(ToolResult)[0].content == "browser_tabs says so"


def test_a_small_model_gets_the_tools_of_the_fallback_that_a_browser_needs():
    browser = listed("playwright", *BROWSER, call=lambda *_: "found")
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
        tools=HOUSE,
        tool_choice="required",
        messages=[{"role": "user", "content": "Tell me a joke"}],
        wrap=stream.services.ToolTiers,
    )
    assert "tool_choice" not in exchange.bodies[0]
