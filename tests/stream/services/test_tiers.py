"""Kinds of questions: two tables of questions, whose tools a tier has, and files of tiers."""

import asyncio
import logging
import tomllib
from itertools import cycle
from pathlib import Path

import pytest

import stream
from stream.errors import StreamValueError
from tests.support.house_tools import HOUSE, listed
from tests.support.model_server import tool

QUESTIONS = Path(__file__).parents[1] / "data" / "questions"
TABLES = {name: tomllib.loads((QUESTIONS / f"{name}.toml").read_text()) for name in ("learned", "newest", "joined")}


class Named:
    """A classifier that always says the same."""

    def __init__(self, tier):
        self.tier = tier

    def classify(self, _):
        return self.tier


def chosen(question, tools=HOUSE, **options):
    tiers = stream.services.ToolTiers(None, tools, **options)
    return [one.name for one in asyncio.run(tiers.choose(question))]


def tier_of(name, tier):
    return chosen("", [tool(name)], classifier=Named(tier)) == [name]


# Questions


def rates(table):
    """How many of each tier's questions go to their tier, and the general ones that do not."""
    classifier = stream.services.KeywordClassifier(stream.services.load_tiers())
    found = {tier: [classifier.classify(question) for question in questions] for tier, questions in table.items()}
    right = sum(names.count(tier) for tier, names in found.items())
    wrongly = [q for q, name in zip(table["general"], found["general"], strict=True) if name != "general"]
    return right / sum(map(len, table.values())), wrongly


def test_of_the_questions_that_were_learned_99_in_100_find_their_tier():
    assert sum(map(len, TABLES["learned"].values())) >= 2000
    rate, wrongly = rates(TABLES["learned"])
    assert rate >= 0.99
    assert len(wrongly) <= 3


def test_of_the_questions_that_nothing_was_learned_from_93_in_100_find_their_tier():
    # Measured when they were new: 365 of 390, and 4 of 120 general ones with tools. Two rounds before: 366 and 375.
    assert sum(map(len, TABLES["newest"].values())) >= 390
    rate, wrongly = rates(TABLES["newest"])
    assert rate >= 0.93
    assert len(wrongly) <= 4


@pytest.mark.parametrize(
    ("question", "tier"),
    [
        ("Good morning! What’s the time?", "datetime"),
        ("WHAT TIME IS IT", "datetime"),
        ("It's late, isn't it? Turn the lamp off, then.", "device"),
        ("Who invented the lamp? And please turn mine off.", "device"),
        ("Who invented the lamp? And what is the speed of light?", "general"),
        ("", "general"),
        ("?!", "general"),
        ("turn " * 5000, "device"),
        ("\ue001 \ud800 \x00", "general"),
        ("Lights off \ud800", "device"),
    ],
)
def test_the_sentence_that_belongs_to_a_tier_most_clearly_decides(question, tier):
    assert stream.services.KeywordClassifier(stream.services.load_tiers()).classify(question) == tier


def joined(first, second):
    """Questions of two tiers in one sentence, and the tiers whose tools each gets."""
    tools = {"get_zwave_nodes": "device", "get_current_datetime": "datetime", "read_file": "files"}
    tiers = stream.services.ToolTiers(None, [tool(name) for name in tools])
    for one, other in zip(TABLES["newest"][first], cycle(TABLES["newest"][second]), strict=False):
        question = f"{one.rstrip('.?! ')} and {other[0].lower()}{other[1:]}"
        yield {tools[found.name] for found in asyncio.run(tiers.choose(question))}


@pytest.mark.parametrize("two", [("device", "datetime"), ("datetime", "device"), ("device", "files")], ids="-".join)
def test_of_two_requests_joined_by_and_7_in_10_get_the_tools_of_both(two):
    found = list(joined(*two))
    assert found.count(set()) <= 0.05 * len(found)
    assert found.count(set(two)) >= 0.7 * len(found)


@pytest.mark.parametrize("tier", ["device", "datetime", "files"])
def test_of_the_requests_joined_to_a_general_question_85_in_100_get_their_tools(tier):
    found = list(joined(tier, "general"))
    assert found.count({tier}) >= 0.85 * len(found)


