"""Folders for compiled code, which are the same for all processes, and the digest that names the code."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cues.files import user_cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cache_folders", "source_digest"]


def cache_folders() -> Iterator[Path]:
    """The folders for compiled code, in order of preference; a folder may not exist, or be read-only."""
    named = os.environ.get("CUES_CACHE_DIR")
    if named:
        with contextlib.suppress(RuntimeError):  # "~" of a user without a home
            yield Path(named).expanduser() / "kernels"
    for base in (user_cache_dir, _private_temporary_folder):
        folder = base()
        if folder is not None:
            yield folder / "kernels"


def source_digest(versions: str) -> str:
    """Digest of every kernel's source and of `versions`, 20 hexadecimal digits."""
    digest = hashlib.sha256(versions.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(b"\0" + source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]


def _private_temporary_folder() -> Path | None:
    """A temporary folder that nobody else can read or write; compiled code is run."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"cue-engine-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else None
