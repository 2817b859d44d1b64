"""The state of folders, to notice changes, and cues that are loaded anew when a file of their pack changes."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from typing import TYPE_CHECKING

from cues.cli._records import bank_of
from cues.errors import CueError
from cues.library.pack import find_pack_dir

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cues.library.bank import Bank

__all__ = ["POLL_S", "Sounds", "state_of"]

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


class Sounds:
    """The bank of a pack (None takes the machine's), as its files are now; threads may share it.

    While the files cannot be loaded, `problem` says why, and `bank` returns the cues loaded before. At first, the
    problem is raised.
    """

    def __init__(self, pack: Path | None) -> None:
        self.problem: str | None = None
        self.pack, self._loading = pack, threading.Lock()
        folder = find_pack_dir(pack)
        self._folders = [] if folder is None else [folder]
        self._state = self.state()
        self._bank = bank_of(pack)

    def state(self) -> str:
        """State of the files, for a watcher."""
        return state_of(self._folders)

    def bank(self) -> Bank:
        """The cues; blocks while a changed pack is loaded."""
        with self._loading:
            state = self.state()
            if state != self._state:
                self._state = state
                try:
                    self._bank, self.problem = bank_of(self.pack), None
                except CueError as error:
                    self.problem = str(error)
            return self._bank
