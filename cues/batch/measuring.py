"""Measurement of one recording of a batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cues.arrays import channels_float32
from cues.batch.recordings import OnRecording
from cues.batch.rows import Row
from cues.library.audiofile import read_recording
from cues.meters.clicks import find_clicks
from cues.meters.loudness import integrated_lufs, m100_max_lufs, measure, true_peak_dbtp
from cues.units import gain_to_db

__all__ = ["COLUMNS", "Measure"]

_LEVELS = ("integrated_lufs", "m100_max_lufs", "true_peak_dbtp", "sample_peak_dbfs")
COLUMNS = ("file", "status", "error", "length_s", "sample_rate", "channels", *_LEVELS, "dc", "n_clicks", "clicks_s")
"""Columns of the table of measurements; `clicks_s` has the times of the first ten clicks, separated by spaces."""
_MAX_TIMES = 10
_TOGETHER_S = 0.005


@dataclass(frozen=True, slots=True)
class Measure(OnRecording):
    """Task that measures a recording; `exact` is true peak at 16 times the rate, not at 4 times as in BS.1770."""

    exact: bool = False

    def run(self) -> Row:
        """Loudness over all channels by BS.1770, peaks and DC of the worst channel, and the clicks of any."""
        recording = read_recording(self.source.open(), self.source.file)
        samples, rate = recording.channels, recording.sample_rate
        channels = channels_float32(samples)
        if len(channels) == 1:  # these two are faster
            integrated, m100 = integrated_lufs(channels[0], rate), m100_max_lufs(channels[0], rate)
        else:
            measured = measure(samples, rate)
            integrated, m100 = measured.integrated_lufs, measured.m100_max_lufs
        oversampling = 16 if self.exact else 4
        true_peak = max(true_peak_dbtp(channel, rate, oversampling=oversampling) for channel in channels)
        peak = gain_to_db(float(max(samples.max(), -samples.min())))
        means = [float(np.mean(channel, dtype=np.float64)) for channel in channels]
        clicks = _clicks(channels, rate)
        return {
            "length_s": round(len(samples) / rate, 6),
            "sample_rate": rate,
            "channels": len(channels),
            **{
                name: None if level is None or not math.isfinite(level) else round(level, 4)
                for name, level in zip(_LEVELS, (integrated, m100, true_peak, peak), strict=True)
            },
            "dc": float(f"{max(means, key=abs):.4g}"),
            "n_clicks": len(clicks),
            "clicks_s": " ".join(f"{click / rate:.4f}" for click in clicks[:_MAX_TIMES]),
        }


def _clicks(channels: Sequence[NDArray[np.float32]], sample_rate: int) -> list[int]:
    """Positions of the clicks of all channels; those that come together in several of them count once."""
    found: list[int] = []
    for click in sorted({click for channel in channels for click in find_clicks(channel, sample_rate).tolist()}):
        if not found or click - found[-1] >= round(_TOGETHER_S * sample_rate):
            found.append(click)
    return found