def test_of_the_general_questions_with_and_95_in_100_stay_general():
    assert len(TABLES["joined"]["general"]) >= 190
    classifier = stream.services.KeywordClassifier(stream.services.load_tiers())
    names = [classifier.classify(question) for question in TABLES["joined"]["general"]]
    assert len(names) - names.count("general") <= 8  # 3 of these do without the "and", too


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Turn on the light and tell me the time", ["set_light", "get_time"]),
        ("Turn on the light. What time is it?", ["set_light", "get_time"]),
        ("What time is it and turn on the light", ["set_light", "get_time"]),
        ("Turn on the light, and then who wrote Faust?", ["set_light"]),
        ("Tell me a joke and then turn on the light", ["set_light"]),
        ("Who wrote Faust and what time is it?", ["get_time"]),
        ("How does a heater work and what time is it?", ["get_time"]),
        ("How do I open the oven and clean the fridge?", []),
        ("Who invented the lamp and when was it?", []),
        ("Turn on the light and set a timer", ["set_light", "set_timer"]),
        ("How do I boil eggs and set a timer?", []),
        ("Turn on the light, tell me the time", ["set_light", "get_time"]),
        ("Robot, tell me a joke", []),
        ("Robot. What time is it?", ["get_time"]),
        ("Turn on the light. It is late.", ["set_light"]),
        ("It is late, who wrote Faust?", []),
        ("At noon, tell me a joke", []),
        ("Robot, tell me a joke and turn on the light", ["set_light"]),
    ],
)
def test_each_request_of_a_sentence_gets_its_tools(question, names):
    assert chosen(question, [tool("set_light"), tool("get_time"), tool("set_timer")]) == names


@pytest.mark.parametrize("between", ["\n", "\n \n", ". ", " , "])
def test_a_question_of_any_length_is_read_at_once(between):
    # A search whose time grows with the square of a run of line ends took a quarter of an hour for this.
    assert chosen("Turn on the light" + between * 100_000, [tool("set_light")]) == ["set_light"]
    assert chosen("Turn on the light" + between * 9 + "what time is it?", [tool("get_time")]) == ["get_time"]


def test_a_request_is_found_by_keywords_after_and_too():
    mine = stream.services.Tier(name="music", tools=["play_song"], keywords=["^play"])
    tools, tiers = [tool("play_song"), tool("set_light")], [*stream.services.load_tiers(), mine]
    assert chosen("Why is the sky blue? And play jazz", tools, tiers=tiers) == ["play_song"]
    assert chosen("Tell me a joke and play jazz", tools, tiers=tiers) == ["play_song"]
    assert chosen("Turn on the light and play jazz", tools, tiers=tiers) == ["play_song", "set_light"]


def test_a_classifier_of_ones_own_is_asked_once_for_the_whole_question():
    asked = []

    class Own(Named):
        def classify(self, question):
            asked.append(question)
            return self.tier

    assert chosen("Turn on the light and tell me the time", [tool("get_time")], classifier=Own("datetime"))
    assert asked == ["Turn on the light and tell me the time"]


NAMES = {
    "device": "turn_on_light set_thermostat lock_door getDeviceState get_zwave_nodes list_nodes zwave_set_value"
    " HassTurnOn mcp__zwave-js__ping ZWave.setValue lights.toggle set_value get_value get_device_sensor_data"
    " turn_device_on turnDeviceOn switch_lamp_off turn_living_room_lights_down set_thermostat_setpoint get_fan_speed"
    " set_cover_position open_cover get_battery_level check_batteryStatus refresh_node refreshNodeValues",
    "datetime": "get_current_datetime getCurrentTime get_current_time get_date time-mcp.get_current_time",
    "files": "list_directory read_file readFile fs.read_file read_multiple_files directory_tree get_file_info",
    "none": "browser_highlight set_timer blinders flight_search lockfile_read play_music read_heat_map get_runtime"
    " update_status time_travel browser_file_upload set_cover_image turn_page_down refresh_token refresh_page"
    " set_cursor_position switch_tab get_speed refresh_device_token read_battery_article discover_devices_online",
}


@pytest.mark.parametrize(("tier", "name"), [(tier, name) for tier, names in NAMES.items() for name in names.split()])
def test_a_tool_is_known_by_whole_words_of_its_name(tier, name):
    assert [one for one in ("device", "datetime", "files") if tier_of(name, one)] == [tier] * (tier != "none")


# Sources of tools


def test_a_group_that_a_tier_names_decides_over_the_name():
    browser = listed("playwright", "dim_light")
    assert chosen("Turn on the light", browser) == []
    assert chosen("Turn on the light", listed("zwave", "poke")) == ["poke"]
    assert chosen("Turn on the light", listed("z-wave-js-server", "poke")) == ["poke"]


