"""Nothing unspeakable reaches a voice: calls that a model writes as text, in each pipeline's real package."""

import json
import re

import numpy as np
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice
from pipecat.services.nvidia.llm import NvidiaLLMService
from pipecat.services.openai.llm import OpenAILLMService

from stream.replay.behavior import Behavior
from tests.support.guarded_talks import RESULT, ask, in_agents, in_livekit, in_pipecat

CITY = {"city": "Oslo"}
BODY = json.dumps({"name": "get_weather", "arguments": CITY})
TAGGED = f"<tool_call>{BODY}</tool_call>"
STRUCTURED = ["call", "get_weather", CITY]
BEFORE, ANSWER = "Let me look. ", "It is 12 degrees in Oslo."
FORMS = {
    "tag": TAGGED,
    "nobody's tag": '<zug:function_calls>\n<zug:invoke name="get_weather"><zug:parameter name="city">Oslo'
    "</zug:parameter></zug:invoke>\n</zug:function_calls>",
    "parameters": "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function></tool_call>",
    "invoke": '<function_calls><invoke name="get_weather"><parameter name="city">Oslo</parameter></invoke>'
    "</function_calls>",
    "bracket": "[TOOL_CALLS]get_weather[ARGS]" + json.dumps(CITY),
    "channel": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    + json.dumps(CITY)
    + "<|call|>",
    "tokens": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    + json.dumps(CITY)
    + "<|tool_call_end|><|tool_calls_section_end|>",
    "bars": '\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="get_weather">\n<｜DSML｜ parameter name="city" string="true">'
    "Oslo</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
    "object": BODY,
}
PIPELINES = {"Pipecat": in_pipecat, "LiveKit": in_livekit, "Agents SDK": in_agents}
IN_EACH = pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)


def tagged(city, name="get_weather"):
    return "<tool_call>" + json.dumps({"name": name, "arguments": {"city": city}}) + "</tool_call>"


@IN_EACH
@pytest.mark.parametrize("form", FORMS)
def test_a_call_in_the_text_runs_and_is_not_spoken_and_its_result_is_used(pipeline, form):
    told = ask(pipeline, BEFORE + FORMS[form], ANSWER)
    assert told.spoken == BEFORE + ANSWER
    assert told.ran == [("get_weather", CITY)]
    assert told.results == [("get_weather", CITY, RESULT)]
    assert told.cues == ["tool_call", "success"]


SERVERS = {"whole calls": Behavior(), "fragments": Behavior(fragment=4, ids="long", reasoning="reasoning_content")}


@IN_EACH
@pytest.mark.parametrize("server", SERVERS)
def test_a_structured_turn_is_as_without_the_guard(pipeline, server):
    steps = [["think", "Hm. "], ["say", BEFORE], STRUCTURED]
    asked = [ask(pipeline, steps, ANSWER, guard=guard, behavior=SERVERS[server]) for guard in (False, True)]
    plain, guarded = asked
    assert guarded.texts == plain.texts
    assert guarded.requests == plain.requests
    assert (guarded.ran, guarded.cues) == (plain.ran, plain.cues) == ([("get_weather", CITY)], ["tool_call", "success"])
    assert np.array_equal(guarded.played, plain.played)


QUIRKS = {
    "each call twice": Behavior(duplicate=True, empty_content=True),
    "one index for all calls": Behavior(same_index=True),
    "id and name in every piece": Behavior(fragment=4, repeat_head=True),
}


@pytest.mark.parametrize("pipeline", [in_pipecat, in_agents])  # LiveKit reads calls before its guard does
@pytest.mark.parametrize("quirk", QUIRKS)
def test_structured_calls_of_a_server_with_quirks_run_once_each(pipeline, quirk):
    steps = [["say", BEFORE], STRUCTURED, ["call", "get_weather", {"city": "Rome"}]]
    told = ask(pipeline, steps, ANSWER, behavior=QUIRKS[quirk])
    assert told.spoken == BEFORE + ANSWER
    assert told.ran == [("get_weather", CITY), ("get_weather", {"city": "Rome"})]
    assert told.cues == ["tool_call", "success"]


