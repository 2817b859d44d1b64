"""Cues that are speech: phrases, made beforehand, of which one sounds each time, in turn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cues.cue import Cue
from cues.library.shaping import leveled, trimmed, with_soft_edges
from cues.units import ms_to_samples

__all__ = ["SPEECH_LU", "phrase", "spoken_cue"]

SPEECH_LU = 6.0
"""Loudest 100 ms of a phrase against the integrated loudness of speech (LU): so phrases are as loud as an answer."""
_UNNOTICED_LU = 4.0
"""Most that a phrase may miss while another has its level (LU): the ceiling keeps some of espeak's below it."""
_PAUSE_MS = 6000.0
"""Silence after each phrase of a loop."""


def phrase(name: str, samples: NDArray[np.float32], sample_rate: int, *, target_lufs: float) -> Cue:
    """One phrase, trimmed, with soft edges, and its `m100_max` at `target_lufs`; raises for silence."""
    soft = with_soft_edges(trimmed(samples, sample_rate), sample_rate)
    level, measured = leveled(soft, sample_rate, target_lufs=target_lufs)
    return Cue(name=name, samples=level, sample_rate=sample_rate, measured=measured)


def spoken_cue(name: str, phrases: Sequence[Cue], *, loop: bool) -> Cue:
    """A cue of phrases at one rate; in a loop, each is followed by a pause of 6 s.

    Its levels are those of the loudest phrase. If one misses its target by more than 4 LU, `missed_lu` tells of it.
    """
    rate, pause = phrases[0].sample_rate, np.zeros(ms_to_samples(_PAUSE_MS if loop else 0.0, phrases[0].sample_rate))
    padded = [replace(cue, name=name, samples=np.append(cue.samples, pause)) for cue in phrases]
    levels = [cue.measured for cue in phrases if cue.measured]
    loudest, missed_lu = max(levels, key=lambda one: one.m100_max_lufs), min(one.missed_lu or 0.0 for one in levels)
    return Cue(
        name=name,
        samples=np.concatenate([cue.samples for cue in padded]),
        sample_rate=rate,
        measured=replace(loudest, missed_lu=missed_lu) if missed_lu < -_UNNOTICED_LU else loudest,
        loop=loop,
        phrases=tuple(padded),
    )
