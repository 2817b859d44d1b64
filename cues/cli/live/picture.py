"""Picture of a turn: model, words and cues above the waveform and the spectrogram of what was heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cues.arrays import Samples
from cues.show.plots import (
    CALL_COLOR,
    CUE_COLOR,
    ERROR_COLOR,
    SPEECH_COLOR,
    check_matplotlib,
    draw_spectrogram,
    draw_waveform,
)
from stream.events import TextDelta, ToolCallStart, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cues.cue import Cue
    from stream.session.turn_record import Sounded, TurnRecord


__all__ = ["draw_turn", "ducking_db"]

_INK, _FAINT = "#16202c", "#566373"
# Fonts for scripts that matplotlib's font lacks, in order of preference.
_WIDE_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Hiragino Sans", "Yu Gothic", "WenQuanYi Zen Hei", "IPAGothic")
_LEGEND = "small bars: pieces of the model's text; shaded: a cue sounds"
_WORD_ROWS = 3
_GAIN_S, _HOP_S = 0.06, 0.01
_LOWEST_DB = -12.0
_QUIET = 1e-6
"""Mean power of speech below which no gain can be measured."""


def draw_turn(
    journal: TurnRecord, bank: Mapping[str, Cue], sound: tuple[Samples, Samples], subtitle: str, path: Path
) -> None:
    """Write the picture of a turn (`sound`: mix and speech), 1,000 pixels wide; the subtitle names the source."""
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    families, known = _fonts()
    mixed, speech = sound
    if not len(mixed):
        mixed = speech = np.zeros(1, dtype=np.float32)
    with rc_context({"font.family": families, "font.size": 10}):
        figure = Figure(figsize=(10.0, 6.8))
        # A layout engine would take as long as all the rest.
        figure.subplots_adjust(left=0.075, right=0.945, top=0.935, bottom=0.1, hspace=0.1)
        rows: list[Axes] = list(figure.subplots(5, 1, sharex=True, height_ratios=(0.7, 1.1, 0.5, 2.0, 2.2)))
        model, words, cues, waveform, spectrogram = rows
        draw_spectrogram(spectrogram, mixed, journal.sample_rate)
        _draw_waves(waveform, mixed, speech, journal.sample_rate)
        for axes, name in ((model, "model"), (words, "words"), (cues, "cues")):
            _empty_lane(axes, name)
        _draw_model(model, journal, known)
        _draw_words(words, journal, known)
        _draw_cues(rows, journal, [_end_of(each, bank[each.cue], mixed, speech) for each in journal.sounded])
        figure.suptitle(_drawable(_title(journal), known), x=0.01, ha="left", fontsize=13, weight="bold")
        figure.supxlabel(_drawable(subtitle, known), x=0.01, ha="left", fontsize=9, color=_FAINT)
        figure.text(0.945, 0.038, _LEGEND, ha="right", fontsize=9, color=_FAINT)
        _spread_words(figure, words)
        figure.savefig(path, dpi=100)


def _fonts() -> tuple[list[str], set[int]]:
    """The families to draw with, and the characters that they have."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(name for name in _WIDE_FONTS if name in installed)]
    charmaps = (font_manager.get_font(font_manager.findfont(family)).get_charmap() for family in families)
    return families, {ord("\n")}.union(*charmaps)


def _drawable(text: str, known: set[int]) -> str:
    """`text` with a question mark for each character that no font has: an empty box says nothing."""
    return "".join(letter if ord(letter) in known else "?" for letter in text)


def _title(journal: TurnRecord) -> str:
    """The picture's title: one sentence on its subject."""
    for sounded in journal.sounded:
        if isinstance(call := sounded.seen.event, ToolCallStart):
            return f"The model calls {call.tool_name}; {max(sounded.delay_ms, 0.0):.0f} ms later its cue sounds"
    return "An answer, as it was heard"


def _empty_lane(axes: Axes, name: str) -> None:
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([0.5], [name])
    axes.tick_params(length=0, labelbottom=False)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def _draw_waves(axes: Axes, mixed: Samples, speech: Samples, sample_rate: int) -> None:
    """The mix in the color of cues, the speech over it, and the gain of the speech as a curve."""
    draw_waveform(axes, mixed, sample_rate, color=CUE_COLOR)
    reach = axes.get_ylim()
    lower = np.where(np.abs(speech) > np.abs(mixed), mixed, speech)
    draw_waveform(axes, lower, sample_rate, color=SPEECH_COLOR)
    axes.set_ylim(*reach)
    axes.set_xlabel("")
    axes.plot([], [], color=SPEECH_COLOR, label="speech")
    axes.plot([], [], color=CUE_COLOR, label="added by cues")
    times_s, gains_db = ducking_db(mixed, speech, sample_rate)
    curve = axes.twinx()
    curve.plot(times_s, gains_db, color=_INK, linewidth=1.2)
    curve.set_ylim(_LOWEST_DB, 4.0)
    curve.set_yticks([0.0, -6.0, -12.0], ["0 dB", "−6", "−12"])
    axes.plot([], [], color=_INK, linewidth=1.2, label="gain of the speech")
    axes.legend(loc="lower right", ncols=3, fontsize=8, framealpha=0.85)