def test_a_group_that_no_tier_names_leaves_it_to_the_name():
    mine = listed("my-own-server", "turn_on_light", "read_mail")
    assert chosen("Turn on the light", mine) == ["turn_on_light"]


def test_an_mcp_listing_brings_its_group_and_an_openai_dict_has_none():
    (one,) = listed("zwave", "ping")
    assert one.group == "zwave"
    assert stream.Tool.of(one.openai()).group == ""
    assert "zwave" not in str(one.openai())
    assert {made.group for made in stream.services.filesystem_tools(".")} == {"filesystem"}


def test_the_browser_tier_is_for_a_classifier_of_ones_own():
    assert len(chosen("Buy me a hat", classifier=Named("browser"))) == 22


# Tools that the question or the request names


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Set a timer for ten minutes", "set_timer"),
        ("Could you please play some music?", "play_music"),
        ("What is the weather forecast for Oslo?", "weather_forecast"),
        ("Use set_timer for this", "set_timer"),
        ("Why is play_music failing?", "play_music"),
        ("Remind me to call mom", "remind_me"),
        ("Can you remind me to call mom, please?", "remind_me"),
        ("Good night!", "good_night"),
        ("Hello. Please remember this.", "remember_this"),
        ("Play that again", "play_that_again"),
        ("Turn on the light and remind me to call mom", "remind_me"),
        ("Use getForecast for Oslo", "getForecast"),
        ("Search DuckDuckGo for cats", "DuckDuckGo"),
        ("Use the calculator for 17 times 23", "calculator"),
        ("Call `calculator` with 17*23", "calculator"),
        ("Please fetch https://example.com", "fetch"),
        ("Good morning. Weather in Oslo?", "weather"),
    ],
)
def test_a_custom_tool_is_offered_where_it_is_asked_for(question, name):
    assert chosen(question, [tool(name), tool("send_mail")]) == [name]


@pytest.mark.parametrize(
    "question",
    ["Remind me to call mom", "Could you remind me to call mom?", "Remember that I like tea", "Set a reminder for six"],
)
def test_a_keyword_may_be_a_polite_phrase_and_takes_nothing_from_the_rest(question):
    mine = stream.services.Tier(name="mine", tools=["add_note"], keywords=["remind", "reminder", "remember"])
    tools, tiers = [tool("add_note"), tool("get_time")], [mine, *stream.services.load_tiers()]
    assert chosen(question, tools, tiers=tiers) == ["add_note"]
    assert chosen(f"{question}. What time is it?", tools, tiers=tiers) == ["add_note", "get_time"]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Why do people play music?", "play_music"),
        ("Could you tell me why people play music?", "play_music"),
        ("How do I set a timer on my phone?", "set_timer"),
        ("In my get_timezone function", "get_time"),
        ("Send it by mail", "send_mail"),
        ("Is there music?", "music"),
        ("Music is fun.", "music"),
        ("How do I use search?", "search"),
        ("_ is an underscore", "__"),
    ],
)
def test_a_tool_that_is_only_talked_of_is_not_offered(question, name):
    assert chosen(question, [tool(name)]) == []


# A tier without tools


def test_a_tier_that_should_have_tools_and_has_none_is_a_warning_with_names_and_counts_alone(caplog):
    with caplog.at_level(logging.DEBUG, logger="stream"):
        chosen("Turn off the secret lamp", [*listed("playwright", "browser_click"), tool("send_mail")])
    _, record = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "Tier device has none of the 2 tools: browser_click (playwright), send_mail"


def test_tools_of_no_tier_are_one_warning_with_their_names(caplog):
    tiers = stream.services.ToolTiers(None)
    tools = [*listed("mail", "read_mail"), tool("get_weather"), tool("read_file")]
    with caplog.at_level(logging.DEBUG, logger="stream"):
        for question in ("Weather in Oslo?", "What is in my documents folder?"):
            asyncio.run(tiers.choose(question, tools))
        asyncio.run(tiers.choose("Weather in Oslo?", [tool("read_file"), tool("send_mail")]))
    told = "belong to no tier, and are offered only where a question or tool_choice names them"
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"2 tools {told}: read_mail (mail), get_weather"),
        (logging.WARNING, f"1 tools {told}: send_mail"),
    ]


