"""The Agents SDK, the real package: a realtime session over a WebSocket on loopback, and a streamed run."""

import asyncio

import numpy as np
import pytest
from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner

from cues.adapters.agents_sdk import AgentCues
from cues.signal.pcm import float_of_pcm16, pcm16_of_float
from tests.support.listening import RATE, steady_voice
from tests.support.realtime_server import RealtimeServer, recorded, spoken

TOOL_ROUND = recorded("openai-tool-round.jsonl")
CALL = TOOL_ROUND[: 1 + next(n for n, e in enumerate(TOOL_ROUND) if e["type"] == "response.done")]
VOICE = float_of_pcm16(pcm16_of_float(steady_voice(4.0)))
ANSWER = spoken(recorded("openai-spoken-turn.jsonl"), VOICE)[6:]
SPEECH_STARTED = {"type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "i", "audio_start_ms": 9000}
ITEM = next(e["item_id"] for e in ANSWER if e["type"] == "response.output_audio.delta")


@pytest.mark.parametrize("fails", [False, True], ids=["works", "fails"])
def test_a_session_has_cues_for_its_tools_and_is_truncated_at_what_was_heard(fails):
    name = next(e["item"]["name"] for e in CALL if e["type"] == "response.output_item.added")
    frames, spoke = [], asyncio.Event()

    @function_tool(name_override=name)
    def weather(city: str = "", location: str = "") -> str:
        """Tell the weather."""
        if fails:
            raise ConnectionError("no weather today")
        return "foggy"

    def write(frame):
        frames.append(frame)
        if sum(np.abs(frame).max() > 0.01 for frame in frames) > 50:
            spoke.set()

    async def go():
        script = [*CALL, "conversation.item.create", *ANSWER, spoke, SPEECH_STARTED]
        async with asyncio.timeout(30.0), RealtimeServer(script) as server:
            voice = AgentCues(write)
            runner = RealtimeRunner(RealtimeAgent(name="test", instructions="test", tools=[weather]))
            config = {"url": server.url, "api_key": "none", "playback_tracker": voice.playback_tracker}
            async with await runner.run(model_config=config) as session:
                running = [asyncio.create_task(voice.run()), asyncio.create_task(voice.listen(session))]
                cuts = await server.has("conversation.item.truncate")
                voice.close()
                await running[0]
                running[1].cancel()
                return cuts, [span.cue for span in voice.router.spans], server.of("conversation.item.create")

    cuts, sounded, sent = asyncio.run(go())
    assert [cue for cue in sounded if cue != "working"] == ["tool_call", "error" if fails else "success"]
    assert [item["item"]["type"] for item in sent] == ["function_call_output"]
    assert [(cut["item_id"], cut["content_index"]) for cut in cuts] == [(ITEM, 0)]
    n_heard = sum(int(np.count_nonzero(np.abs(frame) > 1e-4)) for frame in frames)
    assert 500 < cuts[0]["audio_end_ms"] <= n_heard * 1000 / RATE + 100
    assert cuts[0]["audio_end_ms"] < 4000
