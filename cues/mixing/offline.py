"""Mixing of cues into a finished recording."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cues.arrays import Samples
from cues.cue import Cue
from cues.mixing.mixer import Mixer, MixerStats, Voice
from cues.mixing.voice import Placement
from cues.signal.prediction import faded_continuation
from cues.units import ms_to_samples

__all__ = ["Insert", "Mixed", "mix_recording"]

_FRAME = 4800
_FADE_MS, _PAST_MS = 10.0, 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """A cue, and the time of its first sample in the recording, s, ≥ 0."""

    cue: Cue
    at_s: float
    gain_db: float = 0.0
    placement: Placement = "overlay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A recording with cues in it, within ±1.0, and the mixer's counters."""

    samples: Samples
    stats: MixerStats


def mix_recording(
    speech: Samples, sample_rate: int, inserts: Sequence[Insert], *, limiter: bool = False, loop_s: float = 0.0
) -> Mixed:
    """`speech` with the cues mixed in, extended until the last cue ends; a limiter's delay is removed.

    Speech that ends in mid-sound before the last cue does fades out over 10 ms. A looping cue plays once; with
    `loop_s`, one without phrases plays for so many seconds at least, and up to the end of the speech.

    `speech` has the shape `(n_samples,)` or `(n_samples, channels)`; each cue sounds in all channels.
    """
    mixer = Mixer(sample_rate, limiter=limiter, channels=speech.shape[1] if speech.ndim > 1 else 1)
    loops, loops_end = list[Voice](), 0
    for insert in inserts:
        at, loop = round(insert.at_s * sample_rate), loop_s > 0.0 and insert.cue.loop and not insert.cue.phrases
        voice = mixer.play(insert.cue, at=at, gain_db=insert.gain_db, loop=loop, placement=insert.placement)
        if loop:
            loops, loops_end = [*loops, voice], max(loops_end, at + round(loop_s * sample_rate))
    frames = [mixer.mix(speech[start : start + _FRAME]) for start in range(0, len(speech), _FRAME)]
    if mixer.active and len(speech):
        frames.append(mixer.mix(_after(speech, sample_rate)))
    while mixer.active:
        if mixer.position >= loops_end:
            for voice in loops:
                voice.stop()
        frames.append(mixer.silence(_FRAME // 10))
    if mixer.latency_samples:
        frames.append(mixer.silence(mixer.latency_samples))
    out = np.concatenate(frames) if frames else speech
    return Mixed(samples=out[mixer.latency_samples :], stats=mixer.stats)


def _after(speech: Samples, sample_rate: int) -> Samples:
    """A frame that fades out a recording that ends in mid-sound; silence after any other."""
    n_fade, channels = ms_to_samples(_FADE_MS, sample_rate), speech.reshape(len(speech), -1)
    after = np.zeros((max(n_fade, _FRAME // 10), channels.shape[1]), dtype=np.float32)
    for n, channel in enumerate(channels[-ms_to_samples(_PAST_MS, sample_rate) :].T):
        after[:n_fade, n] = faded_continuation(channel, n_fade)
    return after.reshape(-1, *speech.shape[1:])
