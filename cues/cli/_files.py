"""Output files: those of a turn, which are written as it is spoken, pictures, and standard output."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from cues.cli._records import STANDARD
from cues.errors import CueError, reason_of
from cues.files import explained, replacing

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["TurnFiles", "save_picture", "write_standard_output"]

_DPI = 120


class TurnFiles:
    """A `Sink` into WAV files, which replace older ones only if `kept` is set inside of `with`."""

    def __init__(self, folder: Path, stem: str, sample_rate: int) -> None:
        import soundfile

        self.kept = False
        self.wav, self.speech_wav = folder / f"{stem}.wav", folder / f"{stem}-speech.wav"
        self.png, self.json = folder / f"{stem}.png", folder / f"{stem}.json"
        self._folder, self._made = folder, [each for each in (folder, *folder.parents) if not each.exists()]
        self._parts = [path.with_name(f"{path.name}.part") for path in (self.wav, self.speech_wav)]
        with self._explained():
            folder.mkdir(parents=True, exist_ok=True)
            self._outputs = [
                soundfile.SoundFile(os.fsencode(path), "w", sample_rate, 1, "PCM_16", format="WAV")
                for path in self._parts
            ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._explained():
            for output, part, path in zip(self._outputs, self._parts, (self.wav, self.speech_wav), strict=True):
                output.close()
                if self.kept:
                    part.replace(path)
                else:
                    part.unlink()
        for folder in [] if self.kept else self._made:
            folder.rmdir()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        from soundfile import SoundFileError

        try:
            yield
        except (OSError, SoundFileError) as error:
            hint = "" if isinstance(error, OSError) else " The disk may be full."  # libsndfile says "System error."
            raise CueError(f"cannot write into the folder {self._folder}: {reason_of(error)}{hint}") from error

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Append one frame to both WAV files."""
        with self._explained():
            for output, samples in zip(self._outputs, (mixed, speech), strict=True):
                output.write(samples)

    def write_json(self, value: dict[str, Any]) -> None:
        """Write the record."""
        with explained(self.json), replacing(self.json) as part:
            part.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def read_sound(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Samples of both WAV files after the `with` block, the mix and the speech: float32, shape `(n_samples,)`."""
        import soundfile

        mixed, speech = (soundfile.read(os.fsencode(path), dtype="float32")[0] for path in (self.wav, self.speech_wav))
        return mixed, speech


def save_picture(figure: Figure, path: Path) -> None:
    """Write a PNG to a file, or to standard output if the path is `-`."""
    # Leave out the version of matplotlib: the same sound gives the same file.
    settings: dict[str, Any] = {"format": "png", "dpi": _DPI, "metadata": {"Software": None}}
    if str(path) == STANDARD:
        buffer = io.BytesIO()
        figure.savefig(buffer, **settings)
        write_standard_output(buffer.getvalue())
        return
    with explained(path):
        figure.savefig(path, **settings)


def write_standard_output(data: bytes) -> None:
    """Write a file to standard output, unless it is a terminal."""
    if sys.stdout.isatty():
        raise CueError("standard output is a terminal; `-` writes a file to a pipe, as in `cues … > x.wav`")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
