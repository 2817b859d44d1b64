"""Sounds for a page: files as data URIs, samples as text, cues at equal loudness."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np

from cues.cue import Cue
from cues.library.audiofile import encoded
from cues.units import db_to_gain

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["at_loudness", "data_uri", "pcm_text", "turns", "wav_uri"]

_CEILING_DBTP = -1.0


def data_uri(kind: str, data: bytes) -> str:
    """A file as a `data:` URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def wav_uri(samples: NDArray[np.float32], sample_rate: int) -> str:
    """WAV file as a `data:` URI, 16 bits with dither."""
    return data_uri("audio/wav", encoded(samples, sample_rate, "wav", "16"))


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
    return Cue(
        name=cue.name,
        samples=samples,
        sample_rate=cue.sample_rate,
        spec=cue.spec,
        measured=measure(samples, cue.sample_rate),
        loop=cue.loop,
    )


def turns(cue: Cue) -> NDArray[np.float32]:
    """The cue once, or twice if it loops: float32, shape `(n_samples,)`."""
    return np.tile(cue.samples, 2) if cue.loop else cue.samples
