"""The sound board: one HTML page that needs no network.

Samples are in the page once, as 16-bit PCM: the speech, each cue, and the stretches in which a cue changes the speech.
The browser puts them together, plays them and draws them (`templates/board.js`, with wavesurfer.js).
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.arrays import Samples
from cues.cue import Cue
from cues.extras import needed
from cues.library.lint import check_cue
from cues.meters.levels import Measurement
from cues.meters.loudness import measure
from cues.meters.pitch import heard_notes
from cues.meters.telephone import RATE_HZ, over_telephone
from cues.show.audition import over_speech
from cues.synthesis.catalog import CATALOG
from cues.units import db_to_gain

__all__ = ["Minute", "Set", "at_loudness", "board_page", "pcm_text"]

_CUE_AT_S = 0.9
_CEILING_DBTP = -1.0


@dataclass(frozen=True, slots=True)
class Set:
    """The cues of one column, the built-in set or a pack: its heading, the cues, and the origin of each by its name."""

    label: str
    cues: Mapping[str, Cue]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of a conversation: the speech, and the mix and the number of sounds of each profile."""

    speech: Samples
    sample_rate: int
    mixes: Mapping[str, Samples]
    n_sounds: Mapping[str, int]


def board_page(
    sets: Sequence[Set],
    speech: Samples,
    sample_rate: int,
    *,
    title: str = "Sound board",
    speaker: str = "",
    reload: str = "",
    minute: Minute | None = None,
) -> str:
    """HTML page with every cue of one to three `sets`; a cue has the same loudness in each.

    `sample_rate` is that of the speech and of all cues, Hz. `reload` is the URL on the page's server that reports
    changes, empty for a standalone page. `minute` is heard on a card of its own.
    """
    under = (speech, over_telephone(speech, sample_rate))
    names = list(dict.fromkeys(name for cue_set in sets for name in cue_set.cues))
    cards = [_card(number, name, sets, under, sample_rate) for number, name in enumerate(names, start=1)]
    if minute is not None:
        cards.append(_minute_card(len(cards) + 1, minute))
    data = {
        "rate": sample_rate,
        "speech": pcm_text(speech),
        "phone": pcm_text(under[1]),
        "phoneRate": RATE_HZ,
        "minute": {"speech": pcm_text(minute.speech), "rate": minute.sample_rate} if minute else None,
        "cards": [[column["sounds"] for column in card["columns"]] for card in cards],
    }
    return _rendered(title=title, sets=sets, cards=cards, data=data, speaker=speaker, reload=reload)


def _card(number: int, name: str, sets: Sequence[Set], speech: tuple[Samples, Samples], rate: int) -> dict[str, Any]:
    """One cue for the template, in the columns of all sets that have it, as loud as in the first of them."""
    columns: list[dict[str, Any]] = []
    first_lufs = 0.0
    for cue_set in (cue_set for cue_set in sets if name in cue_set.cues):
        cue, offset_db = cue_set.cues[name], ""
        own_lufs = _measured(cue).m100_max_lufs
        if columns:
            cue = at_loudness(cue, first_lufs)
            offset_db = _offset(_measured(cue).m100_max_lufs - own_lufs)
        else:
            first_lufs = own_lufs
        columns.append(
            {
                "label": cue_set.label,
                "source": cue_set.sources.get(name, ""),
                "sounds": _sounds(cue, *speech, rate),
                "measures": _measures(cue),
                "warnings": [f"{problem.message} — {problem.fix}" for problem in check_cue(cue)],
                "offset_db": offset_db,
            }
        )
    meaning = CATALOG[name].meaning if name in CATALOG else ""
    return {"number": number, "name": name, "meaning": meaning, "columns": columns, "is_minute": False}


