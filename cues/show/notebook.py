"""A cue in a notebook: its player, its picture and its levels."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

from cues.errors import MissingFeatureError
from cues.library.audiofile import encoded
from cues.show.plots import picture, turns

if TYPE_CHECKING:
    from cues.cue import Cue

__all__ = ["cue_html"]

_MAX_RATE_HZ, _MIN_RATE_HZ = 192_000, 8_000


def cue_html(cue: Cue) -> str:
    """HTML with a player and a picture of `cue`; Jupyter displays it for a cue at the end of a cell."""
    name = escape(cue.name)
    levels = f"{1000 * cue.duration_s:.0f} ms at {cue.sample_rate} Hz"
    if cue.measured is not None:
        levels += f", {cue.measured.m100_max_lufs:.1f} LUFS, {cue.measured.true_peak_dbtp:.1f} dBTP"
    wav = encoded(turns(cue), cue.sample_rate, "wav", "16")
    player = f'<audio controls aria-label="{name}" src="{_data_uri("audio/wav", wav)}"></audio>'
    heading = f"<strong>{name}</strong> {escape(levels)}"
    return f'<div class="cue-engine">{heading}<br>{player}{_picture(cue)}</div>'


def _picture(cue: Cue) -> str:
    """The picture; empty without matplotlib, and at rates that the meters do not take."""
    if not _MIN_RATE_HZ <= cue.sample_rate <= _MAX_RATE_HZ:
        return ""
    try:
        figure = picture(cue)
    except MissingFeatureError:
        return ""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=80)
    uri = _data_uri("image/png", file.getvalue())
    return f'<br><img alt="Waveform, spectrogram and loudness of {escape(cue.name)}" src="{uri}">'


def _data_uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