def test_keywords_decide_before_the_weights_and_a_tier_with_keywords_has_no_weights():
    mine = stream.services.Tier(name="music", keywords=["turn .*radio"])
    both = stream.services.KeywordClassifier([*stream.services.load_tiers(), mine])
    assert [both.classify(text) for text in ("Turn the radio off", "Turn the lamp off")] == ["music", "device"]
    alone = stream.services.KeywordClassifier([stream.services.Tier(name="device", keywords=["robot"])])
    assert [alone.classify(text) for text in ("Stop the robot", "Turn the lamp off")] == ["device", "general"]


def test_a_tier_beside_the_built_in_ones_offers_its_tools():
    weather = stream.services.Tier(name="weather", tools=["get_weather"], keywords=["weather", "forecast"])
    tools, tiers = [tool("get_weather"), tool("read_file")], [weather, *stream.services.load_tiers()]
    for question in ("Weather in Oslo?", "How does the weather look in Oslo?", "Describe the weather in Oslo."):
        assert chosen(question, tools, tiers=tiers) == ["get_weather"]
    assert chosen("What is in my documents folder?", tools, tiers=tiers) == ["read_file"]


# Patterns


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("turn off", "please turn off it", True),
        ("turn off", "turn it off", False),
        ("turn .*off", "turn it all off", True),
        ("(turn|switch over) off", "Switch OVER off!", True),
        ("^light", "the light", False),
        ("^light", "Could you please light", True),
        ("light $", "light, please", True),
        ("light $", "light of day", False),
        ("light", "lights", False),
        (r"\S+\.txt", "read notes.txt!", True),
        (r"\S+\.txt", "read notes.txt.gz", False),
        ("what is", "what's up", True),
        ("z wave", "my Z-wave", True),
    ],
)
def test_a_pattern_finds_whole_words(pattern, text, found):
    classifier = stream.services.KeywordClassifier([stream.services.Tier(name="own", keywords=[pattern])])
    assert (classifier.classify(text) == "own") is found


# Files of tiers

WHOLE = """
[words]
color = ["red", "dark blue"]
paint = ["(paint|dye) <color>"]

[[tier]]
name = "paint"
groups = ["studio"]
tools = ["mix_.*"]
keywords = ["^<paint>"]
"""


def loaded(tmp_path, text):
    file = tmp_path / "tiers.toml"
    file.write_text(text)
    return stream.services.load_tiers(file)


def test_a_file_brings_its_own_words_groups_and_names(tmp_path):
    tiers = loaded(tmp_path, WHOLE)
    tools = [*listed("studio", "brush"), tool("mix_colors"), tool("set_timer")]
    assert chosen("Please paint dark blue", tools, tiers=tiers) == ["brush", "mix_colors"]
    assert chosen("Paint dark red", tools, tiers=tiers) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[tier]", "cannot read tiers from .*tiers.toml"),
        ("", r"tiers.toml: it needs one \[\[tier\]\] or more"),
        ("a" + 600 * ".a" + " = 1", "line 1 has 600 dots; at most 500 are allowed"),
        ("# " + 2**17 * "a", "has 131074 bytes; at most 131072 are allowed"),
        ("tier = 3", "cannot read tiers from .*tiers.toml"),
        (f"tier = {'[' * 9999}", "cannot read tiers from .*tiers.toml"),
        ("[[tier]]\nname = 'a'\nkeyword = ['b']", "'keyword'"),
        ("[[tier]]\ntools = ['a']", "name is ''; it must be text that is not empty"),
        ("[[tier]]\nname = 'a'\n[[tier]]\nname = 'a'", "each with a name of its own"),
        ("[[tier]]\nname = 'a'\ntools = 'b'", "tools is 'b'; it must be a list of texts"),
        ("[[tier]]\nname = 'a'\ngroups = ['']", "groups has an empty pattern"),
        ("[[tier]]\nname = 'a'\nkeywords = ['on', '(on']", r"keywords is no regular expression at .*\(on"),
        (WHOLE.replace("<paint>", "<pain>"), r"keywords has <pain> in .*did you mean 'paint'"),
        (WHOLE.replace('"red"', '"<paint>"'), r"color has <paint> in '<paint>'; the lists above it are"),
        (WHOLE.replace('"red"', "3"), r"color is \[3, 'dark blue'\]; it must be a list of texts"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place_the_value_and_what_is_allowed(tmp_path, text, message):
    with pytest.raises(StreamValueError, match=message):
        loaded(tmp_path, text)
