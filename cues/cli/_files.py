"""The files that a turn leaves: opened before anything is spoken, they grow as it is, so that nothing is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from cues.errors import CueError, reason_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TurnFiles"]


class TurnFiles:
    """`STEM.wav` (what is heard), `STEM-speech.wav` (the speech alone, sample for sample) and names for the rest.

    Until the turn is over, the sound lies in files that end in `.part`. They take their names, and the place of an
    earlier turn's files, only if `kept` is set: a turn of which nothing was heard leaves nothing and costs nothing.

    Parameters
    ----------
    folder : where the files go; it is made if it is not there.
    stem : their name.
    sample_rate : Hz.

    Attributes
    ----------
    kept : whether the files stay, to be set before the block is left.

    Raises
    ------
    CueError : the folder or a file cannot be written.
    """

    def __init__(self, folder: Path, stem: str, sample_rate: int) -> None:
        import soundfile

        self.kept = False
        self.wav, self.speech_wav = folder / f"{stem}.wav", folder / f"{stem}-speech.wav"
        self.png, self.json = folder / f"{stem}.png", folder / f"{stem}.json"
        self._folder, self._made = folder, [each for each in (folder, *folder.parents) if not each.exists()]
        self._parts = [path.with_name(f"{path.name}.part") for path in (self.wav, self.speech_wav)]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._outputs = [
                soundfile.SoundFile(path, "w", sample_rate, 1, "PCM_16", format="WAV") for path in self._parts
            ]
        except (OSError, soundfile.SoundFileError) as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for output in self._outputs:
            output.close()
        try:
            for part, path in zip(self._parts, (self.wav, self.speech_wav), strict=True):
                if self.kept:
                    part.replace(path)
                else:
                    part.unlink()
        except OSError as error:
            raise self._unwritable(error) from error
        for folder in [] if self.kept else self._made:
            folder.rmdir()

    def _unwritable(self, error: Exception) -> CueError:
        return CueError(f"cannot write into the folder {self._folder}: {reason_of(error)}")

    def write(self, mixed: NDArray[np.float32], speech: NDArray[np.float32]) -> None:
        """Append one frame to both WAV files."""
        for output, samples in zip(self._outputs, (mixed, speech), strict=True):
            output.write(samples)

    def write_json(self, value: dict[str, Any]) -> None:
        """Write the record."""
        self.json.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def read_wav(self) -> NDArray[np.float32]:
        """All that was written to `STEM.wav` until it was closed: float32, shape `(n_samples,)`."""
        import soundfile

        samples: NDArray[np.float32] = soundfile.read(self.wav, dtype="float32")[0]
        return samples
