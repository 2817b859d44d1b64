"""The Agents SDK, the real package: a realtime session over a WebSocket on loopback, and a streamed run."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from agents import function_tool
from agents.realtime import RealtimeAgent
from agents.realtime.events import RealtimeHandoffEvent

from cues.adapters.agents_sdk import AgentCues
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from tests.support.listening import steady_voice
from tests.support.realtime_server import recorded, renamed, spoken
from tests.support.talks.realtime import CALL as MADE
from tests.support.talks.realtime import AgentsRealtimeTalk, RealtimeTalk, script_of
from tests.support.turn_matrix import TURNS, Call, Turn, check_silent_after, check_whole_turn, play
from tests.support.virtual_loop import LoopClock, run_virtually

TOOL_ROUND = recorded("openai-tool-round.jsonl")
CALL = TOOL_ROUND[: 1 + next(n for n, e in enumerate(TOOL_ROUND) if e["type"] == "response.done")]
VOICE = float_of_pcm16(pcm16_of_float(steady_voice(4.0)))
ANSWER = spoken(recorded("openai-spoken-turn.jsonl"), VOICE)[6:]
SPEECH_STARTED = {"type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "i", "audio_start_ms": 9000}
ITEM = next(e["item_id"] for e in ANSWER if e["type"] == "response.output_audio.delta")


@pytest.mark.parametrize(("tools", "cues"), [(None, ("tool_call", "error")), (["search"], ("error",))])
def test_a_tool_that_the_session_does_not_know_is_an_error_and_ends_the_turn(tools, cues):
    """The SDK asks for no answer then."""
    heard, is_over, talk = play(AgentsRealtimeTalk, TURNS["unknown tool"], lasts_s=20.0, tools=tools)
    assert heard.cues == cues
    check_silent_after(heard, heard.spans[-1].end_samples)
    assert is_over
    assert talk.server.of("response.create") == []


def test_a_handoff_sounds_as_a_call_that_succeeds_and_the_turn_goes_on():
    turn = Turn((Call("transfer_to_other", 0.0),), think_s=4.0, cues=("tool_call", "success"))
    heard, is_over, _ = play(AgentsRealtimeTalk, turn, lasts_s=20.0, tools=None)
    check_whole_turn(turn, replace(heard, asked=heard.spans[0].start_samples))
    assert is_over


@pytest.mark.parametrize("kind", [RealtimeTalk, AgentsRealtimeTalk])
def test_an_error_of_the_server_sounds_once(kind):
    error = {"type": "server_error", "message": "overloaded", "code": None, "param": None, "event_id": None}
    script = [1.0, {"type": "error", "event_id": "e", "error": error}]
    heard, *_ = play(kind, TURNS["plain"], lasts_s=10.0, script=script)
    assert heard.cues == ("error",)


def out_of_band(events):
    """A recorded response in text, as one that no conversation gets."""
    events = renamed(events, "aside")
    return [{**e, "response": {**e["response"], "conversation_id": None}} if "response" in e else e for e in events]


@pytest.mark.parametrize("kind", [RealtimeTalk, AgentsRealtimeTalk])
def test_no_voice_is_awaited_after_a_response_out_of_band_in_text(kind):
    begins = [n for n, event in enumerate(TOOL_ROUND) if event["type"] == "response.created"]
    script = [0.5, *ANSWER, 6.0, *out_of_band(TOOL_ROUND[begins[1] :])]
    heard, is_over, _ = play(kind, TURNS["plain"], lasts_s=60.0, script=script)
    assert heard.cues == ()
    assert is_over


def test_a_call_out_of_band_sounds_where_the_sdk_runs_it_and_asks_for_an_answer():
    turn = TURNS["slow voice"]
    think_s, *call, asks = (script := script_of(turn))[: 2 + len(MADE)]
    script[: 2 + len(MADE)] = think_s, *out_of_band(call), asks
    heard, is_over, _ = play(AgentsRealtimeTalk, turn, lasts_s=30.0, script=script)
    assert heard.cues == turn.cues
    assert is_over


def raw(**fields):
    return SimpleNamespace(type="raw_model_event", data=SimpleNamespace(type="raw_server_event", data=fields))


def calls(*names):
    """A response that calls tools."""
    yield raw(type="response.created", response={"id": "r"})
    for n, name in enumerate(names):
        item = {"id": f"i{n}", "type": "function_call", "call_id": f"c{n}", "name": name, "arguments": "{}"}
        yield raw(type="response.output_item.added", response_id="r", output_index=n, item={**item, "arguments": ""})
        item["status"] = "completed"
        yield raw(type="response.output_item.done", response_id="r", output_index=n, item=item)
    yield raw(type="response.done", response={"id": "r", "status": "completed", "output": []})


OTHER = RealtimeAgent(name="other")
FIRST = RealtimeAgent(name="first", tools=[function_tool(lambda: "12", name_override="look")])
HANDOFF = RealtimeHandoffEvent(from_agent=FIRST, to_agent=OTHER, info=None)
LOOKED = SimpleNamespace(type="tool_end", tool=FIRST.tools[0], output="12")
UNKNOWN = SimpleNamespace(type="error", error={"message": "Tool nope not found"})


@pytest.mark.parametrize("handoff", ["transfer_to_other", "pass_on"])
@pytest.mark.parametrize("ends", [(HANDOFF, LOOKED), (LOOKED, HANDOFF)], ids=["the handoff first", "the tool first"])
@pytest.mark.parametrize("tool_is_first", [True, False])
def test_each_of_a_tool_and_a_handoff_in_one_response_ends_its_own_call(handoff, ends, tool_is_first):
    names = ("look", handoff) if tool_is_first else (handoff, "look")
    assert answered(calls(*names), ends).is_over


@pytest.mark.parametrize("ends", [(UNKNOWN, LOOKED), (LOOKED, UNKNOWN)], ids=["told first", "told last"])
@pytest.mark.parametrize("names", [("nope", "look"), ("nope", "look", "pass_on")])
def test_nothing_is_awaited_after_the_answer_to_a_tool_beside_an_unknown_one(ends, names):
    assert answered(calls(*names), (*ends, *[HANDOFF] * (len(names) - 2))).is_over


def answered(call, ends):
    """The router after calls, their outcomes and a spoken answer."""

    async def go():
        voice = AgentCues(lambda _: None, clock=LoopClock())
        playing = asyncio.create_task(voice.run())
        for event in (*call, *ends, *(raw(**fields) for fields in ANSWER)):
            await voice.follow(event)
        await asyncio.sleep(20.0)
        voice.close()
        await playing
        assert [span.cue for span in voice.router.spans if span.cue == "working"] == []
        return voice.router

    return run_virtually(go)
