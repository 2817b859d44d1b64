"""SVG picture of a sound: waveform, spectrogram and loudness over one time axis."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from cues.meters.loudness import loudness_curve
from cues.meters.telephone import BAND_HZ
from cues.show.png import indexed_png
from cues.signal.spectra import short_time_power

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

__all__ = ["picture_svg"]

_WIDTH, _LEFT, _RIGHT = 360, 40, 6
_COLUMNS = 320
_ROWS = 96
_FLOOR_DB, _LOUDNESS_RANGE_LU = -80.0, 40.0
_LOWEST_HZ = 100.0
_WINDOW_S = 0.032
_WAVE, _SPECTROGRAM, _LOUDNESS = (8.0, 74.0), (88.0, 106.0), (200.0, 58.0)  # top and height of each panel
_HEIGHT = 280
_END_LABEL = 58
"""Width of the last label of the time axis."""


@dataclass(frozen=True, slots=True)
class _Panel:
    top: float
    height: float

    def y(self, share: float) -> float:
        """Position of a value, given as a share of the panel's height from the bottom."""
        return self.top + self.height * (1.0 - share)


def picture_svg(samples: Samples, sample_rate: int, *, title: str, clicks: Sequence[int] = ()) -> str:
    """SVG element with the picture of a sound, in the page's text color.

    Parameters
    ----------
    samples : float32, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz.
    title : str
        Text for screen readers.
    clicks : Sequence of int
        Clicks to mark, samples.
    """
    length_s = len(samples) / sample_rate
    parts = [
        *_wave(_Panel(*_WAVE), samples),
        *_spectrogram(_Panel(*_SPECTROGRAM), samples, sample_rate),
        *_loudness(_Panel(*_LOUDNESS), samples, sample_rate),
        *_time_axis(length_s),
        *(_click(click / len(samples)) for click in clicks),
        f'<line class="playhead" x1="{_LEFT}" x2="{_LEFT}" y1="{_WAVE[0]}" y2="{_LOUDNESS[0] + _LOUDNESS[1]}"/>',
    ]
    return (
        f'<svg class="picture" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}" '
        f'data-left="{_LEFT}" data-width="{_WIDTH - _LEFT - _RIGHT}">{"".join(parts)}</svg>'
    )


