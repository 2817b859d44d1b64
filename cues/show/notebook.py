"""A cue in a notebook: its player, its picture and its levels."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cues.show.pictures import picture_svg
from cues.show.sounds import turns, wav_uri

if TYPE_CHECKING:
    from cues.cue import Cue

__all__ = ["cue_html"]

_MAX_RATE_HZ, _MIN_RATE_HZ = 192_000, 8_000
_STYLE = (
    ".cue-engine{max-width:34rem}.cue-engine text{fill:currentColor;font:10px sans-serif;opacity:.8}"
    ".cue-engine .frame{fill:none;stroke:currentColor;stroke-opacity:.3}"
    ".cue-engine .grid{stroke:currentColor;stroke-opacity:.3;stroke-dasharray:2 3}"
    ".cue-engine .band{stroke:#fff;stroke-opacity:.5;stroke-dasharray:1 3}"
    ".cue-engine .wave{fill:#4a86c5;stroke:#4a86c5;stroke-width:.6}"
    ".cue-engine .loudness{fill:none;stroke:#d0643a;stroke-width:1.5}"
    ".cue-engine .playhead{visibility:hidden}"
)


def cue_html(cue: Cue) -> str:
    """HTML with a player and a picture of `cue`; Jupyter displays it for a cue at the end of a cell."""
    name = escape(cue.name)
    levels = f"{1000 * cue.duration_s:.0f} ms at {cue.sample_rate} Hz"
    if cue.measured is not None:
        levels += f", {cue.measured.m100_max_lufs:.1f} LUFS, {cue.measured.true_peak_dbtp:.1f} dBTP"
    alone = turns(cue)
    player = f'<audio controls aria-label="{name}" src="{wav_uri(alone, cue.sample_rate)}"></audio>'
    # The meters do not take other rates: play such a cue, but do not draw it.
    drawable = _MIN_RATE_HZ <= cue.sample_rate <= _MAX_RATE_HZ
    picture = picture_svg(alone, cue.sample_rate, title=f"Picture of {cue.name}") if drawable else ""
    heading = f"<strong>{name}</strong> {escape(levels)}"
    return f'<div class="cue-engine"><style>{_STYLE}</style>{heading}<br>{player}{picture}</div>'
