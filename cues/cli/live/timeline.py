"""Timeline of a turn: a table in the terminal and a picture."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from cues.cli._terminal import console, harmless
from stream.events import Finish, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from stream.session.record import Seen, Sounded, TurnRecord

__all__ = ["cause_of", "draw_timeline", "print_timeline"]

_CALL_COLOR, _CUE_COLOR, _WORD_COLOR = "#b3541e", "#2a7f62", "#555555"

# Fonts for scripts that matplotlib's font lacks, in order of preference.
_WIDE_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Hiragino Sans", "Yu Gothic", "WenQuanYi Zen Hei", "IPAGothic")


def print_timeline(journal: TurnRecord) -> None:
    """Print the turn in order of time: text, calls, results, and each cue with its delay."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("", overflow="fold")
    for at_s, what, detail in sorted(_rows(journal), key=lambda row: row[0]):
        table.add_row(f"{at_s:7.3f} s", what, harmless(" ".join(detail.split())))
    console().print(table)


def _rows(journal: TurnRecord) -> list[tuple[float, str, str]]:
    rows: list[tuple[float, str, str]] = []
    text: list[str] = []
    text_at_s = 0.0
    for seen in journal.seen:
        if isinstance(seen.event, TextDelta):
            text_at_s = text_at_s if text else seen.known_s
            text.append(seen.event.text)
            continue
        if text:
            rows.append((text_at_s, "text", "".join(text).strip()))
            text = []
        if (row := _event_row(seen)) is not None:
            rows.append(row)
    if text:
        rows.append((text_at_s, "text", "".join(text).strip()))
    if journal.heard:
        first, last = journal.heard[0], journal.heard[-1]
        rows.append((first.onset_samples / journal.sample_rate, "voice", f"begins with “{first.text}”"))
        rows.append((last.onset_samples / journal.sample_rate, "voice", f"last word “{last.text}”"))
    rows += [
        (sounded.onset_s, "♪ cue", f"{sounded.cue}, {sounded.delay_ms:.1f} ms after {cause_of(sounded)}")
        for sounded in journal.sounded
    ]
    if journal.interrupted:
        rows.append((journal.output_samples / journal.sample_rate, "end", "interrupted"))
    return rows


def cause_of(sounded: Sounded) -> str:
    """What a cue sounded for, for people."""
    match sounded.seen.event:
        case ToolResult():
            return "its result"
        case StreamFailed():
            return "the failure"
        case _:
            return "the bytes of its call"


def _event_row(seen: Seen) -> tuple[float, str, str] | None:
    match seen.event:
        case ToolCallStart(tool_name=name):
            return seen.known_s, "call", f"{name} is being called"
        case ToolCallEnd(tool_name=name, arguments_json=arguments, status=status):
            return seen.known_s, "call", f"{name} {arguments}" + ("" if status == "ok" else f" ({status})")
        case ToolResult(tool_name=name, is_error=is_error, content=content):
            return seen.known_s, "result", f"{name} {'failed' if is_error else 'answered'}: {content}"
        case Finish(reason=reason):
            return seen.known_s, "finish", reason
        case StreamFailed():
            return seen.known_s, "failed", "the answer broke off"  # why is the last line of all, on standard error
        case _:
            return None


def draw_timeline(journal: TurnRecord, mixed: NDArray[np.float32], title: str, path: Path) -> None:
    """Write a PNG: words, calls and cues above the waveform and the spectrogram of the output.

    Parameters
    ----------
    mixed : float32, shape `(n_samples,)`
        The output, at the journal's rate.

    Raises
    ------
    MissingFeatureError
        If matplotlib is not installed.
    """
    from cues.show.plots import check_matplotlib, draw_spectrogram, draw_waveform

    check_matplotlib()
    from matplotlib import font_manager, rc_context
    from matplotlib.figure import Figure

    installed = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(name for name in _WIDE_FONTS if name in installed)]
    samples = mixed if len(mixed) else np.zeros(1, dtype=np.float32)
    with warnings.catch_warnings(), rc_context({"font.family": families}):
        warnings.filterwarnings("ignore", message="Glyph")  # A script no installed font has: boxes, not noise.
        figure = Figure(figsize=(12.0, 6.5), layout="constrained")
        marks, waveform, spectrogram = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 1.6, 2.0))
        draw_waveform(waveform, samples, journal.sample_rate)
        draw_spectrogram(spectrogram, samples, journal.sample_rate)
        waveform.set_xlabel("")
        _draw_marks(marks, journal)
        for axes in (waveform, spectrogram):
            _draw_lines(axes, journal)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.savefig(path, dpi=110)


def _draw_marks(axes: Axes, journal: TurnRecord) -> None:
    """Draw the lanes above the sound: model, speech, cues."""
    axes.set_ylim(0.0, 3.0)
    axes.set_yticks([0.5, 1.5, 2.5], ["cues", "words heard", "model"])
    axes.tick_params(length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    for seen in journal.seen:
        if isinstance(seen.event, TextDelta):
            axes.plot([seen.known_s] * 2, [2.3, 2.7], color=_WORD_COLOR, linewidth=1.0)
        elif isinstance(seen.event, ToolCallStart):
            _mark(axes, seen.known_s, 2.5, f"call: {seen.event.tool_name}", _CALL_COLOR)
        elif isinstance(seen.event, ToolResult):
            _mark(axes, seen.known_s, 2.5, "error" if seen.event.is_error else "result", _CALL_COLOR)
    for heard in journal.heard:
        at_s = heard.onset_samples / journal.sample_rate
        axes.text(at_s, 1.5, heard.text, fontsize=8, rotation=30, va="center", color=_WORD_COLOR)
    for sounded in journal.sounded:
        _mark(axes, sounded.onset_s, 0.5, f"{sounded.cue} (+{sounded.delay_ms:.0f} ms)", _CUE_COLOR)


def _mark(axes: Axes, at_s: float, height: float, text: str, color: str) -> None:
    axes.plot([at_s], [height], marker="|", markersize=12, color=color)
    # A background keeps labels readable beside the ticks of the model's text.
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    label = axes.annotate(text, (at_s, height), xytext=(4, 0), textcoords="offset points", bbox=ground, zorder=3)
    label.set(va="center", fontsize=9, color=color)


def _draw_lines(axes: Axes, journal: TurnRecord) -> None:
    for seen in journal.seen:
        if isinstance(seen.event, ToolCallStart):
            axes.axvline(seen.known_s, color=_CALL_COLOR, linewidth=1.0, linestyle="--")
    for sounded in journal.sounded:
        axes.axvline(sounded.onset_s, color=_CUE_COLOR, linewidth=1.0)
