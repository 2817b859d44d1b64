"""A router with its mixer, for tests that let time pass by samples."""

import numpy as np

import cues
from stream.routing.router import CueRouter
from tests.support.listening import steady_voice

RATE = 24000


def bank(*names, seconds=0.1):
    samples = np.sin(np.arange(round(seconds * RATE)) * 0.1).astype(np.float32) * np.float32(0.1)
    return {name: cues.Cue(name=name, samples=samples, sample_rate=RATE, loop=name == "working") for name in names}


def spoken(name):
    """A cue of two phrases."""
    parts = [cues.Cue(name=name, samples=steady_voice(0.4, level=0.1), sample_rate=RATE) for _ in range(2)]
    samples = np.concatenate([part.samples for part in parts])
    return cues.Cue(name=name, samples=samples, sample_rate=RATE, phrases=tuple(parts))


ALL = bank("tool_call", "agent", "error", "success", "working", "mine")


class Pipeline:
    """A router with its mixer, and a way to let time pass."""

    def __init__(self, bank=ALL, *, frame=480, **options):
        self.mixer = cues.Mixer(RATE)
        self.router = CueRouter(bank, self.mixer, **options)
        self._frame, self._out = frame, []

    def handle(self, *events):
        return [played.cue for event in events if (played := self.router.handle(event)) is not None]

    def pass_s(self, seconds):
        """Let silence pass; the samples that came out."""
        return self.say(np.zeros(round(seconds * RATE), dtype=np.float32))

    def say(self, speech):
        """Let speech pass; the samples that came out."""
        n = len(self._out)
        for start in range(0, len(speech), self._frame):
            self._out.append(np.array(self.mixer.mix(speech[start : start + self._frame])))
        return np.concatenate(self._out[n:])

    @property
    def out(self):
        """All that was heard."""
        return np.concatenate(self._out)
