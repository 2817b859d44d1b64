"""Something made from the files of folders, and made anew when a file changes: a pack's cues, or the sound board."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from cues.cli._records import bank_of
from cues.errors import CueError
from cues.library.pack import find_pack_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cues.library.bank import Bank

__all__ = ["POLL_S", "Watched", "watched_bank"]

POLL_S = 0.5
"""Default interval between checks, s."""

Made = TypeVar("Made")


class Watched(Generic[Made]):
    """The result of `make`, which gets a digest of the files in `folders`; threads may share it.

    After a `CueError`, which is in `problem`, `value` returns the last good result; the first error is raised.
    """

    def __init__(self, make: Callable[[str], Made], folders: Sequence[Path]) -> None:
        self.problem: str | None = None
        self._make, self._folders, self._making = make, folders, threading.Lock()
        self._state = self.state()
        self._value = make(self._state)

    def state(self) -> str:
        """Digest of the names, times and sizes of all files."""
        state = hashlib.sha256()
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    state.update(repr((str(path), status.st_mtime_ns, status.st_size)).encode())
        return state.hexdigest()[:16]

    def value(self) -> Made:
        """The result; blocks while it is made. Callers at the same time share one."""
        with self._making:
            state = self.state()  # before `make`: a change meanwhile is another state
            if state != self._state:
                self._state = state
                try:
                    self._value, self.problem = self._make(state), None
                except CueError as error:
                    self.problem = str(error)
            return self._value


def watched_bank(pack: Path | None) -> Watched[Bank]:
    """The cues of a pack, or of this machine's for `None`."""
    folder = find_pack_dir(pack)
    return Watched(lambda _: bank_of(pack), [] if folder is None else [folder])
