"""Speech of one line of text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from cues.meters.loudness import integrated_lufs
from cues.signal.resample import resample
from cues.units import db_to_gain
from stream.speech.choice import choose_speaker
from stream.speech.speaker import SAMPLE_RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["spoken"]

_SPEECH_LUFS = -20.0


def spoken(text: str, speaker: str, sample_rate: int) -> tuple[NDArray[np.float32], str]:
    """Speech of `text` at −20 LUFS, float32, shape `(n_samples,)`, and the name of the speaker.

    Raises
    ------
    SpeakerError
        If the chosen speaker is not available.
    """
    samples, name = asyncio.run(_collect(text, speaker))
    loudness = integrated_lufs(samples, SAMPLE_RATE)
    if loudness is not None and np.isfinite(loudness):
        gain_db = min(_SPEECH_LUFS - loudness, -1.0 - 20.0 * float(np.log10(np.abs(samples).max())))
        samples = samples * np.float32(db_to_gain(gain_db))
    return resample(samples, SAMPLE_RATE, sample_rate), name


async def _collect(text: str, speaker: str) -> tuple[NDArray[np.float32], str]:
    chosen = await choose_speaker(speaker)
    try:
        await chosen.send(text)
        await chosen.finish()
        parts = [speech.samples async for speech in chosen]
        return np.concatenate(parts), chosen.name
    finally:
        await chosen.aclose()