def _x(share: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * share


def _label(y: float, text: str) -> str:
    return f'<text x="{_LEFT - 4}" y="{y + 3.5:.1f}" text-anchor="end">{escape(text)}</text>'


def _frame(panel: _Panel) -> str:
    width = _WIDTH - _LEFT - _RIGHT
    return f'<rect class="frame" x="{_LEFT}" y="{panel.top}" width="{width}" height="{panel.height}"/>'


def _line(panel: _Panel, share: float, kind: str) -> str:
    y = panel.y(share)
    return f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _wave(panel: _Panel, samples: Samples) -> list[str]:
    """Largest and smallest sample of each column, as one polygon."""
    peak = max(float(np.abs(samples).max()), 1e-6)
    starts = np.minimum(np.linspace(0, len(samples), 2 * _COLUMNS, endpoint=False).astype(int), len(samples) - 1)
    high, low = np.maximum.reduceat(samples, starts) / peak, np.minimum.reduceat(samples, starts) / peak
    xs = [_x(k / len(starts)) for k in range(len(starts))]
    upper = [f"{x:.1f},{panel.y(0.5 + 0.48 * value):.1f}" for x, value in zip(xs, high, strict=True)]
    lower = [f"{x:.1f},{panel.y(0.5 + 0.48 * value):.1f}" for x, value in zip(xs, low, strict=True)]
    shape = f'<polygon class="wave" points="{" ".join([*upper, *reversed(lower)])}"/>'
    labels = [_label(panel.y(0.94), f"{peak:.2f}"), _label(panel.y(0.5), "0"), _label(panel.y(0.06), f"−{peak:.2f}")]
    return [_frame(panel), _line(panel, 0.5, "grid"), shape, *labels]


def _spectrogram(panel: _Panel, samples: Samples, sample_rate: int) -> list[str]:
    pixels = _spectrogram_pixels(samples, sample_rate)
    data = base64.b64encode(indexed_png(pixels)).decode("ascii")
    image = (
        f'<image x="{_LEFT}" y="{panel.top}" width="{_WIDTH - _LEFT - _RIGHT}" height="{panel.height}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    )
    octaves = np.log2(sample_rate / 2.0 / _LOWEST_HZ)
    marks = [
        (hz, f"{hz / 1000:g} k" if hz >= 1000 else f"{hz:g}") for hz in (100, 1000, 10000) if hz <= sample_rate / 2
    ]
    labels = [_label(panel.y(float(np.log2(hz / _LOWEST_HZ) / octaves)), text) for hz, text in marks]
    band = [_line(panel, float(np.log2(hz / _LOWEST_HZ) / octaves), "band") for hz in BAND_HZ if hz < sample_rate / 2]
    return [image, *band, _frame(panel), *labels, _label(panel.top + 16, "Hz")]


def _spectrogram_pixels(samples: Samples, sample_rate: int) -> NDArray[np.uint8]:
    """Color indices of the spectrogram, logarithmic in frequency: uint8, shape `(_ROWS, _COLUMNS)`."""
    length = round(_WINDOW_S * sample_rate)
    size = 1 << (4 * length - 1).bit_length()
    centers = np.linspace(0, len(samples) - length % 2, _COLUMNS).astype(int)
    power = short_time_power(samples, centers, length, size)
    row_hz = _LOWEST_HZ * (sample_rate / 2.0 / _LOWEST_HZ) ** (np.arange(_ROWS) / (_ROWS - 1))
    rows = power[:, np.minimum(np.rint(row_hz * size / sample_rate).astype(int), size // 2)].T
    level_db = 10.0 * np.log10(np.maximum(rows / max(power.max(), 1e-20), 1e-12))
    share = np.clip(1.0 - level_db / _FLOOR_DB, 0.0, 1.0)
    pixels: NDArray[np.uint8] = np.rint(255.0 * share[::-1]).astype(np.uint8)
    return pixels


def _loudness(panel: _Panel, samples: Samples, sample_rate: int) -> list[str]:
    """K-weighted loudness of a sliding 100 ms window; each point is at the end of its window."""
    loudness = loudness_curve(samples, sample_rate)
    at = np.linspace(0, len(loudness) - 1, _COLUMNS).astype(int)
    top = 5.0 * np.ceil((float(loudness.max()) + 2.0) / 5.0)
    shares = np.clip(1.0 - (top - loudness[at]) / _LOUDNESS_RANGE_LU, 0.0, 1.0)
    points = " ".join(f"{_x(k / (_COLUMNS - 1)):.1f},{panel.y(float(share)):.1f}" for k, share in enumerate(shares))
    ticks = [(top - offset, 1.0 - offset / _LOUDNESS_RANGE_LU) for offset in (10.0, 30.0)]
    grid = [_line(panel, share, "grid") for _, share in ticks]
    labels = [_label(panel.y(share), f"{value:.0f}".replace("-", "−")) for value, share in ticks]
    curve = f'<polyline class="loudness" points="{points}"/>'
    return [_frame(panel), *grid, curve, *labels, _label(panel.y(0.5), "LUFS")]


def _time_axis(length_s: float) -> list[str]:
    """About five round times, in ms, or in s from 1.5 s on."""
    rough = length_s / 5.0
    step = next(k * 10.0**e for e in range(-3, 5) for k in (1, 2, 5) if k * 10.0**e >= rough)
    unit, scale = ("ms", 1000.0) if length_s < 1.5 else ("s", 1.0)
    end_share = 1.0 - _END_LABEL / (_WIDTH - _LEFT - _RIGHT)
    ticks = np.arange(0.0, length_s * end_share, step)
    y = _LOUDNESS[0] + _LOUDNESS[1] + 13
    labels = [
        f'<text x="{_x(t / length_s):.1f}" y="{y}" text-anchor="middle">{scale * t:g}</text>' for t in ticks.tolist()
    ]
    end = f'<text x="{_WIDTH - _RIGHT}" y="{y}" text-anchor="end">{scale * length_s:.3g} {unit}</text>'
    return [*labels, end]


def _click(share: float) -> str:
    x = _x(share)
    return (
        f'<g class="click"><line x1="{x:.1f}" x2="{x:.1f}" y1="{_WAVE[0]}" y2="{_WAVE[0] + _WAVE[1]}"/>'
        f'<text x="{min(x, _WIDTH - 24):.1f}" y="{_WAVE[0] + 9}" text-anchor="end">click</text></g>'
    )
