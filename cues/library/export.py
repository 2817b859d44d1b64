"""Cues as files: audio beside a JSON sidecar that says what it is and how loud."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cues.errors import AudioFileError, CueValueError
from cues.files import explained
from cues.library.audiofile import check_format, default_subtype, encoded
from cues.library.bank import Bank
from cues.library.pack import PACK_FILE
from cues.library.pack_values import is_plain_name
from cues.synthesis.catalog import CATALOG, usual_lu, usually_loops

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from cues.cue import Cue

__all__ = ["export_bank", "is_untouched", "sidecar"]

_SAME_LU = 0.05


def export_bank(
    bank: Mapping[str, Cue],
    folder: str | os.PathLike[str],
    *,
    file_format: str = "wav",
    subtype: str | None = None,
    pictures: bool = False,
) -> list[Path]:
    """Write every cue of `bank` to `folder` as `NAME.wav` (or another ending) and `NAME.json`; the audio files' paths.

    The folder is a pack that sounds as the bank does. Where the files' names alone do not say it all (a pack's own
    cues, its rules and levels), a `pack.toml` is written, unless there is one.

    Parameters
    ----------
    bank : cues by name.
    folder : made if it is not there; audio files, sidecars and pictures of the same names are replaced.
    file_format : "wav", "flac" or "ogg".
    subtype : "16" (dithered), "24" or "float" for WAV, "16" or "24" for FLAC, "vorbis" for OGG; None takes 24 bits or
        Vorbis.
    pictures : also draw each cue as `NAME.png`; needs matplotlib.

    Raises
    ------
    MissingFeatureError : if there are to be pictures and matplotlib is not installed. Nothing is written then.
    CueValueError : for a format that is unknown, a subtype that the format does not have, or a name of a cue that
        cannot be a file's. Nothing is written then.
    AudioFileError : if a file cannot be written.
    """
    subtype = subtype or default_subtype(file_format)
    check_format(file_format, subtype)
    for name in bank:
        if not is_plain_name(name):
            raise CueValueError(f"cue {name!r}: no file can have that name; it must be a plain name without a folder")
    if pictures:
        from cues.show.plots import check_matplotlib

        check_matplotlib()
    target = Path(folder)
    written = []
    with explained(target, kind=AudioFileError):
        target.mkdir(parents=True, exist_ok=True)
        for name, cue in bank.items():
            path = target / f"{name}.{file_format}"
            data = encoded(cue.samples, cue.sample_rate, file_format, subtype)
            path.write_bytes(data)
            text = json.dumps(sidecar(cue, path.name, subtype, data), indent=2, ensure_ascii=False)
            path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
            if pictures:
                _draw(cue, path.with_suffix(".png"))
            written.append(path)
        if isinstance(bank, Bank):
            _write_pack(bank, written)
    return written


def _write_pack(bank: Bank, files: list[Path]) -> None:
    entries = {path.stem: _entry(bank, bank[path.stem], path.name) for path in files}
    plain = all(
        name in CATALOG and entry == _text(path.name)
        for (name, entry), path in zip(entries.items(), files, strict=True)
    )
    path = files[0].with_name(PACK_FILE)
    if (plain and not bank.rules) or path.exists():
        return
    lines = ["[cues]", *(f"{_text(name)} = {entry}" for name, entry in entries.items())]
    lines += ["", "[rules]", *(f"{_text(pattern)} = {_text(cue)}" for pattern, cue in bank.rules)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _entry(bank: Bank, cue: Cue, file_name: str) -> str:
    """What a `pack.toml` says of an exported cue, so that it comes back as it is."""
    assert cue.measured is not None
    says = ""
    if abs(cue.measured.m100_max_lufs - bank.speech_lufs - usual_lu(cue.name)) > _SAME_LU:
        says += ", normalize = false"
    if cue.loop != usually_loops(cue.name):
        says += f", loop = {str(cue.loop).lower()}"
    return f"{{ file = {_text(file_name)}{says} }}" if says else _text(file_name)


def _text(value: str) -> str:
    """`value` as a TOML string: JSON's escapes are TOML's, but for the one character that JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _draw(cue: Cue, path: Path) -> None:
    from cues.show.plots import picture

    # Without the version of matplotlib in it, the same cue gives the same file.
    picture(cue).savefig(path, dpi=80, metadata={"Software": None})


def is_untouched(path: Path, cue: Cue, subtype: str) -> bool:
    """Whether the audio file at `path` is as an export left it: its sidecar holds its digest.

    Beside a sidecar without one, it must be what an export of `cue` would write now.
    """
    try:
        data = path.read_bytes()
        beside = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(beside, dict):
        return False
    if "sha256" in beside:
        return bool(beside["sha256"] == _digest(data))
    return data == encoded(cue.samples, cue.sample_rate, path.suffix[1:], subtype)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sidecar(cue: Cue, file_name: str, subtype: str, data: bytes) -> dict[str, Any]:
    """What the sidecar of an exported cue says, as plain tables; a pack's `spec` takes its `spec` as it stands.

    Its `sha256` is that of `data`, the audio file's bytes: by it the next export knows its own file from a sound that
    has taken its place.
    """
    from cues import __version__

    return {
        "name": cue.name,
        "file": file_name,
        "subtype": subtype,
        "sha256": _digest(data),
        "sample_rate": cue.sample_rate,
        "n_samples": len(cue.samples),
        "loop": cue.loop,
        "measured": _rounded(asdict(cue.measured)) if cue.measured is not None else None,
        "spec": cue.spec.to_table() if cue.spec is not None else None,
        "engine": f"cue-engine {__version__}",
    }


def _rounded(levels: dict[str, float | None]) -> dict[str, float | None]:
    """Levels to a ten-thousandth of a dB, DC to a billionth: from there on they differ from processor to processor."""
    digits = {"dc": 9}
    return {name: level and round(level, digits.get(name, 4)) + 0.0 for name, level in levels.items()}
