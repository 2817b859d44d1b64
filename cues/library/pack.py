"""Packs: a folder with a user's sounds, and rules from tool names to cues.

A pack has a `pack.toml`, or only audio files named after cues. It is checked as a whole before use; every error names
the file, the key, its value and what is allowed.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cues.errors import CueError, CueTypeError, CueValueError, PackError, did_you_mean, reason_of
from cues.files import toml_table, user_config_dir
from cues.library.audiofile import ENDINGS, file_bytes
from cues.library.pack_values import (
    FIELDS,
    FIELDS_OF_FILES,
    file_inside,
    files_inside,
    is_inside,
    is_plain_name,
    typed,
    unknown_keys,
    would_do,
)
from cues.library.shaping import Loop
from cues.synthesis.catalog import CATALOG
from cues.synthesis.spec import Spec

__all__ = ["MOTIF", "PACK_FILE", "PACK_VARIABLE", "Override", "Pack", "find_pack_dir", "read_pack", "sound_files"]

MOTIF = "motif"
"""Value of a rule that gives each matching tool its own motif."""
PROFILES = ("full", "normal", "minimal")
PACK_FILE = "pack.toml"
PACK_VARIABLE = "CUES_PACK"
"""Environment variable with the folder of the pack."""
_UNREADABLE = (".m4a", ".mp4", ".aac", ".wma", ".caf", ".webm")
_BESIDE = (".json", ".png", ".txt", ".md", ".toml")

_FILES_OF = {"file": file_inside, "phrases": files_inside}
_SOUNDS = tuple(_FILES_OF)
_OF_FILES = "move the line to [cues]: a rule names a cue, not a file"
_IN_CUES = dict.fromkeys(CATALOG, "move it to [cues]")
_IN_SPECS = {field.name: f"write it in the cue's spec: spec = {{ {field.name} = … }}" for field in fields(Spec)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A pack's settings for one cue.

    Its sound is a file, phrases (files of speech, taken in turn), a spec, or else the built-in one. `gain_db` (−40 …
    20) comes on top of the normalization to `target_lu` (−40 … 10, against speech; None is the built-in cue's, +6 for
    phrases, or −6 for a new cue). Without `normalize`, a file keeps its loudness, but for `gain_db` and the ceiling.
    `loop` None loops as the built-in cue does. `where` and `file_name` are for errors.
    """

    where: str
    file: Path | None = None
    phrases: tuple[Path, ...] = ()
    spec: Spec | None = None
    file_name: str = ""
    gain_db: float = 0.0
    target_lu: float | None = None
    normalize: bool = True
    trim: bool = False
    loop: Loop | bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A checked pack: cues by name, and rules from tool-name patterns to a cue or `"motif"`, and to a profile."""

    folder: Path
    cues: Mapping[str, Override]
    rules: tuple[tuple[str, str], ...] = ()  # the first match wins
    profiles: tuple[tuple[str, str], ...] = ()
    unnamed: tuple[str, ...] = ()  # audio files that the `pack.toml` does not name, so that nobody hears them


def find_pack_dir(pack_dir: str | os.PathLike[str] | None) -> Path | None:
    """Folder of the pack: the argument, else `$CUES_PACK`, else the user's configuration folder, else None.

    `""` as the argument or in `CUES_PACK` means no pack. The folder `cue-engine/pack` in the platform's configuration
    folder is used if it is not empty.
    """
    if pack_dir is not None:
        if not isinstance(pack_dir, str | os.PathLike):
            raise CueTypeError(f"pack_dir is {pack_dir!r}; it must be a path, or an empty string for no pack")
        return Path(pack_dir) if pack_dir != "" else None
    named = os.environ.get(PACK_VARIABLE)
    if named is not None:
        # The variable may be set without a shell, which would expand `~`.
        return Path(os.path.expanduser(named)) if named else None  # noqa: PTH111  (Path's raises for unknown users)
    users = user_config_dir()
    try:
        return users / "pack" if users is not None and any((users / "pack").iterdir()) else None
    except OSError:  # not there
        return None


def read_pack(folder: Path, faults: list[PackError] | None = None) -> Pack:
    """The pack in `folder`; its settings are checked, its sounds are not.

    A list `faults` collects the errors inside the pack, whose settings it then omits; without a list, the first raises.
    """
    found: list[PackError] = []
    try:
        if not folder.is_dir():
            raise PackError(f"{folder}: is not a folder; a pack is a folder with a {PACK_FILE} or with audio files")
        # A dangling link is an error.
        pack = (_from_toml if os.path.lexists(folder / PACK_FILE) else _from_files)(folder, found)
    except CueError:
        raise
    except (OSError, ValueError) as error:
        raise PackError(f"{folder}: cannot be read: {reason_of(error)}") from error
    if faults is None and found:
        raise found[0]
    (faults if faults is not None else []).extend(found)
    return pack


@contextlib.contextmanager
def _noting(faults: list[PackError], about: str) -> Iterator[None]:
    """Collect a `PackError` in `faults`; `about` is what the block's faults concern."""
    n_before = len(faults)
    try:
        yield
    except PackError as error:
        faults.append(error)
    for fault in faults[n_before:]:
        fault.about = fault.about or about


