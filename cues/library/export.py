"""Export of cues: audio files with JSON sidecars (spec and levels), or the files that a player looks for."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cues.cue import Cue
from cues.errors import AudioFileError, CueValueError
from cues.files import explained, replacing
from cues.library.audiofile import check_format, default_subtype, digest_of, encoded, is_exported, json_object
from cues.library.bank import Bank
from cues.library.pack import PACK_FILE, sound_files
from cues.library.pack_values import TARGET_LU, is_plain_name, would_do
from cues.library.phrases import SPEECH_LU
from cues.library.shaping import AT_CEILING_DB, CEILING_DBTP, LOOP_PERIOD_MS, SILENCE_LUFS, with_soft_edges
from cues.synthesis.catalog import CATALOG, usual_lu, usually_loops
from cues.units import ms_to_samples

__all__ = ["MANIFEST", "PLAYERS", "Export", "PlayerFile", "export_bank", "export_for_player"]

MANIFEST = "cues-export.json"
_SAME_LU = 0.01
_FIRST_LINE = "# Written by cues export, which replaces it as long as it has this digest: "
_DIGITS = {"dc": 9}  # the other levels have 4: further ones depend on the processor


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Audio files of an export: written, kept as the user's own, and removed as those of earlier exports."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    removed: tuple[Path, ...] = ()


class PlayerFile(NamedTuple):
    """A file that a player looks for: its name, the cue in it and its rate, Hz; 16 bits, one channel."""

    name: str
    cue: str
    sample_rate: int


PLAYERS: dict[str, tuple[PlayerFile, ...]] = {
    "home-assistant": (
        # Home Assistant Voice and Linux Voice Assistant: FLAC at 48 kHz, their own rate.
        PlayerFile("wake_word_triggered.flac", "listening", 48000),
        PlayerFile("timer_finished.flac", "attention", 48000),
        PlayerFile("processing.wav", "thinking", 48000),
        # Wyoming satellites: WAV at 22,050 Hz, the rate of their sound command.
        PlayerFile("awake.wav", "listening", 22050),
        PlayerFile("done.wav", "tool_call", 22050),
        PlayerFile("timer_finished.wav", "attention", 22050),
        # For `preannounce_media_id`, `media_player.play_media` and automations.
        *(PlayerFile(f"{name}.flac", name, 48000) for name in ("tool_call", "agent", "success", "error", "attention")),
    )
}
"""The files of each player."""


def export_for_player(
    bank_at: Callable[[int], Mapping[str, Cue]], folder: str | os.PathLike[str], player: str
) -> Export:
    """Write the files that `player` (a key of `PLAYERS`) looks for to `folder`, with a manifest of their digests.

    `bank_at` gives the bank at a sample rate, Hz. A file there that is not the unchanged one of an earlier export is
    kept.
    """
    if player not in PLAYERS:
        raise CueValueError(f"player is {player!r}; it must be one of {', '.join(PLAYERS)}")
    target = Path(folder)
    written, kept, earlier = [], [], json_object(target / MANIFEST).get("sha256")
    digests = earlier if isinstance(earlier, dict) else {}
    banks = {rate: bank_at(rate) for rate in {file.sample_rate for file in PLAYERS[player]}}
    with explained(target, kind=AudioFileError):
        target.mkdir(parents=True, exist_ok=True)
        with ExitStack() as files:
            for file in PLAYERS[player]:
                path = target / file.name
                if path.exists() and digests.get(file.name) != digest_of(path.read_bytes()):
                    kept.append(path)
                    continue
                cue = banks[file.sample_rate][file.cue]
                if cue.phrases and not cue.loop:  # a player plays the whole file each time
                    cue = cue.phrases[0]
                data = encoded(cue.samples, cue.sample_rate, path.suffix[1:], "16")
                files.enter_context(replacing(path)).write_bytes(data)
                digests[file.name] = digest_of(data)
                written.append(path)
            _write_json(files.enter_context(replacing(target / MANIFEST)), {"for": player, "sha256": digests})
    return Export(written=tuple(written), kept=tuple(kept))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def export_bank(
    bank: Mapping[str, Cue],
    folder: str | os.PathLike[str],
    *,
    file_format: str = "wav",
    subtype: str | None = None,
    pictures: bool = False,
) -> Export:
    """Write every cue of `bank` to `folder` as `NAME.wav` (or .flac, .ogg) and `NAME.json`; `pictures` adds `NAME.png`.

    Phrases are files of their own, `NAME_1.wav` and so on.

    The folder is a pack that sounds like the bank. If the file names do not suffice (cues of a pack, rules, levels), a
    `pack.toml` is written. Files of an earlier export are replaced, in another format too. Sounds of the user's own
    are kept, and so is a `pack.toml` that was written or changed by hand, with the files that it names.

    `file_format` and `subtype` are a pair of `FORMATS`; the default subtype is 24 bits or Vorbis. Nothing is written if
    they are unknown, a cue is silent or its name cannot be a file name, or `pictures` is set without matplotlib.
    """
    subtype = subtype or default_subtype(file_format)
    check_format(file_format, subtype)
    _check_levels(bank)
    files = [file for name, cue in bank.items() for file in _files_of(name, cue).items()]
    _check_names(stem for stem, _ in files)
    sounds = dict(files)
    if pictures:
        from cues.show.plots import check_matplotlib

        check_matplotlib()
    target = Path(folder)
    with explained(target, kind=AudioFileError):
        target.mkdir(parents=True, exist_ok=True)
        named = _text_of_own_pack(target / PACK_FILE)
        before = sound_files(target)
        # Files that no export wrote, or that the user's own `pack.toml` needs and this export does not replace.
        rewritten = {f"{name}.{file_format}" for name in sounds}
        needed = {path for path in before if path.name in (named or "") and path.name not in rewritten}
        mine = [path for path in before if path in needed or not is_exported(path, path.read_bytes())]
        taken = {path.stem for path in mine}
        written = []
        with ExitStack() as parts:  # they take their places together: a full disk leaves those of before
            for name, cue in sounds.items():
                if name not in taken:
                    path = target / f"{name}.{file_format}"
                    _write_cue(cue, path, subtype, parts, pictures=pictures)
                    written.append(path)
            if isinstance(bank, Bank) and named is None:
                _write_pack(bank, target, {path.stem: path for path in (*mine, *written)}, parts)
        removed = [path for path in before if path not in {*written, *mine}]
        for path in removed:
            path.unlink()
            if path.stem not in sounds:
                for beside in (".json", ".png"):
                    path.with_suffix(beside).unlink(missing_ok=True)
    return Export(written=tuple(written), kept=tuple(mine), removed=tuple(removed))


def _files_of(name: str, cue: Cue) -> dict[str, Cue]:
    """The sounds of a cue by their files' names: itself, or its phrases without the pauses after them."""
    if not cue.phrases:
        return {name: cue}
    heard = [replace(one, name=name, samples=np.trim_zeros(one.samples, "b")) for one in cue.phrases]
    return {f"{name}_{n}": one for n, one in enumerate(heard, start=1)}


