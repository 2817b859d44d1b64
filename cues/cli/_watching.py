"""The state of folders, to notice changes."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["POLL_S", "state_of"]

POLL_S = 0.5
"""Default interval between checks, s."""


def state_of(folders: Sequence[Path]) -> str:
    """Digest of the names, times and sizes of all files in `folders`."""
    state = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            with contextlib.suppress(OSError):
                status = path.stat()
                state.update(repr((str(path), status.st_mtime_ns, status.st_size)).encode())
    return state.hexdigest()[:16]
