"""Loudness normalization: one gain that brings a sound to its target, under a true-peak ceiling."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cues.errors import CueValueError
from cues.meters.loudness import measure
from cues.units import db_to_gain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cues.meters.levels import Measurement

__all__ = ["CEILING_DBTP", "MAX_GAIN_DB", "SILENCE_LUFS", "leveled"]

CEILING_DBTP = -3.0
"""Highest true peak of a cue (dBTP)."""
MAX_GAIN_DB = 20.0
"""Largest gain towards the target (dB): more would raise noise. Attenuation has no limit."""
SILENCE_LUFS = -70.0
_METER_ERROR_DB = 0.05  # worst case of 16-times oversampling, which reads low


def leveled(
    samples: NDArray[np.float32], sample_rate: int, *, target_lufs: float | None, gain_db: float = 0.0
) -> tuple[NDArray[np.float32], Measurement]:
    """`samples` (float32) times one gain, true peak ≤ −3 dBTP, and its levels; raises for silence (below −70 LUFS).

    The gain brings `m100_max` to `target_lufs` (None keeps the loudness), by 20 dB at most, and adds `gain_db`.
    `missed_lu` of the result is against both.
    """
    before = measure(samples, sample_rate)
    if before.m100_max_lufs < SILENCE_LUFS:
        raise CueValueError(
            f"the sound is silent: its loudest 100 ms have {before.m100_max_lufs:.1f} LUFS; "
            f"more than {SILENCE_LUFS:g} LUFS are needed",
            fix="replace the file with an audible sound",
        )
    total_db = gain_db
    if target_lufs is not None:
        total_db += min(MAX_GAIN_DB, target_lufs - before.m100_max_lufs)
    total_db = min(total_db, CEILING_DBTP - _METER_ERROR_DB - before.true_peak_dbtp)
    result = samples * np.float32(db_to_gain(total_db))
    after = measure(result, sample_rate)
    assert math.isfinite(after.m100_max_lufs)
    if target_lufs is None:
        return result, after
    return result, replace(after, missed_lu=after.m100_max_lufs - target_lufs - gain_db)
