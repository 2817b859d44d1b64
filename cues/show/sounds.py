"""Sounds for a page: samples as text, loops twice, cues at equal loudness."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cues.units import db_to_gain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.cue import Cue

__all__ = ["at_loudness", "pcm_text", "turns"]

_CEILING_DBTP = -1.0


def pcm_text(samples: NDArray[np.float32]) -> str:
    """16-bit little-endian PCM in Base64, without dither: silence stays silent."""
    pcm = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    return base64.b64encode(pcm.tobytes()).decode("ascii")


def at_loudness(cue: Cue, m100_lufs: float) -> Cue:
    """`cue` with its loudest 100 ms at `m100_lufs`, or lower to keep the true peak at −1 dBTP."""
    from cues.meters.loudness import measure

    before = cue.measured or measure(cue.samples, cue.sample_rate)
    gain_db = min(m100_lufs - before.m100_max_lufs, _CEILING_DBTP - before.true_peak_dbtp)
    samples = cue.samples * np.float32(db_to_gain(gain_db))
    return replace(cue, samples=samples, measured=measure(samples, cue.sample_rate))


def turns(cue: Cue) -> NDArray[np.float32]:
    """The cue once, or twice if it loops: float32, shape `(n_samples,)`."""
    return np.tile(cue.samples, 2) if cue.loop else cue.samples
