"""A router with its mixer, for tests that let time pass by samples."""

import numpy as np

import cues
from stream.routing.router import CueRouter

RATE = 24000


def bank(*names, seconds=0.1):
    samples = np.sin(np.arange(round(seconds * RATE)) * 0.1).astype(np.float32) * np.float32(0.1)
    return {name: cues.Cue(name=name, samples=samples, sample_rate=RATE) for name in names}


ALL = bank("tool_call", "agent", "error", "success", "working", "mine")


class Pipeline:
    """A router with its mixer, and a way to let time pass."""

    def __init__(self, bank=ALL, **options):
        self.mixer = cues.Mixer(RATE)
        self.router = CueRouter(bank, self.mixer, **options)

    def handle(self, *events):
        return [played.cue for event in events if (played := self.router.handle(event)) is not None]

    def pass_s(self, seconds):
        """Let silence pass; the samples that came out."""
        return np.concatenate(
            [np.array(self.mixer.mix(np.zeros(480, dtype=np.float32))) for _ in range(round(seconds * RATE / 480))]
        )
