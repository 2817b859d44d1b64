"""Plots of sounds: waveform, spectrogram and loudness over time (needs matplotlib).

The `draw_…` functions draw on the caller's axes; `picture` stacks all three. Figures are made without `pyplot`, so
matplotlib's global state does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cues.extras import needed
from cues.meters.loudness import loudness_curve
from cues.meters.telephone import BAND_HZ
from cues.signal.spectra import short_time_power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

    from cues.cue import Cue

__all__ = ["draw_loudness", "draw_spectrogram", "draw_waveform", "new_figure", "overview", "picture"]

_INK, _ACCENT = "#1f3a5f", "#c8553d"
_FLOOR_DB = -90.0


def draw_waveform(axes: Axes, samples: NDArray[np.floating], sample_rate: int) -> None:
    """Draw the waveform: time in seconds, level in full scale; the y axis is scaled to the peak.

    Parameters
    ----------
    axes : Axes
    samples : float, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz.
    """
    t_s = np.arange(len(samples)) / sample_rate
    axes.plot(t_s, samples, color=_INK, linewidth=0.7)
    axes.set_xlim(0.0, len(samples) / sample_rate)
    reach = max(1.15 * float(np.abs(samples).max(initial=0.0)), 1e-4)
    axes.set_ylim(-reach, reach)
    axes.set_ylabel("full scale")
    axes.set_xlabel("time (s)")
    axes.grid(alpha=0.25)


def draw_spectrogram(
    axes: Axes, samples: NDArray[np.floating], sample_rate: int, *, floor_db: float = _FLOOR_DB
) -> AxesImage:
    """Draw the spectrogram: time in seconds, frequency in kHz, level in dB below the loudest point.

    Parameters
    ----------
    axes : Axes
    samples : float, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz.
    floor_db : float
        Darkest level, dB, below 0.

    Returns
    -------
    AxesImage
        For a color bar.
    """
    length = 1 << max(6, round(np.log2(0.021 * sample_rate)))
    hop = max(length // 32, len(samples) // 1500, 1)
    power = short_time_power(samples, np.arange(0, len(samples) + 1, hop), length, 2 * length)
    level_db = 10.0 * np.log10(np.maximum(power / max(power.max(), 1e-30), 10.0 ** (floor_db / 10.0)))
    extent = (0.0, len(samples) / sample_rate, 0.0, sample_rate / 2000.0)
    image = axes.imshow(
        level_db.T,
        origin="lower",
        aspect="auto",
        extent=extent,
        cmap="magma",
        vmin=floor_db,
        vmax=0.0,
        interpolation="nearest",
    )
    for edge_hz in BAND_HZ:
        axes.axhline(edge_hz / 1000.0, color="white", linewidth=0.6, alpha=0.5, linestyle=":")
    axes.set_ylabel("frequency (kHz)")
    axes.set_xlabel("time (s)")
    return image


def draw_loudness(axes: Axes, samples: NDArray[np.floating], sample_rate: int, *, window_s: float = 0.1) -> None:
    """Draw the K-weighted, ungated loudness of a sliding window; with 100 ms its maximum is `m100_max`.

    Parameters
    ----------
    axes : Axes
    samples : float, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz, 8000 … 192,000.
    window_s : float
        Length of the window, s; each point is at the end of its window.
    """
    after = np.zeros(round(window_s * sample_rate))
    loudness = loudness_curve(np.concatenate([samples, after]), sample_rate, window_s)
    t_s = np.arange(len(loudness)) / sample_rate
    axes.plot(t_s, loudness, color=_ACCENT, linewidth=1.0)
    axes.set_xlim(0.0, len(samples) / sample_rate)
    top = float(loudness.max())
    axes.set_ylim(top - 45.0, top + 5.0)
    axes.axhline(top, color=_ACCENT, linewidth=0.6, linestyle=":")
    axes.set_ylabel(f"LUFS ({1000 * window_s:.0f} ms)")
    axes.set_xlabel("time (s)")
    axes.grid(alpha=0.25)


def picture(cue: Cue) -> Figure:
    """Figure with waveform, spectrogram and loudness of `cue`; save it with `figure.savefig("cue.png")`.

    Raises
    ------
    MissingFeatureError
        If matplotlib is not installed.
    """
    figure = new_figure(7.0, 6.5)
    waveform, spectrogram, loudness = figure.subplots(3, 1, sharex=True)
    draw_waveform(waveform, cue.samples, cue.sample_rate)
    image = draw_spectrogram(spectrogram, cue.samples, cue.sample_rate)
    figure.colorbar(image, ax=spectrogram, label="dB below the loudest", pad=0.01)
    draw_loudness(loudness, cue.samples, cue.sample_rate)
    for axes in (waveform, spectrogram):
        axes.set_xlabel("")
    figure.suptitle(_title(cue))
    return figure


def overview(bank: Mapping[str, Cue], *, length_s: float = 0.32, top_hz: float = 6000.0) -> Figure:
    """Figure with waveforms and spectrograms of all cues on one time scale, for comparison.

    Parameters
    ----------
    bank : Mapping of str to Cue
        At least one cue.
    length_s : float
        Length drawn of each cue, s.
    top_hz : float
        Highest frequency drawn, Hz.

    Raises
    ------
    MissingFeatureError
        If matplotlib is not installed.
    """
    figure = new_figure(9.0, 1.35 * len(bank) + 0.6)
    grid = figure.subplots(len(bank), 2, sharex=True, squeeze=False)
    for (waveform, spectrogram), cue in zip(grid, bank.values(), strict=True):
        samples = np.zeros(round(length_s * cue.sample_rate), dtype=np.float32)
        heard = cue.samples[: len(samples)]
        samples[: len(heard)] = heard
        draw_waveform(waveform, samples, cue.sample_rate)
        draw_spectrogram(spectrogram, samples, cue.sample_rate)
        spectrogram.set_ylim(0.0, top_hz / 1000.0)
        waveform.set_ylabel(cue.name, rotation=0, ha="right", va="center")
        spectrogram.set_ylabel("kHz")
        waveform.set_yticks([])
        if cue is not list(bank.values())[-1]:
            waveform.set_xlabel("")
            spectrogram.set_xlabel("")
    return figure


def check_matplotlib() -> None:
    """Check that matplotlib is installed, before any file is written.

    Raises
    ------
    MissingFeatureError
        If matplotlib is not installed.
    """
    new_figure(1.0, 1.0)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size, inches."""
    module = needed("matplotlib.figure", "plots", "pictures need matplotlib")
    figure: Figure = module.Figure(figsize=(width, height), layout="constrained")
    return figure


def _title(cue: Cue) -> str:
    title = f"{cue.name} · {1000 * cue.duration_s:.0f} ms"
    if cue.measured is not None:
        title += f" · {cue.measured.m100_max_lufs:.1f} LUFS (m100) · {cue.measured.true_peak_dbtp:.1f} dBTP"
    return title
