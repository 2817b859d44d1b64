"""A `VoiceSession` of our own: the model's events come from a script, and the voice is slow."""

import asyncio
import logging

import cues
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter
from stream.session import VoiceSession
from stream.speech.speaker import PhraseSpeaker, Speech
from tests.support.turn_matrix import RATE, VOICE, Played
from tests.support.turns import Source


class SlowVoice(PhraseSpeaker):
    """Speaks `VOICE` for any phrase, `delay_s` after it got its text."""

    name = "slow"

    def __init__(self, delay_s):
        super().__init__()
        self._delay_s = delay_s

    async def speak(self, _phrase):
        await asyncio.sleep(self._delay_s)
        yield Speech(VOICE)


def steps(turn):
    """The events of a turn, with their times; a call that never ends is the last."""
    events, at_s = [], 0.0
    for n, call in enumerate(turn.calls):
        at_s += turn.think_s
        events += [(at_s, ToolCallStart(call.name, str(n))), (at_s, ToolCallEnd(call.name, str(n)))]
        events += [(at_s, Finish("tool_calls"))]
        at_s += call.runs_s if call.ends != "never" else 1e6
        is_error = call.ends != "success"
        events += [(at_s, ToolResult(tool_name=call.name, tool_call_id=str(n), is_error=is_error, content=call.ends))]
    at_s += turn.think_s
    return [*events, (at_s, TextDelta(turn.answer)), (at_s, Finish("stop"))]


class SessionTalk:
    holds_s = 0.02

    def __init__(self, turn, clock, *, tools, rules, **options):
        self._turn, self.played, mixer = turn, Played(clock), cues.Mixer(RATE)
        self.router = CueRouter(cues.load_bank(), mixer, rules=rules, tools=tools)
        options = {name: option for name, option in options.items() if option is not None}
        voice = SlowVoice(turn.voice_s)
        self._session = VoiceSession(mixer=mixer, router=self.router, speaker=voice, sink=self, clock=clock, **options)

    def write(self, mixed, _speech):
        self.played.add(mixed)

    async def __aenter__(self):
        return self

    async def ask(self):
        self._running = asyncio.create_task(self._session.run(Source(steps(self._turn))))

    async def interrupt(self):
        self._session.barge_in()

    async def __aexit__(self, *_):
        journal = await self._running
        if journal.failure:
            logging.getLogger("stream").error(journal.failure)