def _check_names(names: Iterable[str]) -> None:
    """Raise unless every name can be that of a file of its own, on any system."""
    seen: dict[str, str] = {}
    for name in names:
        if not is_plain_name(name):
            message = f"cue {name!r}: no file can have that name; it must be a plain name, without a folder"
            raise CueValueError(message + would_do(name))
        if (first := seen.get(name.casefold())) is not None:
            raise CueValueError(f"cue {name!r}: its file can replace that of {first!r}; {name}_2 would do")
        seen[name.casefold()] = name


def _check_levels(bank: Mapping[str, Cue]) -> None:
    """Raise for a cue that a pack would refuse as silent, such as one that a telephone does not carry."""
    for name, one in ((name, one) for name, cue in bank.items() for one in cue.phrases or (cue,)):
        if one.measured is not None and one.measured.m100_max_lufs < SILENCE_LUFS:
            level = f"its loudest 100 ms have {one.measured.m100_max_lufs:.1f} LUFS at {one.sample_rate} Hz"
            raise CueValueError(f"cue {name!r} is silent: {level}; more than {SILENCE_LUFS:g} are needed")


def _write_cue(cue: Cue, path: Path, subtype: str, files: ExitStack, *, pictures: bool) -> None:
    """Write a cue's files, which take their places when `files` is closed."""
    data = encoded(cue.samples, cue.sample_rate, path.suffix[1:], subtype)
    files.enter_context(replacing(path)).write_bytes(data)
    _write_json(files.enter_context(replacing(path.with_suffix(".json"))), _sidecar(cue, path.name, subtype, data))
    if pictures:
        from cues.show.plots import picture

        # Leave out the version of matplotlib: the same cue gives the same file.
        part = files.enter_context(replacing(path.with_suffix(".png")))
        picture(cue).savefig(part, format="png", dpi=80, metadata={"Software": None})


