"""A cue in a notebook: its player, its picture and its levels."""

import base64
import contextlib
import io
from html import escape

from cues.cue import Cue
from cues.errors import MissingFeatureError
from cues.library.audiofile import encoded
from cues.show.plots import picture, turns
from cues.units import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE

__all__ = ["cue_html"]


def cue_html(cue: Cue) -> str:
    """HTML with a player and a picture of `cue`; Jupyter displays it for a cue at the end of a cell."""
    name = escape(cue.name)
    levels = f"{1000 * cue.duration_s:.0f} ms at {cue.sample_rate} Hz"
    if cue.measured is not None:
        levels += f", {cue.measured.m100_max_lufs:.1f} LUFS, {cue.measured.true_peak_dbtp:.1f} dBTP"
    wav = encoded(turns(cue), cue.sample_rate, "wav", "16")
    player = f'<audio controls aria-label="{name}" src="{_data_uri("audio/wav", wav)}"></audio>'
    image = ""
    # The meters do not take other rates, and matplotlib may be missing.
    if MIN_SAMPLE_RATE <= cue.sample_rate <= MAX_SAMPLE_RATE:
        with contextlib.suppress(MissingFeatureError):
            file = io.BytesIO()
            picture(cue).savefig(file, format="png", dpi=80)
            uri = _data_uri("image/png", file.getvalue())
            image = f'<br><img alt="Waveform, spectrogram and loudness of {name}" src="{uri}">'
    return f'<div class="cue-engine"><strong>{name}</strong> {escape(levels)}<br>{player}{image}</div>'


def _data_uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
