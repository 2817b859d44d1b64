"""The level of the passing speech, for cues that follow it."""

import math

import numpy as np
from numpy.typing import NDArray

from cues._kernels import layout
from cues.mixing.state import NotCopyable
from cues.units import ms_to_samples

__all__ = ["SpeechLevel"]

USUAL_DBFS = -20.0
"""RMS of speech at the cues' reference level, −20 LUFS; for speech the two scales differ by about 1 dB."""
LEAST_DB, MOST_DB = -12.0, 6.0


class SpeechLevel(NotCopyable):
    """RMS of the session's 100 ms blocks, averaged over some seconds of speech."""

    # Blocks below −50 dBFS are pauses and do not count. NaN and infinity count as silence. Squares are summed as
    # integers, so the level does not depend on the frame size.

    __slots__ = ("_floats", "_words", "address")

    def __init__(self, sample_rate: int) -> None:
        self._words: NDArray[np.int64] = np.zeros(layout.LEVEL_WORDS, dtype=np.int64)
        self._floats: NDArray[np.float64] = self._words.view(np.float64)
        self._words[layout.LEVEL_BLOCK_I64] = ms_to_samples(layout.BLOCK_MS, sample_rate)
        self.address = int(self._words.ctypes.data)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self._words.nbytes

    def hear(self, speech: NDArray[np.float32], position: int) -> None:
        """Measure one channel from absolute `position` on; twin of `cues._kernels.listening`, to the bit."""
        block, start = int(self._words[layout.LEVEL_BLOCK_I64]), 0
        while start < len(speech):
            left = block - (position + start) % block
            part = speech[start : start + left]
            self._words[layout.LEVEL_SUM_I64] += sum_of_squares(part)
            start += left
            if len(part) < left:
                return
            mean_square = int(self._words[layout.LEVEL_SUM_I64]) / block / layout.FULL_SCALE**2
            self._words[layout.LEVEL_SUM_I64] = 0
            if mean_square >= layout.GATE:
                mean, weight = self._floats[[layout.LEVEL_MEAN_SQUARE_F64, layout.LEVEL_WEIGHT_F64]]
                self._floats[layout.LEVEL_MEAN_SQUARE_F64] = mean * layout.KEEP + mean_square
                self._floats[layout.LEVEL_WEIGHT_F64] = weight * layout.KEEP + 1.0

    @property
    def offset_db(self) -> float:
        """Gain for cues, −12 … +6 dB; 0 until speech was measured."""
        if not self._floats[layout.LEVEL_WEIGHT_F64]:
            return 0.0
        level_db = 10.0 * math.log10(self._floats[layout.LEVEL_MEAN_SQUARE_F64] / self._floats[layout.LEVEL_WEIGHT_F64])
        return min(max(level_db - USUAL_DBFS, LEAST_DB), MOST_DB)


def sum_of_squares(speech: NDArray[np.float32]) -> int:
    """Sum of squares in whole 32768ths, clipped at 1.0; NaN and infinity count as silence."""
    magnitude = np.abs(speech)
    heard = np.where(np.isfinite(speech), np.minimum(magnitude, np.float32(1.0)), np.float32(0.0))
    whole = (heard * np.float32(layout.FULL_SCALE)).astype(np.int64)
    return int(whole @ whole)