def _from_files(folder: Path, faults: list[PackError]) -> Pack:
    cues: dict[str, Override] = {}
    for path in sound_files(folder):
        with _noting(faults, path.name):
            cues[path.stem] = _named_after_cue(folder, path, cues)
    if not cues and not faults:
        raise PackError(
            f"{folder}: holds neither a {PACK_FILE} nor an audio file ({', '.join(ENDINGS)}) named after a cue",
            fix="cues new-pack NAME makes a pack to start from",
        )
    return Pack(folder=folder, cues=cues)


def sound_files(folder: Path) -> list[Path]:
    """Files of a folder that look like sounds of a pack, by name: audio files, and any file named after a cue.

    The JSON and pictures that `cues export` writes beside its sounds are left out.
    """
    return [
        path
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".")
        and (path.suffix.lower() in (*ENDINGS, *_UNREADABLE) or (path.stem in CATALOG and path.is_file()))
        and path.suffix.lower() not in _BESIDE
    ]


def _named_after_cue(folder: Path, path: Path, cues: Mapping[str, Override]) -> Override:
    name = path.stem
    if path.suffix.lower() not in ENDINGS:
        message = f"{path}: its name does not end as audio that can be read; it must end in {', '.join(ENDINGS)}"
        raise PackError(message, fix="export it as WAV, or move it out of the pack's folder")
    if name not in CATALOG:
        raise PackError(
            f"{path}: {name!r} is not a cue; a file without a {PACK_FILE} is named after one of {', '.join(CATALOG)}"
            f"{did_you_mean(name, CATALOG)}",
            fix="name the file after a cue, or write a pack.toml (cues new-pack shows one)",
        )
    if name in cues:
        message = f"{path}: {name!r} has a file already, {cues[name].file}; one is allowed"
        raise PackError(message, fix="delete one of the two files")
    return Override(where=str(path), file=file_inside(folder, path.name, str(path)), file_name=str(path))


def _from_toml(folder: Path, faults: list[PackError]) -> Pack:
    path = folder / PACK_FILE
    if not is_inside(folder, path):
        raise PackError(f"{path}: is a link that leads out of the pack's folder", fix="copy the file into the folder")
    table = _table(path)
    faults += unknown_keys(table, ("pack", "cues", "rules", "profiles"), f"{path}:", "the file", _IN_CUES)
    sections: dict[str, dict[str, Any]] = {}
    for name in ("pack", "cues", "rules", "profiles"):
        sections[name] = {}
        with _noting(faults, ""):
            sections[name] = typed(table.get(name, {}), dict, f"{path}: [{name}]", "a table")
    ruled = {cue for cue in sections["rules"].values() if isinstance(cue, str)}
    cues: dict[str, Override] = {}
    for name, value in sections["cues"].items():
        with _noting(faults, name):
            _check_name(path, name, ruled)
            if (override := _override(folder, f"{path}: [cues] {name}", name, value, faults)) is not None:
                cues[name] = override
    rules: list[tuple[str, str]] = []
    for pattern, cue in sections["rules"].items():
        with _noting(faults, f"[rules] {pattern}"):
            rules.append((pattern, _ruled_cue(path, pattern, cue, sections["cues"])))
    used = {path for override in cues.values() for path in (override.file, *override.phrases)}
    unnamed = tuple(path.name for path in sound_files(folder) if path not in used)
    profiles: list[tuple[str, str]] = []
    for pattern, profile in sections["profiles"].items():
        with _noting(faults, f"[profiles] {pattern}"):
            profiles.append((pattern, _profile(path, pattern, profile)))
    return Pack(folder=folder, cues=cues, rules=tuple(rules), profiles=tuple(profiles), unnamed=unnamed)


