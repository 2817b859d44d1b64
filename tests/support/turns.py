"""Turns for tests: a session in virtual time, with scripts for the model and for the user."""

import asyncio
from dataclasses import dataclass, field

import numpy as np

import cues
from stream.routing.router import CueRouter, CueRules
from stream.session import VoiceSession
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.virtual_loop import LoopClock, run_virtually

RATE = 24000


class Tape:
    """A sink that keeps everything."""

    def __init__(self):
        self._mixed, self._speech = [np.zeros(0, dtype=np.float32)], [np.zeros(0, dtype=np.float32)]

    def write(self, mixed, speech):
        self._mixed.append(np.array(mixed))
        self._speech.append(np.array(speech))

    @property
    def mixed(self):
        return np.concatenate(self._mixed)

    @property
    def speech(self):
        return np.concatenate(self._speech)


class Source:
    """A model's events, (seconds, event) each; an exception among them is raised. It takes a while to close."""

    def __init__(self, turn, closing_s=0.001):
        self._turn, self._closing_s, self._start_s = iter(turn), closing_s, LoopClock().now()
        self.closed = False

    def __aiter__(self):
        return self

    async def __anext__(self):
        if (step := next(self._turn, None)) is None:
            raise StopAsyncIteration
        await LoopClock().sleep_until(self._start_s + step[0])
        if isinstance(step[1], Exception):
            raise step[1]
        return step[1]

    async def aclose(self):
        await asyncio.sleep(self._closing_s)
        self.closed = True


@dataclass
class Told:
    """Result of the turns of a session."""

    tape: Tape = field(default_factory=Tape)
    events: list = field(default_factory=list)
    journal: object = None
    router: object = None
    mixer: object = None
    history: object = None
    source_closed: bool = False
    leaked: set = field(default_factory=set)

    @property
    def cues(self):
        return [sounded.cue for sounded in self.journal.sounded]

    def spans(self, cue):
        return [span for span in self.router.spans if span.cue == cue]


async def chunks_with_a_call():
    """An answer with a call and with data for a program, as the openai package gives it in dictionaries."""
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    data = {"content": '{"plan": [1, 2]}', "kind": "json"}
    for delta in ({"content": "Let me look"}, {"tool_calls": [call]}, data, {"content": "Two files."}):
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def barge_in(session, _turn):
    session.barge_in()


def run_turn(script, *, speaker=None, bank=None, rules=None, tools=None, barge_in_s=None, raises=(), **options):
    """Run a turn, or a list of turns of one session, each beginning where the one before ended.

    `barge_in_s` is when the user interrupts the first one, or when `disturb(session, task)` is called.
    """
    disturb, listeners = options.pop("disturb", barge_in), options.pop("listeners", ())
    limiter = options.pop("limiter", False)

    async def go():
        told = Told(mixer=cues.Mixer(RATE, limiter=limiter))
        told.router = CueRouter(
            cues.load_bank() if bank is None else bank, told.mixer, rules=rules or CueRules(), tools=tools
        )
        for listener in listeners:
            told.router.spans.subscribe(listener)
        session = VoiceSession(
            mixer=told.mixer,
            router=told.router,
            speaker=speaker or VoiceLikeSpeaker(),
            sink=told.tape,
            **{"clock": LoopClock(), "on_event": told.events.append, **options},
        )
        told.history = session.history
        for number, turn in enumerate(script if script and isinstance(script[0], list) else [script]):
            source = Source(turn)
            running = asyncio.create_task(session.run(source))
            if barge_in_s is not None and number == 0:
                await (asyncio.wait({running}, timeout=barge_in_s) if barge_in_s else asyncio.sleep(0))
                if not running.done():
                    disturb(session, running)
            (outcome,) = await asyncio.gather(running, return_exceptions=True)
            if isinstance(outcome, Exception) and not isinstance(outcome, raises):
                raise outcome
            told.journal, told.source_closed = session.journal, source.closed
        told.leaked = asyncio.all_tasks() - {asyncio.current_task()}
        return told

    return run_virtually(go)
