"""Recordings in a folder, of a pattern, or in remote storage."""

from __future__ import annotations

import glob
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cues.errors import CueError, MissingFeatureError
from cues.extras import needed
from cues.library.audiofile import ENDINGS

__all__ = ["OnRecording", "Source", "absolute", "find_sources"]

_REMOTE = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+(::|://)")
_STAMPS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True, slots=True)
class Source:
    """A recording (a path, or a URL for fsspec), and its size and time of change or ETag when it was found."""

    file: str
    size: int
    stamp: str

    @classmethod
    def at(cls, path: Path) -> Source:
        """The file at `path`; a missing file has no size and no stamp, and raises when it is read."""
        try:
            status = path.stat()
        except OSError:
            return cls(str(path), 0, "")
        return cls(str(path), status.st_size, str(status.st_mtime_ns))

    def open(self) -> Path | IO[bytes]:
        """Path or binary file for `read_channels`."""
        if not _REMOTE.match(self.file):
            return Path(self.file)
        with _fsspec().open(self.file, "rb") as remote:
            return io.BytesIO(remote.read())


@dataclass(frozen=True, slots=True)
class OnRecording:
    """Base of the tasks on one recording."""

    source: Source

    @property
    def file(self) -> str:
        """Path or URL of the recording."""
        return self.source.file


def absolute(file: str) -> str:
    """The absolute path of a file; a URL is returned as it is."""
    return file if _REMOTE.match(file) else os.path.abspath(file)  # noqa: PTH100  (follows no links)


def find_sources(place: str) -> list[Source]:
    """Recordings at `place`, in order of their names; `CueError` if there are none.

    A place is a folder (searched recursively), a file, a pattern such as `calls/**/*.wav`, or one of these as a URL for
    fsspec (`s3://bucket/calls`, `memory://x/*.wav`).
    """
    found = _remote_sources(place) if _REMOTE.match(place) else _local_sources(place)
    if not found:
        raise CueError(f"{place}: no recordings there ({', '.join(ENDINGS)})")
    return sorted(found, key=lambda source: source.file)


def _local_sources(place: str) -> list[Source]:
    path = Path(place)
    if path.is_dir():
        paths = [each for each in path.rglob("*") if each.suffix.lower() in ENDINGS and not each.name.startswith(".")]
    elif path.exists():
        paths = [path]
    elif glob.escape(place) == place:
        raise CueError(f"{place}: there is no such folder or file")
    else:
        paths = [Path(name) for name in glob.glob(place, recursive=True)]  # noqa: PTH207  (takes absolute patterns)
    return [Source.at(each) for each in paths if each.is_file()]


def _remote_sources(place: str) -> list[Source]:
    try:
        system, path = _fsspec().core.url_to_fs(place)
        whole_folder = system.isdir(path)
        found = system.find(path, detail=True) if whole_folder else system.glob(path, detail=True)
    except MissingFeatureError:
        raise
    except Exception as error:
        # Each remote file system raises different errors.
        raise CueError(f"{place}: cannot be listed: {' '.join(str(error).split()) or type(error).__name__}") from error
    return [
        Source(
            system.unstrip_protocol(name),
            int(entry.get("size") or 0),
            next((str(entry[key]) for key in _STAMPS if entry.get(key)), ""),
        )
        for name, entry in found.items()
        if entry.get("type") != "directory" and (not whole_folder or name.lower().endswith(ENDINGS))
    ]


def _fsspec() -> Any:
    return needed("fsspec", "batch", "remote folders need fsspec")
