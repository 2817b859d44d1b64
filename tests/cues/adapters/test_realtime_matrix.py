"""The turn matrix in OpenAI Realtime: its package's client, and the Agents SDK's session, at a server on loopback."""

import asyncio
from dataclasses import replace

import pytest
from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner
from openai import AsyncOpenAI

from cues.adapters.agents_sdk import AgentCues
from cues.adapters.realtime import RealtimeCues
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from stream.events import ToolCallEnd
from stream.routing.rules import CueRules
from tests.support.listening import new_clicks, steady_voice
from tests.support.paced_turns import Played
from tests.support.realtime_server import RealtimeServer, recorded, renamed, spoken
from tests.support.turn_matrix import (
    ASKED_S,
    HANGS,
    INTERRUPTED,
    STATES,
    THINKING,
    TURNS,
    Call,
    Turn,
    check_barge_in,
    check_hang,
    check_silent_after,
    check_whole_turn,
    lasts_s,
)
from tests.support.virtual_loop import LoopClock, run_virtually

VOICE = float_of_pcm16(pcm16_of_float(steady_voice(2.0)))
CALL = recorded("openai-tool-round.jsonl")[4:23]
QUESTION = recorded("openai-spoken-turn.jsonl")[:7]
SPEECH_STARTED = {**QUESTION[2], "audio_start_ms": 9000}
ANSWER = spoken(recorded("openai-spoken-turn.jsonl"), VOICE)[7:]
N_SILENT = next(n for n, event in enumerate(ANSWER) if event["type"] == "response.output_audio.delta")


def script_of(turn):
    """Script of the server: the user's question, a response for each call, and one that speaks."""
    script = [*QUESTION[:2], ASKED_S, *QUESTION[2:]]
    for number, call in enumerate(turn.calls):
        events = renamed(CALL, number)
        for event in events:
            event.update({"name": call.name} if "name" in event else {})
            event.get("item", {}).update({"name": call.name} if "item" in event else {})
        script += [turn.think_s, *events, "response.create"]
    return [*script, turn.think_s, *ANSWER[:N_SILENT], turn.voice_s, *ANSWER[N_SILENT:]]


class Tools:
    """Runs the calls of a turn."""

    def __init__(self, turn):
        self._calls = iter([call for call in turn.calls if call.ends != "invented"])

    async def run(self):
        call = next(self._calls)
        await asyncio.sleep(call.runs_s if call.ends in ("success", "error") else 1e6)
        if call.ends == "error":
            raise RuntimeError("no such page")
        return "found"


async def talk_with_openai(server, turn, voice_of, until):
    """A loop of the user's own over the client of the openai package."""
    tools, running = Tools(turn), []
    client = AsyncOpenAI(api_key="none", websocket_base_url=server.url)

    async def run_tool(call, voice):
        timeout_s = next((call.runs_s for call in turn.calls if call.ends == "timeout"), None)
        try:
            async with asyncio.timeout(timeout_s):
                failed = call.tool_name != "search"
                output = "no such tool" if failed else await tools.run()
        except (TimeoutError, RuntimeError) as error:
            output, failed = str(error), True
        await voice.result(call.tool_call_id, output, is_error=failed)

    async with client.realtime.connect(model="gpt-realtime") as connection:
        voice = voice_of(lambda write, **options: RealtimeCues(write, connection.send, **options))

        async def listen():
            async for event in connection:
                for told in await voice.feed(event):
                    if isinstance(told, ToolCallEnd) and told.status == "ok":
                        running.append(asyncio.create_task(run_tool(told, voice)))

        running += [asyncio.create_task(voice.run()), asyncio.create_task(listen())]
        await until(voice)
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def talk_with_agents(server, turn, voice_of, until):
    """A session of the Agents SDK, which runs the tools itself."""
    tools = Tools(turn)

    @function_tool(timeout=next((call.runs_s for call in turn.calls if call.ends == "timeout"), None))
    async def search(city: str) -> str:
        """Search."""
        return await tools.run()

    voice = voice_of(AgentCues)
    other = RealtimeAgent(name="Other", instructions="test")
    runner = RealtimeRunner(RealtimeAgent(name="test", instructions="test", tools=[search], handoffs=[other]))
    config = {"url": server.url, "api_key": "none", "playback_tracker": voice.playback_tracker}
    async with await runner.run(model_config=config) as session:
        running = [asyncio.create_task(voice.run()), asyncio.create_task(voice.listen(session))]
        await until(voice)
        for task in running:
            task.cancel()
        await asyncio.wait(running)