def _minute_card(number: int, minute: Minute) -> dict[str, Any]:
    """The profiles beside each other; the page has the speech once, and what each profile changes in it."""
    columns = [
        {
            "label": profile,
            "source": "",
            "sounds": {"changes": _changes(minute.speech, mix), "loop": False},
            "measures": [("sounds", str(minute.n_sounds[profile]))],
            "warnings": [],
            "offset_db": "",
        }
        for profile, mix in minute.mixes.items()
    ]
    meaning = "Five questions and six calls of 0.2 to 6 s, over a telephone: how much sounds in each profile"
    return {"number": number, "name": "a minute", "meaning": meaning, "columns": columns, "is_minute": True}


def _changes(before: Samples, after: Samples) -> list[dict[str, Any]]:
    """The stretches of `after` that differ from `before`, joined over pauses of less than 100 samples."""
    changed = np.flatnonzero(before != after)
    parts = np.split(changed, np.flatnonzero(np.diff(changed) > 100) + 1) if len(changed) else []
    return [{"at": int(part[0]), "samples": pcm_text(after[part[0] : part[-1] + 1])} for part in parts]


def _offset(gain_db: float) -> str:
    return f"{gain_db:+.1f} dB".replace("-", "−") if abs(gain_db) >= 0.05 else "±0 dB"


def _sounds(cue: Cue, speech: Samples, phone: Samples, rate: int) -> dict[str, Any]:
    onset_s = min(_CUE_AT_S, len(speech) / rate / 2)
    mixed = over_speech([cue], speech, rate, first_at_s=onset_s)
    change = _change(speech, mixed)
    return {
        "alone": pcm_text(cue.samples),
        "loop": cue.loop,
        "onsetS": change["at"] / rate if cue.phrases else onset_s,  # phrases follow the words
        "speech": change,
        "phone": _change(phone, over_telephone(mixed, rate)),
    }


def _change(before: Samples, after: Samples) -> dict[str, Any]:
    """The stretch of `after` that differs from `before` followed by silence, with its position and the whole length."""
    padded = np.pad(before, (0, len(after) - len(before)))
    changed = np.flatnonzero(padded != after)
    start, end = (int(changed[0]), int(changed[-1]) + 1) if len(changed) else (0, 0)
    return {"at": start, "length": len(after), "samples": pcm_text(after[start:end])}


def _measured(cue: Cue) -> Measurement:
    return cue.measured or measure(cue.samples, cue.sample_rate)


def _measures(cue: Cue) -> list[tuple[str, str]]:
    measured = _measured(cue)
    rows = (
        ("length", f"{1000 * cue.duration_s:.0f} ms{', loops' if cue.loop else ''}"),
        ("notes", " ".join(heard_notes(cue.samples, cue.sample_rate)).replace(">", " → ") or "none"),
        ("loudest 100 ms", f"{measured.m100_max_lufs:.1f} LUFS"),
        ("true peak", f"{measured.true_peak_dbtp:.1f} dBTP"),
    )
    return [(title, text.replace("-", "−")) for title, text in rows]


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
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    template = environment.get_template("board.html.jinja")
    own = {"style": style, "script": script, "script_hash": f"sha256-{digest}", "nonce": secrets.token_urlsafe(16)}
    return str(template.render(**own, **values))


def _template_text(name: str) -> str:
    return resources.files("cues.show").joinpath("templates", name).read_text(encoding="utf-8")


def pcm_text(samples: NDArray[np.float32]) -> str:
    """16-bit little-endian PCM in Base64, without dither: silence stays silent."""
    pcm = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    return base64.b64encode(pcm.tobytes()).decode("ascii")


def at_loudness(cue: Cue, m100_lufs: float) -> Cue:
    """`cue` with its loudest 100 ms at `m100_lufs`, or lower to keep the true peak at −1 dBTP."""
    before = _measured(cue)
    gain_db = min(m100_lufs - before.m100_max_lufs, _CEILING_DBTP - before.true_peak_dbtp)
    return _louder(cue, np.float32(db_to_gain(gain_db)))


def _louder(cue: Cue, gain: np.float32) -> Cue:
    samples, phrases = cue.samples * gain, tuple(_louder(phrase, gain) for phrase in cue.phrases)
    return replace(cue, samples=samples, measured=measure(samples, cue.sample_rate), phrases=phrases)
