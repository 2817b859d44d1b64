"""Plans: the cues of each recording and their times, as CSV with a header or as JSON lines."""

import csv
import io
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from cues.errors import CueError, CueValueError, did_you_mean, reason_of
from cues.units import checked_number

__all__ = ["Planned", "read_plan"]

_NEEDED = ("file", "cue", "time_s")
_OPTIONAL = ("gain_db", "output")
_MAX_TIME_S = 86_400.0
_GAIN_DB = (-60.0, 12.0)
_MAX_FAULTS_SHOWN = 20
_WRITTEN = (".wav", ".flac")


@dataclass(frozen=True, slots=True)
class Planned:
    """A recording, its cues (name, onset in s, gain in dB) in the plan's order, and its file in the output folder."""

    file: str
    cues: tuple[tuple[str, float, float], ...]
    output: str


def read_plan(path: Path, known_cues: Collection[str]) -> list[Planned]:
    """Recordings of a plan, in order of first mention.

    A plan is a `.csv` or `.jsonl` file with the columns `file`, `cue` and `time_s`, and optionally `gain_db` and
    `output`. Each line adds one cue to a file. Relative paths start at the plan's folder. The `CueValueError` for a
    plan with mistakes lists them with their lines; a plan that cannot be read raises `CueError`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = [*_lines(text, as_json=path.suffix.lower() in (".jsonl", ".ndjson"))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CueError(f"{path}: cannot be read: {reason_of(error)}") from error
    cues: dict[str, list[tuple[str, float, float]]] = {}
    outputs: dict[str, str] = {}
    owners: dict[PurePath, str] = {}
    faults: list[str] = []
    for number, line in lines:
        try:
            name, given, cue = _entry(line, known_cues)
        except (ValueError, TypeError, RecursionError) as error:
            faults.append(f"line {number}: {error}")
            continue
        file = str(path.parent / name)
        cues.setdefault(file, []).append(cue)
        output = outputs.setdefault(file, given or _default_output(name))
        if given not in ("", output):
            faults.append(f"line {number}: output is {given!r}; {file} has the output {output!r} already")
        owner = owners.setdefault(PurePath(output), file)
        if owner != file:
            faults.append(f"{file} and {owner} would both be written to {output}; give one of them another output")
    if not cues and not faults:
        faults.append(f"it names no recording; needed: {', '.join(_NEEDED)}; optional: {', '.join(_OPTIONAL)}")
    if faults:
        more = [f"… and {len(faults) - _MAX_FAULTS_SHOWN} more"] if len(faults) > _MAX_FAULTS_SHOWN else []
        raise CueValueError("\n  ".join([f"{path}:", *faults[:_MAX_FAULTS_SHOWN], *more]))
    return [Planned(file, tuple(wanted), outputs[file]) for file, wanted in cues.items()]


def _lines(text: str, *, as_json: bool) -> Iterable[tuple[int, Any]]:
    """Lines with their numbers: the text of a JSON line, a CSV line as a dict without its empty cells."""
    if as_json:
        return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    rows = csv.DictReader(io.StringIO(text), restkey="")
    return ((rows.line_num, {name: value for name, value in row.items() if value not in ("", None)}) for row in rows)


def _entry(line: Any, known_cues: Collection[str]) -> tuple[str, str, tuple[str, float, float]]:
    """The file, its output (`""` if none is given) and the cue of a line."""
    entry = json.loads(line) if isinstance(line, str) else line
    if not isinstance(entry, dict):
        raise CueValueError(f"is {type(entry).__name__}; it must be an object with {', '.join(_NEEDED)}")
    missing = [name for name in _NEEDED if name not in entry]
    unknown = [repr(name) for name in entry if name not in (*_NEEDED, *_OPTIONAL)]
    if missing or unknown:
        fault = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(unknown)}, which is unknown"
        raise CueValueError(f"{fault}; needed: {', '.join(_NEEDED)}; optional: {', '.join(_OPTIONAL)}")
    file, cue = _text("file", entry["file"]), _text("cue", entry["cue"])
    if cue not in known_cues:
        raise CueValueError(f"cue is {cue!r}; it must be one of {', '.join(known_cues)}{did_you_mean(cue, known_cues)}")
    time_s = _number("time_s", entry["time_s"], 0.0, _MAX_TIME_S)
    gain_db = _number("gain_db", entry.get("gain_db", 0.0), *_GAIN_DB)
    output = _text("output", entry["output"]) if "output" in entry else ""
    if output and not (_inside(output) and output.lower().endswith(_WRITTEN)):
        raise CueValueError(f"output is {output!r}; it must be a .wav or .flac file inside the output folder")
    return file, output, (cue, time_s, gain_db)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise CueValueError(f"{name} is {value!r}; it must be a non-empty string")
    return value


def _number(name: str, value: object, low: float, high: float) -> float:
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        number = value
    return checked_number(name, number, low, high)


def _default_output(file: str) -> str:
    """Output for `file`: the same relative path, or only its name if it is outside the plan's folder."""
    place = PurePath(file) if _inside(file) else PurePath(PurePath(file).name)
    return str(place if place.suffix.lower() in _WRITTEN else place.with_suffix(".wav"))


def _inside(output: str) -> bool:
    path = PurePath(output)
    return not path.is_absolute() and ".." not in path.parts and path.name not in ("", ".")