def _text_of_own_pack(path: Path) -> str | None:
    """Text of a `pack.toml` that no export wrote, or that was changed; None if an export may write it."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        return None
    first, _, rest = text.partition("\n")
    return None if first == _FIRST_LINE + digest_of(rest.encode()) else text


def _write_pack(bank: Bank, folder: Path, files: Mapping[str, Path], parts: ExitStack) -> None:
    entries = {
        name: _entry(bank, cue, [files[stem].name for stem in _files_of(name, cue)]) for name, cue in bank.items()
    }
    # A pack needs a rule for each cue of its own: one that fits no tool, if the bank has none.
    ruled = {name for _, name in bank.rules}
    rules = (*bank.rules, *((f"cue {name}", name) for name in entries if name not in CATALOG and name not in ruled))
    # Without a `pack.toml` each sound is a cue, also one of the user's.
    plain = all(name in CATALOG for name in files) and not any(entry.startswith("{") for entry in entries.values())
    path = folder / PACK_FILE
    if plain and not (rules or bank.profiles):
        parts.callback(path.unlink, missing_ok=True)
        return
    lines = ["[cues]", *(f"{_text(name)} = {entry}" for name, entry in entries.items())]
    for section, pairs in (("rules", rules), ("profiles", bank.profiles)):
        if pairs or section == "rules":
            lines += ["", f"[{section}]", *(f"{_text(pattern)} = {_text(name)}" for pattern, name in pairs)]
    lines.append("")
    rest = "\n".join(lines)
    part = parts.enter_context(replacing(path))
    part.write_text(f"{_FIRST_LINE}{digest_of(rest.encode())}\n{rest}", encoding="utf-8", newline="\n")


def _entry(bank: Bank, cue: Cue, names: Sequence[str]) -> str:
    """Entry of an exported cue in `pack.toml`, with its files' names; loading it gives the same sound."""
    says, usual_lufs = "", bank.speech_lufs + (SPEECH_LU if cue.phrases else usual_lu(cue.name))
    if not all(_comes_back(one, usual_lufs) for one in cue.phrases or (cue,)):
        levels_lu = [one.measured.m100_max_lufs - bank.speech_lufs for one in cue.phrases or (cue,) if one.measured]
        is_one = bool(levels_lu) and max(levels_lu) - min(levels_lu) <= _SAME_LU
        is_target = is_one and TARGET_LU[0] <= levels_lu[0] <= TARGET_LU[1]
        says = f", target_lu = {levels_lu[0]:.2f}" if is_target else ", normalize = false"
    if cue.loop != usually_loops(cue.name) or (cue.loop and not cue.phrases and not _has_usual_period(cue)):
        says += f", loop = {str(cue.loop).lower()}"
    if cue.phrases:
        return f"{{ phrases = [{', '.join(map(_text, names))}]{says} }}"
    return f"{{ file = {_text(names[0])}{says} }}" if says else _text(names[0])


def _comes_back(cue: Cue, usual_lufs: float) -> bool:
    """Whether a cue has the usual level, or the ceiling keeps it lower, so that its file needs no setting."""
    if cue.measured is None:
        return False
    above_lu = cue.measured.m100_max_lufs - usual_lufs
    return abs(above_lu) <= _SAME_LU or (above_lu < 0.0 and cue.measured.true_peak_dbtp > CEILING_DBTP - AT_CEILING_DB)


def _has_usual_period(cue: Cue) -> bool:
    """Whether a loop stays as it is when its file is loaded without settings: no silence or fade is added."""
    is_long = len(cue) >= ms_to_samples(LOOP_PERIOD_MS, cue.sample_rate)
    return is_long and np.array_equal(with_soft_edges(cue.samples, cue.sample_rate), cue.samples)


def _text(value: str) -> str:
    """`value` as a TOML string: as in JSON, but TOML also escapes U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _sidecar(cue: Cue, file_name: str, subtype: str, data: bytes) -> dict[str, Any]:
    """Contents of an exported cue's sidecar; by the digest of the file's bytes, the next export detects a new sound."""
    from cues import __version__

    levels = asdict(cue.measured) if cue.measured is not None else {}
    levels.pop("missed_lu", None)  # it is about the bank's target, not about the file
    measured = {name: level and round(level, _DIGITS.get(name, 4)) + 0.0 for name, level in levels.items()}
    return {
        "name": cue.name,
        "file": file_name,
        "subtype": subtype,
        "sha256": digest_of(data),
        "sample_rate": cue.sample_rate,
        "n_samples": len(cue.samples),
        "loop": cue.loop,
        "measured": measured or None,
        "spec": cue.spec.to_table() if cue.spec is not None else None,
        "engine": f"cue-engine {__version__}",
    }
