"""LiveKit's guarded model: what a session looks up on it, retries, other models behind it, and nodes of an agent."""

import asyncio

import pytest
from livekit.agents import Agent, AgentSession, APIConnectionError, APIConnectOptions, FlushSentinel, function_tool, llm

from cues.adapters.livekit import guarded, guarded_node
from cues.errors import CueTypeError
from stream.errors import StreamValueError
from tests.support.livekit_session import ScriptedLLM, call_of

HALF = '<tool_call>{"name": "dim", "argu'
WHOLE = HALF + 'ments": {"percent": 40}}</tool_call>'
AT_ONCE = APIConnectOptions(max_retry=2, retry_interval=0.0)


@function_tool
async def dim(percent: int) -> str:
    """Dim the light."""
    return str(percent)


def broken():
    return APIConnectionError("gone")


class Model(ScriptedLLM):
    """A model with names of its own, which keeps what is done with it."""

    model, provider = "small", "home"

    def __init__(self, answers=()):
        super().__init__(answers)
        self.told = []

    def chat(self, **options):
        self.told.append(options.get("tool_choice"))
        return super().chat(**options)

    def prewarm(self, **_):
        self.told.append("prewarm")

    async def aclose(self):
        self.told.append("aclose")

    def update_options(self, **options):
        self.told.append(options)


def answer_of(model, events=(), **options):
    """The whole answer, and the events that the model emitted."""

    async def go():
        emitted = []
        for name in ("metrics_collected", "error"):
            model.on(name, emitted.append)
        context = llm.ChatContext.empty()
        found = await model.chat(chat_ctx=context, tools=[dim], conn_options=AT_ONCE, **options).collect()
        return found, emitted

    return asyncio.run(go())


def test_a_session_finds_on_it_what_the_model_has():
    model = Model([["It is fine."]])
    kept = guarded(model)
    assert (kept.model, kept.provider, kept.label) == ("small", "home", model.label)
    assert kept.metrics_metadata == model.metrics_metadata
    kept.prewarm()
    kept.update_options(temperature=0.1)
    found, (metrics,) = answer_of(kept, tool_choice="auto")
    asyncio.run(kept.aclose())
    assert found.text == "It is fine."
    assert (metrics.label, metrics.metadata.model_name) == (model.label, "small")
    assert model.told == ["prewarm", {"temperature": 0.1}, "auto", "aclose"]
    with pytest.raises(AttributeError):
        _ = kept.no_such_thing


def test_what_is_no_model_is_refused():
    with pytest.raises(CueTypeError, match=r"llm is 'openai/gpt'; it must be an llm\.LLM"):
        guarded("openai/gpt")


def test_an_unknown_start_is_refused():
    with pytest.raises(StreamValueError, match="start is 'thoughts'"):
        guarded(Model(), start="thoughts")


def test_a_retry_is_read_from_its_beginning_and_retries_count_once():
    model = Model([["Let me see. ", HALF, broken()], ["It is ", WHOLE, "dark."]])
    found, events = answer_of(guarded(model))
    assert found.text == "Let me see. It is dark."
    assert [(call.name, call.arguments) for call in found.tool_calls] == [("dim", '{"percent": 40}')]
    assert [(event.recoverable, event.label) for event in events if event.type == "llm_error"] == [(True, model.label)]
    model = Model([[HALF, broken()]] * 9)
    with pytest.raises(APIConnectionError):
        answer_of(guarded(model))
    assert len(model.told) == AT_ONCE.max_retry + 1


def test_another_model_that_takes_over_in_mid_stream_is_read_from_its_beginning():
    first, second = Model([["One ", "moment. ", HALF, broken()]]), Model([["It is ", "dark."]])
    model = guarded(llm.FallbackAdapter([first, second], retry_on_chunk_sent=True))
    assert answer_of(model)[0].text == "One moment. It is dark."


def chunk(delta, chunk_id="1", **fields):
    return llm.ChatChunk(id=chunk_id, delta=llm.ChoiceDelta(role="assistant", **delta), **fields)


def through_node(*given, awaited=False):
    """What a node gives in place of these pieces."""

    async def pieces():
        for piece in given:
            yield piece

    async def later():
        return pieces()

    async def go():
        return [out async for out in guarded_node(later() if awaited else pieces(), [dim])]

    return asyncio.run(go())


def test_each_chunk_with_an_id_of_its_own_is_no_new_attempt():
    cut = [chunk({"content": piece}, str(n)) for n, piece in enumerate(["Yes. ", WHOLE[:9], WHOLE[9:30], WHOLE[30:]])]
    text, call = through_node(*cut)
    assert text is cut[0]
    assert call.delta.tool_calls[0].arguments == '{"percent": 40}'


def test_chunks_that_need_no_repair_are_the_very_chunks():
    call = call_of("dim", {"percent": 40}).model_copy(update={"extra": {"signature": "abc"}})
    usage = llm.CompletionUsage(completion_tokens=1, prompt_tokens=1, total_tokens=2)
    given = [
        chunk({"content": "Yes. "}),
        chunk({"tool_calls": [call]}),
        FlushSentinel(),
        llm.ChatChunk(id="1", usage=usage),
    ]
    found = through_node(*given)
    assert all(new is old for new, old in zip(found, given, strict=True))


def test_what_a_chunk_says_beside_its_text_stays():
    usage = llm.CompletionUsage(completion_tokens=1, prompt_tokens=1, total_tokens=2)
    call, rest = through_node(chunk({"content": WHOLE, "extra": {"signature": "abc"}}, usage=usage))
    assert call.delta.tool_calls[0].name == "dim"
    assert (rest.delta.content, rest.delta.extra, rest.usage) == (None, {"signature": "abc"}, usage)


def test_a_structured_twin_is_the_same_call_and_another_one_keeps_what_its_chunk_says():
    twin = call_of("dim", {"percent": 40})
    other = call_of("dim", {"percent": 60}, "call_2").model_copy(update={"extra": {"signature": "abc"}})
    found = through_node(chunk({"content": WHOLE}), chunk({"tool_calls": [twin]}), chunk({"tool_calls": [other]}))
    calls = [call for one in found for call in one.delta.tool_calls]
    assert [call.arguments.replace(" ", "") for call in calls] == ['{"percent":40}', '{"percent":60}']
    assert calls[1].extra == {"signature": "abc"}


@pytest.mark.parametrize("awaited", [False, True], ids=["iterable", "awaitable"])
def test_a_node_of_texts_is_guarded(awaited):
    first, *calls = through_node("Yes. ", WHOLE[:20], WHOLE[20:], awaited=awaited)
    assert first == "Yes. "
    assert [call.name for one in calls for call in one.delta.tool_calls] == ["dim"]


def test_an_agent_with_a_node_of_its_own():
    ran = []

    @function_tool(name="dim")
    async def run(percent: int) -> str:
        """Dim the light."""
        ran.append(percent)
        return "done"

    class Guarded(Agent):
        def llm_node(self, chat_ctx, tools, model_settings):
            return guarded_node(Agent.default.llm_node(self, chat_ctx, tools, model_settings), tools)

    async def go():
        async with AgentSession(llm=Model([["Yes. ", WHOLE], ["It is dark."]])) as session:
            await session.start(Guarded(instructions="", tools=[run]))
            result = await session.run(user_input="Dim it.")
            return [event.item.text_content for event in result.events if event.type == "message"]

    assert asyncio.run(go()) == ["Yes. ", "It is dark."]
    assert ran == [40]