CITIES = ["Oslo", "Rome", "Cairo", "Lima", "Quito", "Perth", "Delhi", "Kyiv", "Bern", "Riga"]
TURNS = {
    "text and structured": ([["say", BEFORE + TAGGED], STRUCTURED], BEFORE, ["Oslo"]),
    "in mid-sentence": (f"Let me {TAGGED}look. ", "Let me look.", ["Oslo"]),
    "ten": (BEFORE + "".join(map(tagged, CITIES)), BEFORE, CITIES),
    "told, then made": (f'{BEFORE}\nfunctions.get_weather(city="Oslo")\n{TAGGED}', BEFORE, ["Oslo"]),
    "told": (f'{BEFORE}\nfunctions.get_weather(city="Oslo")', BEFORE, []),
    "one of two is broken": (
        f'{BEFORE}{TAGGED}<tool_call>{{"name": "get_weather", "arguments": }}</tool_call>',
        BEFORE,
        ["Oslo"],
    ),
    "thoughts": (f"<think>I need {TAGGED} for that.</think>{BEFORE}{TAGGED}", BEFORE, ["Oslo"]),
    "in code": (f"```python\nx = '{TAGGED}'\n```", f"```python x = '{TAGGED}' ```", []),
    "quoted": (f"You write `{TAGGED}` for it.", f"You write `{TAGGED}` for it.", []),
}


def unmarked(text):
    """Without the marks of code, which LiveKit drops itself."""
    return " ".join(re.sub(r"```\w*|`", "", text).split())


@IN_EACH
@pytest.mark.parametrize("pace", [20.0, 1e6], ids=["word by word", "at once"])
@pytest.mark.parametrize("name", TURNS)
def test_hard_turns(pipeline, name, pace):
    turn, spoken, cities = TURNS[name]
    told = ask(pipeline, turn, ANSWER, pace=pace)
    expected = " ".join([spoken.strip(), *([ANSWER] if cities else [])])
    assert unmarked(told.spoken) == unmarked(expected)
    assert told.ran == [("get_weather", {"city": city}) for city in cities]
    assert "call_" not in told.spoken
    if cities:
        assert told.results == [(name, arguments, RESULT) for name, arguments in told.ran]
        assert told.cues[0] == "tool_call"


@IN_EACH
def test_thoughts_whose_opening_tag_is_in_the_prompt_are_not_spoken_in_any_round(pipeline):
    thoughts = "They ask for the weather. I need a tool.</think>\n\n"
    told = ask(pipeline, thoughts + BEFORE + TAGGED, f"So 12.</think>{ANSWER}", start="reasoning")
    assert told.spoken == BEFORE + ANSWER
    assert told.ran == [("get_weather", CITY)]


IN_A_FIELD = Behavior(reasoning="reasoning_content")
WRAPPED = f"\n\n<response>\n{ANSWER}\n</response>\n"


@pytest.mark.parametrize(
    ("pipeline", "options"),
    [(in_pipecat, {}), (in_pipecat, {"service": NvidiaLLMService, "knows_llm": False}), (in_agents, {})],
    ids=["Pipecat", "thoughts in frames", "Agents SDK"],
)  # LiveKit takes the thoughts away before its guard reads
def test_tags_around_the_answer_are_not_spoken_if_the_thoughts_came_in_a_field(pipeline, options):
    told = ask(pipeline, [["think", "They want to know it."], ["say", WRAPPED]], behavior=IN_A_FIELD, **options)
    assert told.spoken == ANSWER
    assert ask(pipeline, WRAPPED, **options).spoken == " ".join(WRAPPED.split())


def test_in_pipecat_a_server_that_parses_thoughts_has_none_in_its_text():
    told = ask(in_pipecat, [["think", "Hm."], ["say", ANSWER]], behavior=IN_A_FIELD, start="reasoning")
    assert told.spoken == ANSWER


@pytest.mark.parametrize("data", ['{"plan": [1, 2]}', BODY], ids=["a plan", "like a call"])
def test_in_pipecat_text_that_the_server_marks_as_data_is_neither_spoken_nor_run(data):
    told = ask(in_pipecat, data, behavior=Behavior(kind="json"))
    assert (told.spoken, told.ran) == ("", [])


@pytest.mark.parametrize("pipeline", [in_pipecat, in_livekit])
def test_a_call_of_a_tool_that_was_not_offered_is_answered_by_the_framework(pipeline):
    told = ask(pipeline, BEFORE + tagged("Oslo", "get_whether"), ANSWER)
    assert told.spoken == BEFORE + ANSWER
    assert told.ran == []
    ((name, arguments, text),) = told.results
    assert (name, arguments) == ("get_whether", CITY)
    assert "get_whether" in text
    assert "error" in told.cues


@pytest.mark.parametrize("written", ['["Oslo"]', '{"city": Oslo}', '{"city": "Oslo",}', ""])
@pytest.mark.parametrize("before", [BEFORE, ""])
def test_in_livekit_a_call_whose_arguments_cannot_be_read_sounds_as_an_error(before, written):
    call = f'<tool_call>\n{{"name": "get_weather", "arguments": {written}}}\n</tool_call>'
    told = ask(in_livekit, before + call)
    assert (told.spoken, told.ran, told.cues) == (before.strip(), [], ["error"])
    told = ask(in_livekit, call + TAGGED, ANSWER)  # beside one that runs
    assert (told.spoken, told.ran) == (ANSWER, [("get_weather", CITY)])
    assert sorted(told.cues) == ["error", "success", "tool_call"]


