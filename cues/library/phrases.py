"""Cues that are speech: phrases, made beforehand, of which one sounds each time, in turn."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cues.cue import Cue
from cues.library.shaping import leveled, trimmed, with_soft_edges
from cues.units import ms_to_samples

__all__ = ["SPEECH_LU", "phrase", "spoken_cue"]

SPEECH_LU = 6.0
"""Loudest 100 ms of a phrase against the integrated loudness of speech (LU): so phrases are as loud as an answer."""
_PAUSE_MS = 6000.0
"""Silence after each phrase of a loop."""


def phrase(name: str, samples: NDArray[np.float32], sample_rate: int, *, target_lufs: float) -> Cue:
    """One phrase, trimmed, with soft edges, and its `m100_max` at `target_lufs`; raises for silence."""
    soft = with_soft_edges(trimmed(samples, sample_rate), sample_rate)
    level, measured = leveled(soft, sample_rate, target_lufs=target_lufs)
    return Cue(name=name, samples=level, sample_rate=sample_rate, measured=measured)


def spoken_cue(name: str, phrases: Sequence[Cue], *, loop: bool) -> Cue:
    """A cue of phrases at one rate; in a loop, each is followed by a pause of 6 s."""
    rate, pause = phrases[0].sample_rate, np.zeros(ms_to_samples(_PAUSE_MS if loop else 0.0, phrases[0].sample_rate))
    padded = [Cue(name=name, samples=np.append(cue.samples, pause), sample_rate=rate) for cue in phrases]
    return Cue(
        name=name,
        samples=np.concatenate([cue.samples for cue in padded]),
        sample_rate=rate,
        measured=max((cue.measured for cue in phrases if cue.measured), key=lambda found: found.m100_max_lufs),
        loop=loop,
        phrases=tuple(padded),
    )
