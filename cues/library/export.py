"""Export of cues: an audio file and a JSON sidecar with its spec and levels."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cues.errors import AudioFileError, CueValueError
from cues.files import explained
from cues.library.audiofile import check_format, default_subtype, encoded
from cues.library.bank import Bank
from cues.library.pack import PACK_FILE, sound_files
from cues.library.pack_values import is_plain_name, would_do
from cues.synthesis.catalog import CATALOG, usual_lu, usually_loops

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from cues.cue import Cue

__all__ = ["Export", "digest_of", "export_bank", "sidecar"]

_SAME_LU = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Audio files of an export: written, kept as the user's own, and removed as those of earlier exports."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    removed: tuple[Path, ...] = ()


def export_bank(
    bank: Mapping[str, Cue],
    folder: str | os.PathLike[str],
    *,
    file_format: str = "wav",
    subtype: str | None = None,
    pictures: bool = False,
) -> Export:
    """Write every cue of `bank` to `folder` as `NAME.wav` (or .flac, .ogg) and `NAME.json`; `pictures` adds `NAME.png`.

    The folder is a pack that sounds like the bank. If the file names do not suffice (cues of a pack, rules, levels), a
    `pack.toml` is written. Files of an earlier export are replaced, in another format too. Sounds of the user's own
    are kept, and so is a `pack.toml` that was written or changed by hand, with the files that it names.

    `file_format` and `subtype` are a pair of `FORMATS`; the default subtype is 24 bits or Vorbis. Nothing is written if
    they are unknown, a cue's name cannot be a file name, or `pictures` is set without matplotlib.
    """
    subtype = subtype or default_subtype(file_format)
    check_format(file_format, subtype)
    _check_names(bank)
    if pictures:
        from cues.show.plots import check_matplotlib

        check_matplotlib()
    target = Path(folder)
    with explained(target, kind=AudioFileError):
        target.mkdir(parents=True, exist_ok=True)
        named = _text_of_own_pack(target / PACK_FILE)
        before = sound_files(target)
        # Files that no export wrote, or that the user's own `pack.toml` needs in another format.
        needed = {path for path in before if path.name in (named or "") and path.suffix != f".{file_format}"}
        mine = [path for path in before if path in needed or not _is_untouched(path)]
        taken = {path.stem for path in mine}
        written = []
        for name, cue in bank.items():
            if name not in taken:
                path = target / f"{name}.{file_format}"
                _write_cue(cue, path, subtype, pictures=pictures)
                written.append(path)
        removed = [path for path in before if path not in {*written, *mine}]
        for path in removed:
            path.unlink()
            if path.stem not in bank:
                for beside in (".json", ".png"):
                    path.with_suffix(beside).unlink(missing_ok=True)
        kept = [path for path in mine if path.stem in bank]
        if isinstance(bank, Bank) and named is None:
            _write_pack(bank, target, {path.stem: path for path in (*kept, *written)})
    return Export(written=tuple(written), kept=tuple(kept), removed=tuple(removed))


def _check_names(names: Iterable[str]) -> None:
    """Raise unless every name can be that of a file of its own, on any system."""
    seen: dict[str, str] = {}
    for name in names:
        if not is_plain_name(name):
            message = f"cue {name!r}: no file can have that name; it must be a plain name, without a folder"
            raise CueValueError(message + would_do(name))
        first = seen.setdefault(name.casefold(), name)
        if first != name:
            raise CueValueError(f"cue {name!r}: its file can replace that of {first!r}; {name}_2 would do")


def _write_cue(cue: Cue, path: Path, subtype: str, *, pictures: bool) -> None:
    data = encoded(cue.samples, cue.sample_rate, path.suffix[1:], subtype)
    path.write_bytes(data)
    text = json.dumps(sidecar(cue, path.name, subtype, data), indent=2, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    if pictures:
        from cues.show.plots import picture

        # Leave out the version of matplotlib: the same cue gives the same file.
        picture(cue).savefig(path.with_suffix(".png"), dpi=80, metadata={"Software": None})


_FIRST_LINE = "# Written by cues export, which replaces it as long as it has this digest: "


def _text_of_own_pack(path: Path) -> str | None:
    """Text of a `pack.toml` that no export wrote, or that was changed; None if an export may write it."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        return None
    first, _, rest = text.partition("\n")
    return None if first == _FIRST_LINE + digest_of(rest.encode()) else text


def _write_pack(bank: Bank, folder: Path, files: Mapping[str, Path]) -> None:
    entries = {name: _entry(bank, bank[name], path.name) for name, path in files.items()}
    plain = all(name in CATALOG and entry == _text(files[name].name) for name, entry in entries.items())
    path = folder / PACK_FILE
    if plain and not bank.rules:
        path.unlink(missing_ok=True)
        return
    lines = ["[cues]", *(f"{_text(name)} = {entry}" for name, entry in entries.items())]
    lines += ["", "[rules]", *(f"{_text(pattern)} = {_text(cue)}" for pattern, cue in bank.rules), ""]
    rest = "\n".join(lines)
    path.write_text(f"{_FIRST_LINE}{digest_of(rest.encode())}\n{rest}", encoding="utf-8", newline="\n")


def _entry(bank: Bank, cue: Cue, file_name: str) -> str:
    """Entry of an exported cue in `pack.toml`; loading it gives the same sound."""
    assert cue.measured is not None
    says = ""
    if abs(cue.measured.m100_max_lufs - bank.speech_lufs - usual_lu(cue.name)) > _SAME_LU:
        says += ", normalize = false"
    if cue.loop != usually_loops(cue.name):
        says += f", loop = {str(cue.loop).lower()}"
    return f"{{ file = {_text(file_name)}{says} }}" if says else _text(file_name)


def _text(value: str) -> str:
    """`value` as a TOML string: as in JSON, but TOML also escapes U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_untouched(path: Path) -> bool:
    """Whether the audio file at `path` is unchanged since its export, by the digest in its sidecar."""
    try:
        beside = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return bool(beside["sha256"] == digest_of(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def digest_of(data: bytes) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def sidecar(cue: Cue, file_name: str, subtype: str, data: bytes) -> dict[str, Any]:
    """Contents of an exported cue's sidecar, JSON-serializable; its `spec` can be copied into a pack.

    By `sha256`, the digest of the audio file's bytes (`data`), the next export detects a replaced sound.
    """
    from cues import __version__

    return {
        "name": cue.name,
        "file": file_name,
        "subtype": subtype,
        "sha256": digest_of(data),
        "sample_rate": cue.sample_rate,
        "n_samples": len(cue.samples),
        "loop": cue.loop,
        "measured": _rounded(asdict(cue.measured)) if cue.measured is not None else None,
        "spec": cue.spec.to_table() if cue.spec is not None else None,
        "engine": f"cue-engine {__version__}",
    }


def _rounded(levels: dict[str, float | None]) -> dict[str, float | None]:
    """Levels rounded to 0.0001 dB and DC to 1e-9: further digits depend on the processor."""
    digits = {"dc": 9}
    return {
        name: level and round(level, digits.get(name, 4)) + 0.0
        for name, level in levels.items()
        if name != "missed_lu"  # it is about the bank's target, not about the file
    }