@IN_EACH
def test_a_stream_that_breaks_inside_a_call_speaks_nothing_of_it_and_runs_nothing(pipeline):
    told = ask(pipeline, [["say", BEFORE + TAGGED[:-20]], ["break"]])
    assert re.fullmatch(r"(Let me look\. ?)*", told.spoken)  # LiveKit asks again; the Agents SDK drops it all
    assert told.ran == []


@IN_EACH
def test_an_interruption_between_call_and_result_ends_the_turn(pipeline):
    told = ask(pipeline, BEFORE + TAGGED, ANSWER, tool_s=8.0, interrupt_s=4.0)
    assert told.spoken == BEFORE.strip()
    assert told.ran == [("get_weather", CITY)]
    assert told.cues == ["tool_call"]


def test_in_pipecat_a_call_that_an_interruption_cuts_off_is_no_error_and_is_not_spoken():
    told = ask(in_pipecat, BEFORE + TAGGED, interrupt_s=0.25)
    assert (told.spoken, told.ran, told.cues) == (BEFORE.strip(), [], ["tool_call"])


class NullChoices(OpenAILLMService):
    """Its server ends each answer with a chunk whose `choices` are null."""

    async def get_chat_completions(self, context):
        return self._with_null(await super().get_chat_completions(context))

    async def _with_null(self, chunks):
        async for chunk in chunks:
            yield chunk
        yield ChatCompletionChunk.model_construct(id="1", model="m", choices=None, usage=None)


class WholeAnswerLast(OpenAILLMService):
    """Its server ends each answer with the whole of it, as MiniMax's does."""

    async def get_chat_completions(self, context):
        return self._with_all(await super().get_chat_completions(context))

    async def _with_all(self, chunks):
        text = ""
        async for chunk in chunks:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            yield chunk
        message = {"role": "assistant", "content": text}
        last = Choice.model_construct(index=0, finish_reason="stop", delta=None, message=message)
        yield ChatCompletionChunk.model_construct(id="1", model="m", choices=[last], usage=None)


@pytest.mark.parametrize("service", [NvidiaLLMService, NullChoices, WholeAnswerLast])
@pytest.mark.parametrize("call", [["say", TAGGED], STRUCTURED], ids=["text", "structured"])
def test_in_pipecat_a_service_that_streams_in_a_way_of_its_own_is_as_the_others(call, service):
    told = ask(in_pipecat, [["say", BEFORE], call], ANSWER, service=service)
    assert (told.spoken, told.ran) == (BEFORE + ANSWER, [("get_weather", CITY)])
    assert told.cues == ["tool_call", "success"]


def test_in_pipecat_a_call_in_the_answer_to_half_a_question_is_silent():
    """An eager end of a turn that is withdrawn: Pipecat runs no call of a speculative response."""
    told = ask(in_pipecat, [["say", BEFORE], STRUCTURED], speculation=True)
    assert (told.spoken, told.ran, told.cues) == ("", [], [])


def test_in_the_agents_sdk_a_call_of_a_tool_that_was_not_offered_is_dropped():
    told = ask(in_agents, BEFORE + tagged("Oslo", "get_whether"), ANSWER)
    assert (told.spoken, told.ran, told.cues, told.failure) == (BEFORE.strip(), [], [], None)


def test_in_pipecat_without_the_service_the_text_is_guarded_and_the_call_has_its_cue_and_a_warning(caplog):
    told = ask(in_pipecat, BEFORE + TAGGED, knows_llm=False)
    assert told.spoken == BEFORE.strip()
    assert (told.ran, told.cues) == ([], ["tool_call"])
    assert "create(llm=…) would run it" in caplog.text


def test_in_pipecat_thoughts_go_on_as_thoughts():
    told = ask(in_pipecat, "<think>They ask for degrees.</think>It is mild.")
    assert told.spoken == "It is mild."
    assert "".join(told.thoughts) == "They ask for degrees."


@IN_EACH
def test_the_guard_needs_no_cues(pipeline):
    assert ask(pipeline, BEFORE + TAGGED, ANSWER, sounds=False).spoken == BEFORE + ANSWER


@pytest.mark.parametrize("pipeline", [in_pipecat, in_livekit])
def test_the_cues_need_no_guard(pipeline):
    told = ask(pipeline, [["say", TAGGED], STRUCTURED], ANSWER, guard=False)
    assert (TAGGED in told.spoken, told.cues) == (True, ["tool_call", "success"])