TALKS = {"openai": talk_with_openai, "agents": talk_with_agents}


def play(talk, turn, *, lasts_s, interrupt_s=None, script=None, **options):
    """The written frames, whether the turn was over, and the messages to the server."""

    async def go():
        clock, result = LoopClock(), []
        played = Played(clock)

        async def until(voice):
            if interrupt_s is not None:
                await clock.sleep_until(ASKED_S + interrupt_s)
                await server.interrupt(SPEECH_STARTED)
            await clock.sleep_until(ASKED_S + lasts_s)
            speech = None if interrupt_s else VOICE
            result.append(played.heard(voice.router.spans, speech, asked_s=ASKED_S))
            result.append(voice.router.is_over)
            voice.close()

        async with RealtimeServer(script or script_of(turn)) as server:
            await TALKS[talk](server, turn, lambda make: make(played.add, clock=clock, **options), until)
        return *result, server

    return run_virtually(go)


CASES = [(talk, name) for talk in TALKS for name in TURNS if (talk, name) != ("agents", "unknown tool")]


@pytest.mark.parametrize(("talk", "name"), CASES)
def test_no_dead_air_from_the_question_to_the_first_word(talk, name):
    turn = TURNS[name]
    heard, was_over, _ = play(talk, turn, lasts_s=lasts_s(turn), rules=THINKING)
    check_whole_turn(turn, heard)
    assert new_clicks(heard.mixed, heard.speech) == []
    assert was_over


@pytest.mark.parametrize(("talk", "name"), [case for case in CASES if TURNS[case[1]].calls])
def test_without_a_sound_for_thinking_there_is_no_dead_air_from_the_first_call_on(talk, name):
    turn = TURNS[name]
    heard, _, _ = play(talk, turn, lasts_s=lasts_s(turn))
    check_whole_turn(turn, replace(heard, asked=heard.spans[0].start_samples))


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("state", STATES)
def test_a_barge_in_in_each_state_is_over_after_its_fade(talk, state):
    heard, was_over, server = play(talk, INTERRUPTED, lasts_s=90.0, interrupt_s=STATES[state], rules=THINKING)
    check_barge_in(heard, state)
    assert was_over
    cuts = [cut["audio_end_ms"] for cut in server.of("conversation.item.truncate")]
    assert cuts == ([pytest.approx(700, abs=20)] if state == "speaking" else [])


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize(("turn", "limits"), HANGS.values(), ids=HANGS.keys())
@pytest.mark.parametrize("sounds", [True, False], ids=["waiting sound", "silent"])
def test_a_hang_ends_with_the_error_cue(talk, turn, limits, sounds, caplog):
    rules = THINKING if sounds else CueRules(working=None)
    heard, was_over, _ = play(talk, turn, lasts_s=100.0, rules=rules, limits=limits)
    check_hang(heard, caplog.text, sounds=sounds)
    assert was_over


@pytest.mark.parametrize(("tools", "cues"), [(None, ("tool_call", "error")), (["search"], ("error",))])
def test_a_tool_that_the_session_does_not_know_is_an_error_and_ends_the_turn(tools, cues):
    """The SDK asks for no answer then."""
    heard, was_over, server = play("agents", TURNS["unknown tool"], lasts_s=90.0, tools=tools)
    assert heard.cues == cues
    check_silent_after(heard, heard.spans[-1].end_samples)
    assert was_over
    assert server.of("response.create") == []


def test_a_handoff_sounds_as_a_call_that_succeeds_and_the_turn_goes_on():
    turn = Turn((Call("transfer_to_other", 0.0),), think_s=4.0, cues=("tool_call", "success"))
    heard, was_over, _ = play("agents", turn, lasts_s=90.0)
    check_whole_turn(turn, replace(heard, asked=heard.spans[0].start_samples))
    assert was_over


@pytest.mark.parametrize("talk", TALKS)
def test_an_error_of_the_server_sounds_once(talk):
    error = {"type": "server_error", "message": "overloaded", "code": None, "param": None, "event_id": None}
    script = [*QUESTION[:2], ASKED_S, *QUESTION[2:], 1.0, {"type": "error", "event_id": "e", "error": error}]
    heard, _, _ = play(talk, TURNS["plain"], lasts_s=10.0, script=script)
    assert heard.cues == ("error",)
