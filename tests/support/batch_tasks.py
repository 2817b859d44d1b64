"""Tasks for the tests of the batch runner: worker processes import them from here."""

import errno
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Count:
    """A task that works, and notes in a folder that it was done."""

    file: str
    folder: str

    def run(self):
        with (Path(self.folder) / self.file).open("a") as note:
            note.write("done\n")
        return {"answer": len(self.file)}


@dataclass(frozen=True, slots=True)
class Write:
    """A task that writes a text."""

    file: str
    output: str
    text: str

    def run(self):
        Path(self.output).write_text(self.text)
        return {"output": self.output}


@dataclass(frozen=True, slots=True)
class KillOnce:
    """A task that kills its worker the first time, as the system does when memory runs out."""

    file: str
    folder: str

    def run(self):
        mark = Path(self.folder) / f"{self.file}.killed"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"answer": -1}


@dataclass(frozen=True, slots=True)
class KillAlways:
    file: str

    def run(self):
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Block:
    """A task that says that it has begun, and never ends."""

    file: str

    def run(self):
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        threading.Event().wait()


@dataclass(frozen=True, slots=True)
class Fail:
    file: str

    def run(self):
        raise ValueError("of two\nlines")


@dataclass(frozen=True, slots=True)
class DiskFull:
    file: str

    def run(self):
        raise OSError(errno.ENOSPC, "No space left on device")
