"""Loudness normalization of one recording of a batch."""

from dataclasses import dataclass

import numpy as np

from cues.batch.mixing import Original
from cues.batch.recordings import OnRecording
from cues.batch.rows import Row
from cues.errors import CueValueError
from cues.meters.loudness import measure
from cues.units import db_to_gain

__all__ = ["COLUMNS", "Normalize"]

COLUMNS = ("file", "status", "error", "output", "before_lufs", "gain_db", "missed_lu", "true_peak_dbtp")
"""Columns of the table of normalized recordings."""
_SILENCE_LUFS = -70.0


@dataclass(frozen=True, slots=True)
class Normalize(OnRecording):
    """Task that brings a recording to `target_lufs` by one gain, and replaces `output` when it is complete.

    Loudness is integrated, or that of the loudest 100 ms (`m100`, and below 400 ms); `ceiling_dbtp` limits the gain.
    """

    output: str
    target_lufs: float
    ceiling_dbtp: float
    m100: bool = False

    def run(self) -> Row:
        """Write the recording; its row says by how much the ceiling kept it from the target."""
        original = Original.read(self)
        levels = measure(original.channels, original.rate)
        before = levels.m100_max_lufs if self.m100 or levels.integrated_lufs is None else levels.integrated_lufs
        if not before > _SILENCE_LUFS:
            raise CueValueError(f"it is silent: {before:.1f} LUFS; more than {_SILENCE_LUFS:g} are needed")
        wanted_db = self.target_lufs - before
        gain_db = min(wanted_db, self.ceiling_dbtp - levels.true_peak_dbtp)
        original.write_changed(original.channels * np.float32(db_to_gain(gain_db)), self.output)
        return {
            "output": self.output,
            "before_lufs": round(before, 4),
            "gain_db": round(gain_db, 4),
            "missed_lu": round(gain_db - wanted_db, 4),
            "true_peak_dbtp": round(levels.true_peak_dbtp + gain_db, 4),
        }
