"""Pictures of the commands, drawn with the plots of `cues.show`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from cues.cli._records import counted
from cues.cli._sounds import STANDARD, write_standard_output
from cues.files import explained
from cues.show.plots import CUE_COLOR, SPEECH_COLOR, draw_spectrogram, draw_waveform, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from cues.cue import Cue
    from cues.mixing.offline import Insert

__all__ = ["picture_of_mix", "picture_of_pairs", "save_picture"]

_DPI = 120


def picture_of_mix(samples: NDArray[np.float32], sample_rate: int, inserts: Sequence[Insert]) -> Figure:
    """Waveform and spectrogram of a mix, with each cue shaded."""
    figure = new_figure(10.0, 5.0)
    waveform, spectrogram = figure.subplots(2, 1, sharex=True)
    draw_waveform(waveform, samples, sample_rate, color=SPEECH_COLOR)
    waveform.set_xlabel("")
    draw_spectrogram(spectrogram, samples, sample_rate)
    for insert in inserts:
        for axes in (waveform, spectrogram):
            axes.axvspan(insert.at_s, insert.at_s + insert.cue.duration_s, color=CUE_COLOR, alpha=0.25, linewidth=0)
        at = (insert.at_s, 0.97)
        waveform.annotate(insert.cue.name, at, xycoords=("data", "axes fraction"), va="top", fontsize=9)
    figure.suptitle(f"{len(samples) / sample_rate:.1f} s with {counted(len(inserts), 'cue')}")
    return figure


def picture_of_pairs(pairs: Sequence[tuple[Cue, Cue]], titles: tuple[str, str]) -> Figure:
    """Spectrograms of pairs of cues side by side, a pair a row, on one time scale."""
    figure = new_figure(9.0, 2.2 * len(pairs) + 0.6)
    grid = figure.subplots(len(pairs), 2, sharex=True, squeeze=False)
    longest_s = max(cue.duration_s for pair in pairs for cue in pair)
    for row, pair in zip(grid, pairs, strict=True):
        for axes, cue in zip(row, pair, strict=True):
            draw_spectrogram(axes, cue.samples, cue.sample_rate)
            axes.set(xlim=(0.0, longest_s), ylim=(80.0, 6000.0), title=cue.name)
            axes.set_facecolor("black")
            if row is not grid[-1]:
                axes.set_xlabel("")
        row[1].set_ylabel("")
    figure.suptitle("   |   ".join(titles))
    return figure


def save_picture(figure: Figure, path: Path) -> None:
    """Write a PNG to a file, or to standard output if the path is `-`."""
    # Leave out the version of matplotlib: the same sound gives the same file.
    settings: dict[str, Any] = {"format": "png", "dpi": _DPI, "metadata": {"Software": None}}
    if str(path) == STANDARD:
        buffer = io.BytesIO()
        figure.savefig(buffer, **settings)
        write_standard_output(buffer.getvalue())
        return
    with explained(path):
        figure.savefig(path, **settings)
