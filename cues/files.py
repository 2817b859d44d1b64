"""Atomic replacement of files, disk errors that name the file, and the folders of the user."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cues.errors import CueError, CueValueError, reason_of

__all__ = [
    "delete_oldest",
    "explained",
    "replacing",
    "toml_table",
    "unfinished_name",
    "user_cache_dir",
    "user_config_dir",
]

_APPLICATION = "cue-engine"
_PART = ".cues-part"
_PART_NAME = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}" + re.escape(_PART), re.DOTALL)

_MAX_TOML_BYTES, _MAX_DOTS = 128 * 1024, 500
"""Largest TOML file of a user, and the dots in one of its lines."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Temporary name beside `path`; the file replaces `path` if the block succeeds, and is deleted if it fails."""
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}{_PART}")
    try:
        yield part
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def unfinished_name(path: Path) -> str | None:
    """Final name of a temporary file that a killed process left; None for other files."""
    found = _PART_NAME.fullmatch(path.name)
    return found["name"] if found else None


def delete_oldest(paths: Iterable[Path], most: int) -> None:
    """Delete all but the `most` newest of these files; another process may delete some, too."""
    with contextlib.suppress(OSError):
        newest_first = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest_first[most:]:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def explained(path: Path, what: str = "cannot be written", kind: type[CueError] = CueError) -> Iterator[None]:
    """Raise an `OSError` of the block as a `kind` that gives path, action and reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: {what}: {reason_of(error)}") from error


def toml_table(data: bytes) -> dict[str, Any]:
    """The table in a user's TOML file that is safe to parse: for a key of n parts, tomllib takes memory in order of n².

    Raises
    ------
    CueValueError
        If the file is too large, or a line has too many dots.
    ValueError, RecursionError
        If it is not TOML in UTF-8.
    """
    import tomllib  # most processes read no such file

    if len(data) > _MAX_TOML_BYTES:
        raise CueValueError(f"has {len(data)} bytes; at most {_MAX_TOML_BYTES} are allowed")
    text = data.decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MAX_DOTS:
            raise CueValueError(f"line {number} has {line.count('.')} dots; at most {_MAX_DOTS} are allowed")
    return tomllib.loads(text)


def user_cache_dir() -> Path | None:
    """The user's cache folder for this package; None without a home."""
    return _users("user_cache_path")


def user_config_dir() -> Path | None:
    """The user's settings folder for this package; None without a home."""
    return _users("user_config_path")


def _users(kind: str) -> Path | None:
    import platformdirs

    try:
        folder: Path = getattr(platformdirs, kind)(_APPLICATION, appauthor=False)
    except (OSError, RuntimeError):
        return None
    # Older releases return "~/.cache", which would be relative to the working directory.
    return folder if folder.is_absolute() else None
