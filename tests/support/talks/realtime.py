"""OpenAI Realtime: its package's client, and the Agents SDK's session, at a server on loopback."""

import asyncio

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner
from openai import AsyncOpenAI

from cues.adapters.agents_sdk import AgentCues
from cues.adapters.realtime import RealtimeCues
from stream.events import ToolCallEnd
from tests.support.realtime_server import RealtimeServer, recorded, renamed, spoken
from tests.support.turn_matrix import VOICE, Played, calls_to_run, result_of

CALL = recorded("openai-tool-round.jsonl")[4:23]
QUESTION = recorded("openai-spoken-turn.jsonl")[:7]
SPEECH_STARTED = {**QUESTION[2], "audio_start_ms": 9000}
ANSWER = spoken(recorded("openai-spoken-turn.jsonl"), VOICE)[7:]
N_SILENT = next(n for n, event in enumerate(ANSWER) if event["type"] == "response.output_audio.delta")


def script_of(turn):
    """The server's part after the user's question: a response for each call, and one that speaks."""
    script = []
    for number, call in enumerate(turn.calls):
        events = renamed(CALL, number)
        for event in events:
            event.update({"name": call.name} if "name" in event else {})
            event.get("item", {}).update({"name": call.name} if "item" in event else {})
        script += [turn.think_s, *events, "response.create"]
    return [*script, turn.think_s, *ANSWER[:N_SILENT], turn.voice_s, *ANSWER[N_SILENT:]]


class RealtimeTalk:
    """A loop of the user's own over the client of the openai package."""

    holds_s = 0.06

    def __init__(self, turn, clock, *, script=None, **options):
        self._turn, self._clock, self._options = turn, clock, options
        self._asked = asyncio.Event()
        script = script_of(turn) if script is None else script
        self.server = RealtimeServer([*QUESTION[:2], self._asked, *QUESTION[2:], *script])
        self.played = Played(clock)

    async def __aenter__(self):
        await self.server.__aenter__()
        await self._connect()
        self.router = self._voice.router
        self._tasks = [asyncio.create_task(self._voice.run()), asyncio.create_task(self._listen())]
        return self

    async def _connect(self):
        client = AsyncOpenAI(api_key="none", websocket_base_url=self.server.url)
        self._connection = await client.realtime.connect(model="gpt-realtime").enter()
        self._voice = RealtimeCues(self.played.add, self._connection.send, clock=self._clock, **self._options)
        self._calls, self._timeout_s = calls_to_run(self._turn)

    async def _listen(self):
        async for event in self._connection:
            for told in await self._voice.feed(event):
                if isinstance(told, ToolCallEnd) and told.status == "ok":
                    self._tasks.append(asyncio.create_task(self._run_tool(told)))

    async def _run_tool(self, call):
        failed, output = call.tool_name != "search", "no such tool"
        try:
            async with asyncio.timeout(self._timeout_s):
                output = output if failed else await result_of(next(self._calls))
        except (TimeoutError, RuntimeError) as error:
            output, failed = str(error), True
        await self._voice.result(call.tool_call_id, output, is_error=failed)

    async def ask(self):
        self._asked.set()

    async def interrupt(self):
        await self.server.interrupt(SPEECH_STARTED)

    async def __aexit__(self, *_):
        self._voice.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._connection.close()
        await self.server.__aexit__(None, None, None)


class AgentsRealtimeTalk(RealtimeTalk):
    """A session of the Agents SDK, which runs the tools itself."""

    async def _connect(self):
        calls, timeout_s = calls_to_run(self._turn)

        @function_tool(timeout=timeout_s)
        async def search(city: str) -> str:
            """Search."""
            return await result_of(next(calls))

        self._voice = AgentCues(self.played.add, clock=self._clock, **self._options)
        other = RealtimeAgent(name="Other", instructions="test")
        runner = RealtimeRunner(RealtimeAgent(name="test", instructions="test", tools=[search], handoffs=[other]))
        config = {"url": self.server.url, "api_key": "none", "playback_tracker": self._voice.playback_tracker}
        self._connection = await runner.run(model_config=config)
        await self._connection.__aenter__()

    async def _listen(self):
        await self._voice.listen(self._connection)
