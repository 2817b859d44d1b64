"""Cues as files: audio beside a JSON sidecar that says what it is and how loud."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cues.audiofile import check_format, default_subtype, write_audio
from cues.errors import AudioFileError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from cues.cue import Cue

__all__ = ["export_bank", "sidecar"]


def export_bank(
    bank: Mapping[str, Cue],
    folder: str | os.PathLike[str],
    *,
    file_format: str = "wav",
    subtype: str | None = None,
    pictures: bool = False,
) -> list[Path]:
    """Write every cue of `bank` to `folder` as `NAME.wav` (or another ending) and `NAME.json`; the audio files' paths.

    Parameters
    ----------
    bank : cues by name.
    folder : made if it is not there; files of the same names are replaced.
    file_format : "wav", "flac" or "ogg".
    subtype : "16" (dithered), "24" or "float" for WAV, "16" or "24" for FLAC, "vorbis" for OGG; None takes 24 bits or
        Vorbis.
    pictures : also draw each cue as `NAME.png`; needs matplotlib.

    Raises
    ------
    MissingFeatureError : if there are to be pictures and matplotlib is not installed.
    CueValueError : for a format that is unknown, or a subtype that the format does not have.
    AudioFileError : if a file cannot be written.
    """
    subtype = subtype or default_subtype(file_format)
    check_format(file_format, subtype)
    target = Path(folder)
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, cue in bank.items():
            path = target / f"{name}.{file_format}"
            write_audio(path, cue.samples, cue.sample_rate, file_format, subtype)
            text = json.dumps(sidecar(cue, path.name, subtype), indent=2, ensure_ascii=False)
            path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
            if pictures:
                _draw(cue, path.with_suffix(".png"))
            written.append(path)
    except OSError as error:
        raise AudioFileError(f"{target}: cannot be written: {error.strerror or error}") from error
    return written


def _draw(cue: Cue, path: Path) -> None:
    from cues.plots import picture

    # Without the version of matplotlib in it, the same cue gives the same file.
    picture(cue).savefig(path, dpi=80, metadata={"Software": None})


def sidecar(cue: Cue, file_name: str, subtype: str) -> dict[str, Any]:
    """What the sidecar of an exported cue says, as plain tables; a pack's `spec` takes its `spec` as it stands."""
    from cues import __version__

    return {
        "name": cue.name,
        "file": file_name,
        "subtype": subtype,
        "sample_rate": cue.sample_rate,
        "n_samples": len(cue.samples),
        "loop": cue.loop,
        "measured": asdict(cue.measured) if cue.measured is not None else None,
        "spec": cue.spec.to_table() if cue.spec is not None else None,
        "engine": f"cue-engine {__version__}",
    }
