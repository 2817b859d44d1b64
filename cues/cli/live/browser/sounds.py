"""The cues that all pages share, loaded anew when a file of the pack changes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cues.cli._records import bank_of
from cues.cli._watching import state_of
from cues.errors import CueError
from cues.library.pack import find_pack_dir

if TYPE_CHECKING:
    from pathlib import Path

    from cues.library.bank import Bank

__all__ = ["Sounds"]


class Sounds:
    """The bank of a pack, as its files are now.

    Parameters
    ----------
    pack : Path or None
        Folder of a pack; None takes the machine's.

    Attributes
    ----------
    problem : str or None
        Why the present files cannot be loaded; `bank` then returns the cues loaded before.

    Raises
    ------
    CueError
        If the pack cannot be loaded at first.
    """

    def __init__(self, pack: Path | None) -> None:
        self.problem: str | None = None
        self._pack, self._loading = pack, threading.Lock()
        folder = find_pack_dir(pack)
        self._folders = [] if folder is None else [folder]
        self._state = state_of(self._folders)
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
                    self._bank, self.problem = bank_of(self._pack), None
                except CueError as error:
                    self.problem = str(error)
            return self._bank
