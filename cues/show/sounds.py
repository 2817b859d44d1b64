"""Sounds inside of a page: WAV files as data URIs, and cues brought to the same loudness."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np

from cues.cue import Cue
from cues.library.audiofile import encoded
from cues.units import db_to_gain

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["at_loudness", "turns", "wav_uri"]

_CEILING_DBTP = -1.0


def wav_uri(samples: NDArray[np.float32], sample_rate: int) -> str:
    """A WAV file with 16 bits, dithered, as a `data:` URI."""
    data = encoded(samples, sample_rate, "wav", "16")
    return "data:audio/wav;base64," + base64.b64encode(data).decode("ascii")


def at_loudness(cue: Cue, m100_lufs: float) -> Cue:
    """`cue` with its loudest 100 ms at `m100_lufs`, or as near as a true peak of −1 dBTP allows."""
    from cues.meters.loudness import measure

    before = cue.measured or measure(cue.samples, cue.sample_rate)
    gain_db = min(m100_lufs - before.m100_max_lufs, _CEILING_DBTP - before.true_peak_dbtp)
    samples = cue.samples * np.float32(db_to_gain(gain_db))
    return Cue(
        name=cue.name,
        samples=samples,
        sample_rate=cue.sample_rate,
        spec=cue.spec,
        measured=measure(samples, cue.sample_rate),
        loop=cue.loop,
    )


def turns(cue: Cue) -> NDArray[np.float32]:
    """What "alone" plays: the cue, or two turns of one that loops."""
    return np.tile(cue.samples, 2) if cue.loop else cue.samples
