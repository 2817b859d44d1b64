"""Values in a `pack.toml`: readers that check them; every error names the place and what is allowed."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cues.errors import CueError, PackError, did_you_mean, reason_of
from cues.library.shaping import Loop
from cues.synthesis.catalog import CATALOG
from cues.synthesis.spec import MAX_CUE_MS, Spec
from cues.units import checked_number

__all__ = [
    "FIELDS",
    "FIELDS_OF_FILES",
    "TARGET_LU",
    "file_inside",
    "files_inside",
    "is_inside",
    "is_plain_name",
    "typed",
    "unknown_keys",
    "would_do",
]

_GAIN_DB = (-40.0, 20.0)
TARGET_LU = (-40.0, 10.0)
"""Range of a cue's level against speech, LU."""
_LOOP_KEYS = ("start_ms", "end_ms", "period_ms")
_LOOP_MS = (0.0, MAX_CUE_MS)
_MAX_NAME = 80
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])((?:\..*)?)", re.IGNORECASE)
"""Names that Windows keeps for devices, with any extension."""
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')


def is_plain_name(name: object) -> bool:
    """Whether `name` is a valid file name without a folder, on any system."""
    return (
        isinstance(name, str)
        and 1 <= len(name) <= _MAX_NAME
        and name.isprintable()
        and name == name.strip(" .")
        and _NOT_IN_NAMES.isdisjoint(name)
        and not _DEVICES.fullmatch(name)
    )


def would_do(name: str) -> str:
    """End of a message about a name that is not plain, with a similar one that is; empty without one."""
    device = _DEVICES.fullmatch(name)
    return f"; {device[1]}_{device[2]} would do" if device else ""


def is_inside(folder: Path, path: Path) -> bool:
    """Whether a path lies in the folder after symbolic links are followed; a circle of links raises nothing."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def file_inside(folder: Path, value: object, where: str) -> Path:
    """Path of the file `value`, which must lie in the folder, also after symbolic links are followed."""
    name: str = typed(value, str, where, "the name of a file in the pack", 'write the name in quotes: "NAME.wav"')
    try:
        path = folder / name
        inside = is_inside(folder, path) and not Path(name).is_absolute()
        faults = (
            (not inside, f"it must lie inside the pack's folder, {folder}", "copy the file into the pack's folder"),
            (not path.exists(), f"there is no such file in {folder}", "put the file there, or correct its name"),
            (not path.is_file(), "it must be a regular file", "name an audio file"),
        )
    except (OSError, ValueError, RuntimeError) as error:
        fault, fix = f"it must be a file name: {reason_of(error)}", "write the name of a file in the pack's folder"
        raise PackError(f"{where} is {name!r}; {fault}", fix=fix) from error
    for wrong, fault, fix in faults:
        if wrong:
            raise PackError(f"{where} is {name!r}; {fault}", fix=fix)
    return path


def files_inside(folder: Path, value: object, where: str) -> tuple[Path, ...]:
    """Paths of the files in the list `value`, each as `file_inside` has it."""
    names = typed(value, list, where, "a list of files in the pack")
    if not names:
        raise PackError(f"{where} is empty; it must name at least one file", fix='write phrases = ["NAME.wav"]')
    return tuple(file_inside(folder, name, f"{where}[{number}]") for number, name in enumerate(names))


def _spec(value: object, where: str) -> Spec:
    if isinstance(value, str):
        if value not in CATALOG:
            message = f"{where} is {value!r}; it must be a table or one of {', '.join(CATALOG)}"
            raise PackError(message + did_you_mean(value, CATALOG), fix="name a built-in cue")
        return CATALOG[value].spec
    try:
        return Spec.from_table(typed(value, dict, where, "a table or the name of a built-in cue"))
    except PackError:
        raise
    except CueError as error:
        raise error.within(
            f"{where}: ", PackError, fix="correct the value; cues export writes specs as JSON"
        ) from error


def _loop(value: object, where: str) -> Loop | bool:
    if isinstance(value, bool):
        return value
    table: dict[str, Any] = typed(value, dict, where, "true, false or a table")
    for error in unknown_keys(table, _LOOP_KEYS, where, "a loop", {}):
        raise error
    return Loop(**{key: _number(number, f"{where}.{key}", *_LOOP_MS) for key, number in table.items()})


def typed(value: object, kind: type, where: str, allowed: str, fix: str = "") -> Any:
    """`value` if its type is `kind`; else raise, with `allowed` in the message."""
    if not isinstance(value, kind):
        raise PackError(f"{where} is {value!r}; it must be {allowed}", fix=fix or f"write {allowed}")
    return value


def _bool(value: object, where: str) -> bool:
    return bool(typed(value, bool, where, "true or false", "write true or false, without quotes"))


def unknown_keys(
    table: Mapping[str, object], allowed: tuple[str, ...], where: str, what: str, elsewhere: Mapping[str, str]
) -> Iterator[PackError]:
    """Errors for the unknown keys of `table`; `elsewhere` has the fix for keys that belong to another table."""
    for key in table:
        if key not in allowed:
            message = f"{where} {key!r} is unknown; {what} has {', '.join(allowed)}{did_you_mean(key, allowed)}"
            yield PackError(message, fix=elsewhere.get(key, "correct its spelling, or delete it"))


def _number(value: object, where: str, low: float, high: float) -> float:
    try:
        return checked_number(where, value, low, high)
    except CueError as error:
        raise error.within("", PackError, fix="write a number in that range, without quotes") from None


FIELDS: Mapping[str, Callable[[Any, str], Any]] = {
    "spec": _spec,
    "gain_db": lambda value, where: _number(value, where, *_GAIN_DB),
    "target_lu": lambda value, where: _number(value, where, *TARGET_LU),
    "normalize": _bool,
    "trim": _bool,
    "loop": _loop,
}
"""Key of a cue's table, besides `file` → reader of its value; the reader also gets the place."""

FIELDS_OF_FILES = ("normalize", "trim")
"""Keys that need a file; so do the bounds of a loop."""