def ducking_db(mixed: Samples, speech: Samples, sample_rate: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gain of the speech in a mix, every 10 ms: times (s) and decibels, 0 without speech.

    It is the projection of the mix on the speech in windows of 60 ms; a cue hardly correlates with speech.
    """
    hop, length = round(_HOP_S * sample_rate), round(_GAIN_S * sample_rate)
    window = np.hanning(length)
    padded = [np.pad(part.astype(np.float64), (length // 2, length)) for part in (mixed, speech)]
    views = [np.lib.stride_tricks.sliding_window_view(part, length)[: len(speech) + 1 : hop] for part in padded]
    power = (views[1] * views[1]) @ window
    shared = (views[0] * views[1]) @ window
    difference = ((views[0] - views[1]) ** 2) @ window
    # Where a cue is louder than the speech, the gain is taken from the windows beside.
    is_clear = (power > _QUIET * window.sum()) & (power > difference)
    usable = is_clear | (difference == 0.0)
    gains = np.where(is_clear & (difference > 0.0), shared / np.maximum(power, 1e-30), 1.0)
    gains_db = np.clip(20.0 * np.log10(np.maximum(gains, 1e-3)), _LOWEST_DB, 0.0)
    times = np.arange(len(gains_db))
    return times * hop / sample_rate, np.interp(times, times[usable], gains_db[usable])


def _draw_model(axes: Axes, journal: TurnRecord, known: set[int]) -> None:
    texts = [seen.known_s for seen in journal.seen if isinstance(seen.event, TextDelta)]
    axes.vlines(texts, 0.02, 0.3, color=_FAINT, linewidth=1.0)
    for seen in journal.seen:
        if not isinstance(seen.event, ToolCallStart):
            continue
        until_s, failed = _end_of_call(journal, seen.event.tool_name, seen.known_s)
        color = ERROR_COLOR if failed else CALL_COLOR
        axes.broken_barh([(seen.known_s, until_s - seen.known_s)], (0.42, 0.5), facecolor=f"{color}30", edgecolor=color)
        text = _drawable(f" {seen.event.tool_name}", known)
        axes.text(seen.known_s, 0.66, text, va="center", color=color, fontsize=9, weight="bold")


def _end_of_call(journal: TurnRecord, tool_name: str, start_s: float) -> tuple[float, bool]:
    """When a call's result came (the end of the turn if none did), and whether the call failed."""
    for seen in journal.seen:
        if isinstance(seen.event, ToolResult) and seen.event.tool_name == tool_name and seen.known_s > start_s:
            return seen.known_s, seen.event.is_error
    return journal.output_samples / journal.sample_rate, True


def _draw_words(axes: Axes, journal: TurnRecord, known: set[int]) -> None:
    for heard in journal.heard:
        at_s = heard.onset_samples / journal.sample_rate
        axes.text(at_s, 0.5, _drawable(heard.text.strip(), known), fontsize=9, va="center", color=_INK)


def _spread_words(figure: Figure, axes: Axes) -> None:
    """Put each word into the first row in which it covers no other one."""
    renderer: Any = figure._get_renderer()  # type: ignore[attr-defined]  # noqa: SLF001  (text extents need one)
    free = [-np.inf] * _WORD_ROWS
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        row = next((row for row, end in enumerate(free) if end <= box.x0), None)
        if row is None:
            text.set_visible(False)  # Speech faster than anybody reads.
            continue
        free[row] = box.x1 + 4
        text.set_y(1.0 - (row + 0.5) / _WORD_ROWS)


def _draw_cues(rows: Sequence[Axes], journal: TurnRecord, ends_s: Sequence[float]) -> None:
    """Shade each cue across all rows, and name it in the row of cues."""
    for sounded, until_s in zip(journal.sounded, ends_s, strict=True):
        color = ERROR_COLOR if sounded.cue == "error" else CUE_COLOR
        for axes in rows:
            axes.axvspan(sounded.onset_s, until_s, color=color, alpha=0.22, linewidth=0)
        text = f" ♪ {sounded.cue}, +{max(sounded.delay_ms, 0.0):.0f} ms"
        rows[2].text(until_s, 0.5, text, va="center", color=color, weight="bold")


def _end_of(sounded: Sounded, cue: Cue, mixed: Samples, speech: Samples) -> float:
    """End of a cue, s: after its length; for a loop, or one cut short, where 50 ms without a difference follow."""
    changed = np.flatnonzero(mixed[sounded.onset_samples :] != speech[sounded.onset_samples :])
    if not len(changed):
        return sounded.onset_s
    gaps = np.flatnonzero(np.diff(changed) > 0.05 * cue.sample_rate)
    length_s = changed[gaps[0] if len(gaps) else -1] / cue.sample_rate
    return sounded.onset_s + float(length_s if cue.loop else min(length_s, cue.duration_s))
