"""The sound board: one HTML page that needs no network.

Samples are in the page once, as 16-bit PCM: the speech, each cue, and the stretches in which a cue changes the speech.
The browser puts them together, plays them and draws them (`templates/board.js`, with wavesurfer.js).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from cues.extras import needed
from cues.library.lint import check_cue
from cues.meters.loudness import measure
from cues.meters.pitch import heard_notes
from cues.meters.telephone import RATE_HZ, over_telephone
from cues.show.audition import over_speech
from cues.synthesis.catalog import CATALOG
from cues.units import db_to_gain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from cues.cue import Cue

    Samples = NDArray[np.float32]

__all__ = ["Set", "at_loudness", "board_page", "pcm_text"]

_CUE_AT_S = 0.9
_CEILING_DBTP = -1.0


@dataclass(frozen=True, slots=True)
class Set:
    """The cues of one column, the built-in set or a pack: its heading, the cues, and the origin of each by its name."""

    label: str
    cues: Mapping[str, Cue]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Column:
    """One sound with its samples and measures; `offset_db` is the gain that makes it as loud as the first column's."""

    label: str
    source: str
    sounds: dict[str, Any]
    measures: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    offset_db: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One cue, in the columns of all sets that have it."""

    number: int
    name: str
    meaning: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Speech:
    """The speech under the cues, and as a telephone carries it."""

    samples: Samples
    sample_rate: int
    phone: Samples


def board_page(
    sets: Sequence[Set],
    speech: Samples,
    sample_rate: int,
    *,
    title: str = "Sound board",
    speaker: str = "",
    reload: str = "",
) -> str:
    """HTML page with every cue of one to three `sets`; a cue has the same loudness in each.

    `sample_rate` is that of the speech and of all cues, Hz. `reload` is the URL on the page's server that reports
    changes, empty for a standalone page.
    """
    under = Speech(speech, sample_rate, over_telephone(speech, sample_rate))
    names = list(dict.fromkeys(name for cue_set in sets for name in cue_set.cues))
    cards = [_card(number, name, sets, under) for number, name in enumerate(names, start=1)]
    data = {
        "rate": sample_rate,
        "speech": pcm_text(speech),
        "phone": pcm_text(under.phone),
        "phoneRate": RATE_HZ,
        "cards": [[column.sounds for column in card.columns] for card in cards],
    }
    return _rendered(title=title, sets=sets, cards=cards, data=data, speaker=speaker, reload=reload)


def _card(number: int, name: str, sets: Sequence[Set], speech: Speech) -> Card:
    own = [cue_set for cue_set in sets if name in cue_set.cues]
    first = own[0].cues[name]
    columns = []
    for cue_set in own:
        cue = cue_set.cues[name]
        leveled = cue if cue is first else at_loudness(cue, _m100(first))
        offset_db = "" if cue is first else _offset(_m100(leveled) - _m100(cue))
        columns.append(_column(cue_set.label, cue_set.sources.get(name, ""), leveled, speech, offset_db))
    meaning = CATALOG[name].meaning if name in CATALOG else ""
    return Card(number, name, meaning, tuple(columns))


def _offset(gain_db: float) -> str:
    return f"{gain_db:+.1f} dB".replace("-", "−") if abs(gain_db) >= 0.05 else "±0 dB"


def _column(label: str, source: str, cue: Cue, speech: Speech, offset_db: str) -> Column:
    rate = speech.sample_rate
    onset_s = min(_CUE_AT_S, len(speech.samples) / rate / 2)
    mixed = over_speech([cue], speech.samples, rate, first_at_s=onset_s)
    sounds = {
        "alone": pcm_text(cue.samples),
        "loop": cue.loop,
        "onsetS": onset_s,
        "speech": _change(speech.samples, mixed),
        "phone": _change(speech.phone, over_telephone(mixed, rate)),
    }
    warnings = tuple(f"{problem.message} — {problem.fix}" for problem in check_cue(cue))
    return Column(label, source, sounds, _measures(cue), warnings, offset_db)


def _change(before: Samples, after: Samples) -> dict[str, Any]:
    """The stretch of `after` that differs from `before` followed by silence, with its position and the whole length."""
    padded = np.pad(before, (0, len(after) - len(before)))
    changed = np.flatnonzero(padded != after)
    start, end = (int(changed[0]), int(changed[-1]) + 1) if len(changed) else (0, 0)
    return {"at": start, "length": len(after), "samples": pcm_text(after[start:end])}


def _m100(cue: Cue) -> float:
    return (cue.measured or measure(cue.samples, cue.sample_rate)).m100_max_lufs


def _measures(cue: Cue) -> tuple[tuple[str, str], ...]:
    measured = cue.measured or measure(cue.samples, cue.sample_rate)
    loop = ", loops" if cue.loop else ""
    rows = (
        ("length", f"{1000 * cue.duration_s:.0f} ms{loop}"),
        ("notes", " ".join(heard_notes(cue.samples, cue.sample_rate)).replace(">", " → ") or "none"),
        ("loudest 100 ms", f"{measured.m100_max_lufs:.1f} LUFS"),
        ("true peak", f"{measured.true_peak_dbtp:.1f} dBTP"),
    )
    return tuple((title, text.replace("-", "−")) for title, text in rows)


def sound_board_packages() -> Any:
    """The module jinja2; raises `MissingFeatureError` if it is not installed."""
    return needed("jinja2", "page", "the sound board needs jinja2")


def _rendered(**values: object) -> str:
    jinja2 = sound_board_packages()
    # The template escapes all but the style and the scripts, which come from this package.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cues.show"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _template_text("board.css"), _template_text("vendor/wavesurfer.js") + _template_text("board.js")
    template = environment.get_template("board.html.jinja")
    return str(template.render(style=style, script=script, script_hash=_hash(script), **values))


def _template_text(name: str) -> str:
    return resources.files("cues.show").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Hash of a script for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def pcm_text(samples: NDArray[np.float32]) -> str:
    """16-bit little-endian PCM in Base64, without dither: silence stays silent."""
    pcm = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    return base64.b64encode(pcm.tobytes()).decode("ascii")


def at_loudness(cue: Cue, m100_lufs: float) -> Cue:
    """`cue` with its loudest 100 ms at `m100_lufs`, or lower to keep the true peak at −1 dBTP."""
    before = cue.measured or measure(cue.samples, cue.sample_rate)
    gain_db = min(m100_lufs - before.m100_max_lufs, _CEILING_DBTP - before.true_peak_dbtp)
    samples = cue.samples * np.float32(db_to_gain(gain_db))
    return replace(cue, samples=samples, measured=measure(samples, cue.sample_rate))
