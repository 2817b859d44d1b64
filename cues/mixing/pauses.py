"""Pause detection in passing speech, for cues that wait for a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues.units import db_to_gain, ms_to_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PauseFinder"]

BLOCK_MS = 10.0
PAUSE_MS = 80.0
QUIET_DBFS = -45.0
"""A pause is `PAUSE_MS` below this sample peak: below speech, above a synthetic voice's noise floor."""


class PauseFinder:
    """Peaks of the session's 10 ms blocks; unlike a sum, a peak does not depend on the frame size."""

    def __init__(self, sample_rate: int) -> None:
        self._block = max(1, ms_to_samples(BLOCK_MS, sample_rate))
        self._needed = round(PAUSE_MS / BLOCK_MS)
        self._quiet_peak = db_to_gain(QUIET_DBFS)
        self.reset(0)

    def reset(self, now: int) -> None:
        """Restart detection at sample `now`."""
        self._peak = 0.0
        self._n_quiet = 0
        self._checked = now - now % self._block
        self._whole = now % self._block == 0

    def next_check(self, now: int) -> int:
        """The sample at which the current block ends."""
        return now - now % self._block + self._block

    def hear(self, speech: NDArray[np.float32]) -> None:
        """Measure the next samples, which lie within one block."""
        with np.errstate(invalid="ignore"):
            peak = float(np.abs(speech).max())
        self._peak = max(self._peak, peak) if np.isfinite(peak) else np.inf

    def found(self, now: int) -> bool:
        """Whether a pause is found at sample `now`."""
        if now % self._block == 0 and now > self._checked:
            quiet = self._peak < self._quiet_peak
            # The first block was measured only in part.
            self._n_quiet = self._n_quiet + 1 if quiet and self._whole else 0
            self._peak, self._checked, self._whole = 0.0, now, True
        return self._n_quiet >= self._needed
