"""Measurement of one recording of a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cues.library.audiofile import read_recording
from cues.meters.clicks import find_clicks
from cues.meters.loudness import integrated_lufs, m100_max_lufs, true_peak_dbtp
from cues.units import gain_to_db

if TYPE_CHECKING:
    from cues.batch.sources import Source
    from cues.batch.table import Row

__all__ = ["COLUMNS", "Measure"]

_LEVELS = ("integrated_lufs", "m100_max_lufs", "true_peak_dbtp", "sample_peak_dbfs")
COLUMNS = ("file", "status", "error", "length_s", "sample_rate", "channels", *_LEVELS, "dc", "n_clicks", "clicks_s")
"""Columns of the table of measurements; `clicks_s` has the times of the first ten clicks, separated by spaces."""
_MAX_TIMES = 10


@dataclass(frozen=True, slots=True)
class Measure:
    """Task that measures a recording; `exact` is true peak at 16 times the rate, not at 4 times as in BS.1770."""

    source: Source
    exact: bool = False

    @property
    def file(self) -> str:
        """Path or URL of the recording."""
        return self.source.file

    def run(self) -> Row:
        """Loudness, peaks, DC and clicks of the recording, its channels averaged."""
        recording = read_recording(self.source.open(), self.source.file)
        samples, rate = recording.samples, recording.sample_rate
        clicks = find_clicks(samples, rate)
        true_peak = true_peak_dbtp(samples, rate, oversampling=16 if self.exact else 4)
        m100 = m100_max_lufs(samples, rate)
        peak = gain_to_db(float(max(samples.max(), -samples.min())))
        levels = (integrated_lufs(samples, rate), m100, true_peak, peak)
        return {
            "length_s": round(len(samples) / rate, 6),
            "sample_rate": rate,
            "channels": recording.channels,
            **{
                name: None if level is None or not math.isfinite(level) else round(level, 4)
                for name, level in zip(_LEVELS, levels, strict=True)
            },
            "dc": float(f"{np.mean(samples, dtype=np.float64):.4g}"),
            "n_clicks": len(clicks),
            "clicks_s": " ".join(f"{click / rate:.4f}" for click in clicks[:_MAX_TIMES].tolist()),
        }
