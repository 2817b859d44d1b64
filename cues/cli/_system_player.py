"""Playback by a program of the system, where miniaudio is not installed or finds no device."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cues.library.audiofile import write_audio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["installed", "play"]

# In order of preference: those of a sound server first. ffplay is not among them: without a device it exits with 0.
_PLAYERS = (("pw-play",), ("paplay",), ("afplay",), ("aplay", "-q"), ("play", "-q"))
_EXTRA_S = 20.0


def installed() -> list[str]:
    """Names of the programs that `play` would try."""
    return [command[0] for command in _PLAYERS if sys.platform != "win32" and shutil.which(command[0])]


def play(samples: NDArray[np.float32], sample_rate: int) -> str | None:
    """Play `samples` to the end; the name of the program that did, or None if no program could."""
    with tempfile.TemporaryDirectory(prefix="cues-") as folder:
        path = Path(folder) / "cues.wav"
        write_audio(path, samples, sample_rate, "wav", "16")
        longest_s = len(samples) / sample_rate + _EXTRA_S
        return next((command[0] for command in _PLAYERS if _succeeds(command, path, longest_s)), None)


def _succeeds(command: tuple[str, ...], path: Path, longest_s: float) -> bool:
    program = shutil.which(command[0])
    if program is None or sys.platform == "win32":
        return False
    quiet = subprocess.DEVNULL
    try:
        ended = subprocess.run(  # noqa: S603  (a program of the table above, a file written here)
            [program, *command[1:], str(path)], stdin=quiet, stdout=quiet, stderr=quiet, timeout=longest_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
