"""Turns for tests: a session on a virtual clock, with scripts for the model and for the user."""

import asyncio
from dataclasses import dataclass, field

import numpy as np

import cues
from stream.routing.router import CueRouter, CueRules
from stream.session import ChatHistory, VoiceSession
from stream.speech.voice_like import VoiceLikeSpeaker
from tests.support.virtual_clock import VirtualClock

RATE = 24000


class Tape:
    """A sink that keeps everything."""

    def __init__(self):
        self._mixed, self._speech = [], []

    def write(self, mixed, speech):
        self._mixed.append(np.array(mixed))
        self._speech.append(np.array(speech))

    @property
    def mixed(self):
        return np.concatenate([np.zeros(0, dtype=np.float32), *self._mixed])

    @property
    def speech(self):
        return np.concatenate([np.zeros(0, dtype=np.float32), *self._speech])


@dataclass
class Told:
    """Result of a turn."""

    journal: object
    tape: Tape
    history: ChatHistory
    events: list = field(default_factory=list)
    router: object = None
    source_closed: bool = False

    @property
    def cues(self):
        return [sounded.cue for sounded in self.journal.sounded]

    def spans(self, cue):
        return [span for span in self.router.spans if span.cue == cue]


def run_turn(script, *, speaker=None, bank=None, rules=None, barge_in_s=None, tools=None, **options):
    """Run a turn; the model's events come as (seconds, event), an exception among them is raised.

    `barge_in_s` is when the user interrupts. `script` may be a list of scripts: the turns of one session, each
    beginning where the one before ended.
    """

    async def go():
        clock = VirtualClock()
        told = Told(None, Tape(), ChatHistory())
        mixer = cues.Mixer(RATE)
        bank_ = cues.load_bank() if bank is None else bank
        told.router = CueRouter(bank_, mixer, rules=rules or CueRules(), tools=tools)
        made = speaker or VoiceLikeSpeaker()
        session = VoiceSession(
            mixer=mixer,
            router=told.router,
            speaker=made(clock) if isinstance(made, type) else made,
            sink=told.tape,
            clock=clock,
            history=told.history,
            on_event=told.events.append,
            **options,
        )

        async def events(turn, start_s):
            try:
                for at_s, event in turn:
                    await clock.sleep_until(start_s + at_s)
                    if isinstance(event, Exception):
                        raise event
                    yield event
            finally:
                told.source_closed = True

        async def main():
            for turn in script if script and isinstance(script[0], list) else [script]:
                interrupting = None
                if barge_in_s is not None and not told.journal:
                    interrupting = asyncio.create_task(interrupt(clock.now() + barge_in_s))
                told.journal = await session.run(events(turn, clock.now()))
                if interrupting is not None:
                    interrupting.cancel()
            others = [task for task in asyncio.all_tasks() if task not in (asyncio.current_task(), interrupting)]
            told.leaked = [task for task in others if "go()" not in repr(task) and "drive" not in repr(task)]

        async def interrupt(at_s):
            await clock.sleep_until(at_s)
            session.barge_in()

        await clock.drive(main())
        return told

    return asyncio.run(go())
