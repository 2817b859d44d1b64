"""Every case of raw model text, over every way to cut it."""

import re

import pytest

from stream import OllamaReader, TextDelta, TextReader, ToolCallEnd, ToolCallStart, complete_calls
from tests.stream.comparing import as_case_events, load, matches, splits

NAMES = ("content", "content_extra", "content_families", "false_positive", "false_positive_families", "decisions")
CASES = list(load(*NAMES))
REVIEWED = list(load("reviewed_text"))


def read(case, chunks):
    """The events, and after how many characters the start of each complete call came."""
    reader = TextReader(tools=case.get("tools"), start=case.get("start", "text"))
    events, starts, fed = [], {}, 0
    for chunk in chunks:
        fed += len(chunk)
        new = reader.feed(chunk)
        starts |= {event.index: fed for event in new if isinstance(event, ToolCallStart)}
        events += new
    events += reader.close(finish=case.get("finish", "stop"))
    ends = (event for event in events if isinstance(event, ToolCallEnd) and event.status == "ok")
    return events, [starts.get(end.index, fed + 1) for end in ends]


AT_START = ("analysis", "commentary", "final", "assistant", "to=", "[unused16]", "<s>", "<bos>")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_reads_the_same_over_every_chunking(case):
    assert_reads_the_same(case, splits(case["input"]))


@pytest.mark.parametrize("case", REVIEWED, ids=lambda case: case["id"])
def test_reviewed_case_reads_the_same_over_many_chunkings(case):
    assert_reads_the_same(case, splits(case["input"], step=7, rounds=4))


def assert_reads_the_same(case, chunkings):
    reasons = any(event["type"] == "reasoning" for event in case["expect"]) or case in CASES
    for chunks in chunkings:
        events, _ = read(case, chunks)
        for at_start in (False, True):
            actual = as_case_events(events, at_start=at_start)
            assert matches(case, actual), (chunks, actual, case["expect"])
        assert matches(case, as_case_events(events), reasoning=reasons), (chunks, events)


@pytest.mark.parametrize("case", [case for case in CASES + REVIEWED if "cue_at" in case], ids=lambda case: case["id"])
def test_call_is_announced_as_soon_as_its_name_is_certain(case):
    _, starts = read(case, list(case["input"]))
    assert len(starts) == len(case["cue_at"])
    for at, wanted in zip(starts, case["cue_at"], strict=True):
        assert wanted is None or at <= wanted, (starts, case["cue_at"])


NAMES_BEFORE_JSON = [  # GLM 4.7, the example of Hugging Face's documentation, Hunyuan 7B's template, DeepSeek in ASCII
    '<tool_call>get_weather {"city": "Oslo"}</tool_call>',
    '<tool_call>get_weather\n{"city": "Oslo"}\n</tool_call>',
    '<tool_call>get_weather: {"city": "Oslo"}</tool_call>',
    '<tool_call>json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    '<tool_call>get_weather\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    '<tool_calls><tool_call>get_weather\n```json\n{"city": "Oslo"}\n```</tool_call></tool_calls>',
    (
        '<tool_calls_begin><tool_call_begin>function<tool_sep>get_weather\n```json\n{"city": "Oslo"}\n```'
        "<tool_call_end><tool_calls_end>"
    ),
    '<tool_call_begin>function<tool_sep>get_weather ```json {"city": "Oslo"} ```<tool_call_end>',
    '<tool_call_begin>function<tool_sep>get_weather{"city": "Oslo"}<tool_call_end>',
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather{"city": "Oslo"}<｜tool▁call▁end｜>',
]


@pytest.mark.parametrize("written", NAMES_BEFORE_JSON)
@pytest.mark.parametrize("tools", [None, ["get_weather"]])
def test_a_name_before_its_json_in_a_tag_is_a_call(written, tools):
    for chunks in splits(f"Let me look.\n{written}"):
        reader = TextReader(tools=tools)
        events = [event for text in chunks for event in reader.feed(text)] + reader.close(finish="stop")
        assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == "Let me look."
        (call,) = complete_calls(events)
        assert (call.tool_name, call.arguments) == ("get_weather", {"city": "Oslo"})


