"""Plots of sounds: waveform, spectrogram and loudness over time (matplotlib, without the global state of `pyplot`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cues.extras import needed
from cues.meters.loudness import loudness_curve
from cues.meters.pitch import heard_notes
from cues.meters.telephone import BAND_HZ
from cues.signal.spectra import short_time_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from cues.cue import Cue

__all__ = [
    "CALL_COLOR",
    "CUE_COLOR",
    "ERROR_COLOR",
    "SPEECH_COLOR",
    "draw_loudness",
    "draw_spectrogram",
    "draw_waveform",
    "new_figure",
    "overview",
    "picture",
    "turns",
]

# The colors of the pages, after Okabe and Ito: people with any kind of color vision tell them apart.
SPEECH_COLOR, CUE_COLOR, CALL_COLOR, ERROR_COLOR = "#0072b2", "#b35900", "#7a3e96", "#c1272d"
_FLOOR_DB = -90.0
_LOWEST_HZ, _TOP_HZ, _ROWS = 80.0, 6000.0, 192
_TICKS_HZ = (100, 300, 1000, 3000, 10000)


def draw_waveform(axes: Axes, samples: NDArray[np.floating], sample_rate: int, *, color: str = CUE_COLOR) -> None:
    """Draw the waveform: time in seconds, level in full scale; the y axis is scaled to the peak.

    Parameters
    ----------
    axes : Axes
    samples : float, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz.
    color : str
    """
    t_s = np.arange(len(samples)) / sample_rate
    axes.plot(t_s, samples, color=color, linewidth=0.7)
    length_s, reach = len(samples) / sample_rate, max(1.15 * float(np.abs(samples).max(initial=0.0)), 1e-4)
    axes.set(xlim=(0.0, length_s), ylim=(-reach, reach), xlabel="time (s)", ylabel="full scale")
    axes.grid(alpha=0.25)


def draw_spectrogram(axes: Axes, samples: NDArray[np.floating], sample_rate: int) -> QuadMesh:
    """Draw the spectrogram: time in seconds, frequency in Hz (logarithmic), level in dB below the loudest point.

    Parameters
    ----------
    axes : Axes
    samples : float, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz.

    Returns
    -------
    QuadMesh
        For a color bar; the darkest level is −90 dB.
    """
    length = 1 << max(6, round(np.log2(0.021 * sample_rate)))
    hop = max(length // 32, len(samples) // 1500, 1)
    centers = np.arange(0, len(samples) + 1, hop)
    size = 4 * length
    power = short_time_power(samples, centers, length, size)
    edges_hz = np.geomspace(_LOWEST_HZ, sample_rate / 2.0, _ROWS + 1)
    row_hz = np.sqrt(edges_hz[1:] * edges_hz[:-1])
    rows = power[:, np.minimum(np.rint(row_hz * size / sample_rate).astype(int), size // 2)]
    level_db = 10.0 * np.log10(np.maximum(rows / max(power.max(), 1e-30), 10.0 ** (_FLOOR_DB / 10.0)))
    edges_s = np.append(centers, centers[-1] + hop) / sample_rate - 0.5 * hop / sample_rate
    image = axes.pcolormesh(edges_s, edges_hz, level_db.T, cmap="magma", vmin=_FLOOR_DB, vmax=0.0, rasterized=True)
    for edge_hz in BAND_HZ:
        axes.axhline(edge_hz, color="white", linewidth=0.6, alpha=0.5, linestyle=":")
    axes.set_yscale("log")
    ticks = [hz for hz in _TICKS_HZ if hz <= sample_rate / 2.0]
    axes.set_yticks(ticks, [f"{hz / 1000:g} k" if hz >= 1000 else f"{hz}" for hz in ticks])
    axes.minorticks_off()
    length_s = max(len(samples), 1) / sample_rate
    axes.set(xlim=(0.0, length_s), ylim=(_LOWEST_HZ, sample_rate / 2.0), xlabel="time (s)", ylabel="frequency (Hz)")
    return image


def draw_loudness(axes: Axes, samples: NDArray[np.floating], sample_rate: int) -> None:
    """Draw the K-weighted, ungated loudness of the last 100 ms at each moment; its maximum is `m100_max`.

    Parameters
    ----------
    axes : Axes
    samples : float, shape `(n_samples,)`
        Full scale ±1.0.
    sample_rate : int
        Hz, 8000 … 192,000.
    """
    loudness = loudness_curve(np.pad(samples, (0, sample_rate // 10)), sample_rate)
    t_s = np.arange(len(loudness)) / sample_rate
    axes.plot(t_s, loudness, color=SPEECH_COLOR, linewidth=1.0)
    top, length_s = float(loudness.max()), len(samples) / sample_rate
    axes.axhline(top, color=SPEECH_COLOR, linewidth=0.6, linestyle=":")
    axes.set(xlim=(0.0, length_s), ylim=(top - 45.0, top + 5.0), xlabel="time (s)", ylabel="LUFS (100 ms)")
    axes.grid(alpha=0.25)


def picture(cue: Cue) -> Figure:
    """Figure with waveform, spectrogram and loudness of `cue` (a loop twice); save it with `figure.savefig("cue.png")`.

    Raises
    ------
    MissingFeatureError
        If matplotlib is not installed.
    """
    figure = new_figure(7.0, 6.5)
    waveform, spectrogram, loudness = figure.subplots(3, 1, sharex=True)
    samples = turns(cue)
    draw_waveform(waveform, samples, cue.sample_rate)
    image = draw_spectrogram(spectrogram, samples, cue.sample_rate)
    figure.colorbar(image, ax=spectrogram, label="dB below the loudest", pad=0.01)
    draw_loudness(loudness, samples, cue.sample_rate)
    for axes in (waveform, spectrogram):
        axes.set_xlabel("")
    title = f"{cue.name} · {1000 * cue.duration_s:.0f} ms"
    if cue.measured is not None:
        title += f" · {cue.measured.m100_max_lufs:.1f} LUFS (m100) · {cue.measured.true_peak_dbtp:.1f} dBTP"
    figure.suptitle(title)
    return figure


def overview(bank: Mapping[str, Cue]) -> Figure:
    """Figure with waveforms and spectrograms of all cues on one scale of amplitude, with their notes, loops twice.

    Parameters
    ----------
    bank : Mapping of str to Cue
        At least one cue.

    Raises
    ------
    MissingFeatureError
        If matplotlib is not installed.
    """
    figure = new_figure(9.0, 1.35 * len(bank) + 0.6)
    grid = figure.subplots(len(bank), 2, squeeze=False)
    reach = max(1.15 * float(np.abs(cue.samples).max(initial=0.0)) for cue in bank.values()) or 1.0
    for (waveform, spectrogram), cue in zip(grid, bank.values(), strict=True):
        samples = turns(cue)
        draw_waveform(waveform, samples, cue.sample_rate)
        waveform.set_ylim(-reach, reach)
        draw_spectrogram(spectrogram, samples, cue.sample_rate)
        spectrogram.set_ylim(_LOWEST_HZ, _TOP_HZ)
        notes = " ".join(heard_notes(cue.samples, cue.sample_rate)).replace(">", " → ")
        waveform.set_ylabel(f"{cue.name}\n{notes}", rotation=0, ha="right", va="center")
        spectrogram.set_ylabel("Hz")
        if cue is not list(bank.values())[-1]:
            waveform.set_xlabel("")
            spectrogram.set_xlabel("")
    return figure


def turns(cue: Cue) -> NDArray[np.float32]:
    """The cue once, or twice if it loops: float32, shape `(n_samples,)`."""
    return np.tile(cue.samples, 2) if cue.loop else cue.samples


def check_matplotlib() -> None:
    """Raise `MissingFeatureError` unless matplotlib is installed, before any file is written."""
    new_figure(1.0, 1.0)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size, inches."""
    module = needed("matplotlib.figure", "plots", "pictures need matplotlib")
    figure: Figure = module.Figure(figsize=(width, height), layout="constrained")
    return figure
