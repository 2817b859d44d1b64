"""How loud the speech is that passes, for cues whose level follows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cues.units import db_to_gain, ms_to_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SpeechLevel"]

BLOCK_MS = 100.0
GATE_DBFS = -50.0
MEMORY_S = 3.0
USUAL_DBFS = -20.0
"""RMS of speech at the level that the bank's cues are made for (−20 LUFS; for speech the two differ by about 1 dB)."""
LEAST_DB, MOST_DB = -12.0, 6.0


class SpeechLevel:
    """RMS of blocks of 100 ms that lie at multiples of 100 ms of the session, averaged over some seconds of speech.

    Blocks under −50 dBFS are pauses and do not count. Squares are summed as integers: whole numbers add up to the same
    in any order, so the level does not depend on how the speech was cut into frames.
    """

    def __init__(self, sample_rate: int) -> None:
        self._block = max(1, ms_to_samples(BLOCK_MS, sample_rate))
        self._keep = math.exp(-BLOCK_MS / 1000.0 / MEMORY_S)
        self._sum = 0
        self._mean_square = 0.0
        self._weight = 0.0

    def hear(self, speech: NDArray[np.float32], now: int) -> None:
        """Listen to the samples from `now` on."""
        if math.isnan(speech.max(initial=0.0)):
            speech = np.nan_to_num(speech)
        # Twice as fast as `np.clip` for a frame.
        within = np.minimum(np.maximum(speech, np.float32(-1.0)), np.float32(1.0))
        whole = (within * np.float32(32768.0)).astype(np.int64)
        start = 0
        while start < len(whole):
            n = min(len(whole) - start, self._block - (now + start) % self._block)
            part = whole[start : start + n]
            self._sum += int(part @ part)
            start += n
            if (now + start) % self._block == 0:
                self._end_block()

    @property
    def offset_db(self) -> float:
        """By how much cues should be louder than usual, −12 … +6 dB; 0 before any speech was heard."""
        if not self._weight:
            return 0.0
        level_db = 10.0 * math.log10(self._mean_square / self._weight)
        return min(max(level_db - USUAL_DBFS, LEAST_DB), MOST_DB)

    def _end_block(self) -> None:
        mean_square = self._sum / self._block / 32768.0**2
        self._sum = 0
        if mean_square >= db_to_gain(GATE_DBFS) ** 2:
            self._mean_square = self._mean_square * self._keep + mean_square
            self._weight = self._weight * self._keep + 1.0