def read_pieces(text):
    """The spoken text and the ends of the calls, the same for all splits of the text."""
    found = []
    for chunks in splits(text):
        reader = TextReader(tools=["get_weather"])
        events = [event for piece in chunks for event in reader.feed(piece)] + reader.close(finish="stop")
        said = "".join(event.text for event in events if isinstance(event, TextDelta)).strip()
        found.append((said, [event for event in events if isinstance(event, ToolCallEnd)]))
    assert all(each == found[0] for each in found)
    return found[0]


@pytest.mark.parametrize(
    "body", ['{name: "get_weather", arguments: {city: "Oslo"}}', '"name": "get_weather", "arguments": {"city": "Oslo"}']
)
def test_a_call_that_is_almost_json_is_malformed_and_not_spoken(body):
    said, (end,) = read_pieces(f"Let me look.\n<tool_call>\n{body}\n</tool_call>")
    assert (said, end.status) == ("Let me look.", "malformed")


@pytest.mark.parametrize("written", ["{}", "[TOOL_CALLS][{}]", "<tool_call>\n{}\n</tool_call>", "```json\n{}\n```"])
@pytest.mark.parametrize("arguments", ['"{"city": "Oslo"}"', '"{ "city": "Oslo", "days": 2 }"', r'"{\"city": "Oslo"}"'])
def test_nothing_is_spoken_of_an_object_in_a_text_whose_quotes_are_not_escaped(written, arguments):
    call = f'{{"name": "get_weather", "arguments": {arguments}}}'
    said, (end,) = read_pieces("Let me look.\n" + written.replace("{}", call))
    assert (said, end.tool_name, end.status) == ("Let me look.", "get_weather", "malformed")


# GLM (vLLM pull request 47190, vllm-ascend issue 12398), and names with arguments of no known form.
@pytest.mark.parametrize(
    "body",
    [
        "get_weathercity</arg_key><arg_value>Oslo</arg_value>",
        "get_weather\ncity</arg_key>\n<arg_value>Oslo</arg_value>\n",
        "get_weather<tool_call>city</arg_key><arg_value>Oslo</arg_value>",
        "get_weather</think><arg_key>city</arg_key><arg_value>Oslo</arg_value>",
        "</think>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>",
        "get_weather city=Oslo",
        "\nname: get_weather\ncity: Oslo\n",
    ],
)
def test_a_slip_in_a_tagged_call_is_not_spoken(body):
    said, ends = read_pieces(f"Let me look.\n<tool_call>{body}</tool_call>\nWait.")
    assert said.split() == ["Let", "me", "look.", "Wait."]
    assert {(end.tool_name, end.status) for end in ends} == {("", "malformed")}


def test_words_in_a_block_of_calls_are_spoken_without_its_tags():  # Qwen 3.6, Ollama issue 16383
    said, ends = read_pieces("<tool_call>\nLet me check the weather.\n</tool_call>\nOne moment.")
    assert (said.split("\n")[0], said.split("\n")[-1], ends) == ("Let me check the weather.", "One moment.", [])


@pytest.mark.parametrize(
    "written",
    [
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}, "reason": "asked"}</tool_call>',
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}, "id": 5}',
        # Qwen 3.6, QwenLM/Qwen3.8 issue 178
        "<tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n</function_invocation>\n",
        '<tool_call>\n[get_weather(city="Oslo")]\n</tool_call>',
        # Gemma 3
        "```tool_code\n[get_weather(city='Oslo')]\n```",
        "```tool_code\n[default_api.get_weather(city='Oslo')]\n```",
        '```tool_code\n{"name": "get_weather", "parameters": {"city": "Oslo"}}\n```',
        # Gemini's control tokens and the name of its library
        '<ctrl42>call\nprint(default_api.get_weather(city="Oslo"))\n',
        "<ctrl42>call:get_weather{city:<ctrl46>Oslo<ctrl46>}",
        'call:default_api:get_weather{city: "Oslo"}',
        # Gemma 4 in JSON, vLLM issue 51284, and with single quotes, as Ollama repairs them
        '<|tool_call>call:get_weather{"city": "Oslo"}<tool_call|>',
        "<|tool_call>call:get_weather{city:'Oslo'}<tool_call|>",
        "call:get_weather{'city': 'Oslo'}",
    ],
)
def test_what_is_odd_around_a_whole_call_is_not_spoken(written):
    said, (end,) = read_pieces(f"Let me look.\n{written}")
    assert said == "Let me look."
    assert (end.tool_name, end.status, end.arguments) == ("get_weather", "ok", {"city": "Oslo"})