def _table(path: Path) -> dict[str, Any]:
    few = "make it a file of a few lines; cues new-pack shows one"
    try:
        return toml_table(file_bytes(path))
    except CueValueError as error:
        raise error.within(f"{path}: ", PackError, fix=few) from error
    except CueError as error:
        raise error.within("", PackError, fix=few) from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a plain ValueError
        fix = "correct the line that the message names; often a quote or bracket is missing, or a table is there twice"
        raise PackError(f"{path}: is not valid TOML: {error}", fix=fix) from error


def _check_name(path: Path, name: str, ruled: set[str]) -> None:
    where = f"{path}: [cues] {name!r}"
    if name == MOTIF or name.startswith(f"{MOTIF}:"):
        message = f"{where}: the name is taken; a rule that says {MOTIF!r} asks for derived motifs"
        raise PackError(message, fix="choose another name")
    if not is_plain_name(name):
        message = f"{where}: no name for a cue; it must be 1 to 80 printable characters that a file's name can have"
        raise PackError(f"{message} anywhere", fix=f"choose a name that a file may have{would_do(name)}")
    if name not in CATALOG and name not in ruled:
        message = f"{path}: [cues] {name}: no rule names it, and it is not one of {', '.join(CATALOG)}"
        fix = f'correct the name, or add a rule under [rules]: "TOOL" = "{name}"'
        raise PackError(message + did_you_mean(name, CATALOG), fix=fix)


def _ruled_cue(path: Path, pattern: str, cue: object, own: Mapping[str, Any]) -> str:
    where = f"{path}: [rules] {pattern!r}"
    name: str = typed(cue, str, where, "the name of a cue")
    known = list(dict.fromkeys((*CATALOG, *own, MOTIF)))
    if name not in known:
        message = f"{where} is {name!r}; no cue of that name; it must be one of {', '.join(known)}"
        fix = _OF_FILES if Path(name).suffix.lower() in ENDINGS else "correct the name, or add the cue under [cues]"
        raise PackError(message + did_you_mean(name, known), fix=fix)
    return name


def _profile(path: Path, pattern: str, profile: object) -> str:
    where = f"{path}: [profiles] {pattern!r}"
    name: str = typed(profile, str, where, "the name of a profile")
    if name not in PROFILES:
        message = f"{where} is {name!r}; it must be one of {', '.join(PROFILES)}{did_you_mean(name, PROFILES)}"
        raise PackError(message, fix="correct the name")
    return name


def _override(folder: Path, where: str, name: str, value: object, faults: list[PackError]) -> Override | None:
    """A cue's settings; None if its sound is at fault, and the error is in `faults`."""
    if isinstance(value, str):
        return Override(where=where, file=file_inside(folder, value, where), file_name=value)
    table: dict[str, Any] = typed(value, dict, where, "a file name or a table")
    faults += unknown_keys(table, ("file", *FIELDS, "phrases"), where, "a cue", _IN_SPECS)
    sounds = [key for key in (*_SOUNDS, "spec") if key in table]
    if len(sounds) > 1:
        raise PackError(f"{where}: has both {' and '.join(sounds)}; one is allowed", fix="delete one of them")
    if not sounds and name not in CATALOG:
        message = f"{where}: has neither file nor spec; a new cue needs one"
        raise PackError(message, fix='add file = "NAME.wav"')
    settings: dict[str, Any] = {}
    for key in (*_SOUNDS, *FIELDS):
        if key not in table:
            continue
        with _noting(faults, ""):
            given, at = table[key], f"{where}.{key}"
            of_phrases = key == "normalize" and "phrases" in table
            of_a_file = key in FIELDS_OF_FILES or (key == "loop" and isinstance(given, dict))
            if "file" not in table and of_a_file and not of_phrases:
                raise PackError(f"{at} is {given!r}; it is for files", fix="delete it, or give the cue a file")
            read = _FILES_OF.get(key)
            settings[key] = read(folder, given, at) if read else FIELDS[key](given, at)
    if any(key not in settings for key in sounds):
        return None
    return Override(where=where, file_name=str(table.get("file", "")), **settings)