@pytest.mark.parametrize(
    "code",
    ['print(query.query(sql="x"))', '{"sql": "x"}', "at = get_weather(city='Oslo')\nprint(at)", "get_weather('Oslo')"],
)
def test_code_in_gemmas_fence_is_not_spoken(code):
    said, (end,) = read_pieces(f"Let me look.\n```tool_code\n{code}\n```\nWait.")
    assert (said.split(), end.status) == (["Let", "me", "look.", "Wait."], "malformed")


@pytest.mark.parametrize("end", ["<ctrl42>", "<ctrl46>", "<ctrl95>"])
def test_a_control_token_of_gemini_at_the_end_is_dropped(end):
    assert read_pieces(f"It is mild.{end}") == ("It is mild.", [])


def test_gemini_thinks_and_writes_code_between_control_tokens():
    said, ends = read_pieces(
        "<ctrl94>thought\nHm, so.<ctrl95>It is mild.<ctrl46>\n<ctrl42>call\nprint(other(city='Oslo'))"
    )
    assert said == "It is mild."
    assert [(end.tool_name, end.arguments) for end in ends] == [("python", {"code": "print(other(city='Oslo'))"})]


def test_a_value_in_single_quotes_may_hold_commas_and_a_nested_key_double_ones():
    _, (end,) = read_pieces("""<|tool_call>call:get_weather{at:'Oslo, in May', more:{"two words":1}}<tool_call|>""")
    assert end.arguments == {"at": "Oslo, in May", "more": {"two words": 1}}


def lines_of(text, pattern):
    for token in re.findall(pattern, text, re.DOTALL):
        message = {"role": "assistant", "content": token}
        yield {"model": "m", "created_at": "2025-11-13T09:14:05.000185Z", "message": message, "done": False}


@pytest.mark.parametrize("pattern", [".", r"\s?\w+|.", r"\s*\S+|\s"], ids=["characters", "tokens", "words"])
def test_cases_read_the_same_in_the_lines_of_a_server(pattern):
    for case in [*CASES, *REVIEWED]:
        if case.get("start") == "reasoning":
            continue  # a server's lines have no template
        # Behind text, plain tokens are passed on by looking them up; some forms count at the start alone.
        at_start = case["input"].lstrip().startswith(AT_START)
        before = "" if at_start else "So it `is`.\n\n"
        reader = OllamaReader(tools=case.get("tools"))
        events = []
        for line in lines_of(before + case["input"], pattern):
            events += reader.feed(line)
        events += reader.feed({"message": {}, "done": True, "done_reason": case.get("finish", "stop")})
        expected = [{"type": "text", "text": before}, *case["expect"]]
        actual = as_case_events(events + reader.close())
        assert matches({"expect": expected}, actual), (case["id"], actual, expected)


def test_a_closing_tag_that_comes_once_more_in_the_line_is_text():
    reader = TextReader()
    events = reader.feed('<function_call>{"name": "f"}</function_call>Go on</function_call>.\n') + reader.close()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Go on</function_call>.\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('functions.f(a="x")', True), ('So: default_api.f({"a": "x"})', True), ("It is {type:f}", True),
        ('f json {"a": "x"}', True), ('Tool call: f {"a": "x"}', True), ('Action: f(a="x")', True), ("f()", False),
        ("```tool_code\nprint(default_api.f())\n```", False), ('Tool call: {"name": "f", "arguments": {}}', False),
    ],
)  # fmt: skip
def test_only_a_call_in_the_words_of_prose_is_told(text, told):
    reader = TextReader(tools=["f"])
    calls = [event for event in reader.feed(text) + reader.close() if isinstance(event, (ToolCallStart, ToolCallEnd))]
    assert [(call.tool_name, call.told) for call in calls] == [("f", told)] * 2
    assert len(list(complete_calls(calls))) == (not told)
