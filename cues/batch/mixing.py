"""Mix of cues into one recording of a batch."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cues.batch.recordings import OnRecording
from cues.batch.rows import Row
from cues.errors import AudioFileError, CueValueError
from cues.files import explained, replacing, unfinished_name
from cues.library.audiofile import in_memory, read_channels
from cues.library.bank import Bank, load_bank
from cues.mixing.offline import Insert, mix_recording
from cues.signal.pcm import dithered_int16, int16_of_float

__all__ = ["COLUMNS", "Mix", "replace_recording", "sweep"]

COLUMNS = ("file", "status", "error", "output", "length_s", "sample_rate", "channels", "n_cues")
"""Columns of the table of mixed recordings."""

# These subtypes are kept; all others become 24 bits.
_SUBTYPES = ("PCM_16", "PCM_24", "FLOAT")


@dataclass(frozen=True, slots=True)
class Mix(OnRecording):
    """Task that mixes cues (name, onset in s, gain in dB) into a recording, and replaces `output` when it is complete.

    A change of `pack_stamp`, the state of the pack, invalidates earlier results.
    """

    cues: tuple[tuple[str, float, float], ...]
    output: str
    pack: str | None = None
    pack_stamp: str = ""

    def run(self) -> Row:
        """Mix each channel separately; samples without a cue or ducking keep their values."""
        channels, rate, subtype = read_channels(self.source.open(), self.file)
        length_s = len(channels) / rate
        late = [time_s for _, time_s, _ in self.cues if time_s > length_s]
        if late:
            raise CueValueError(f"a cue at {late[0]:g} s is after the recording's end, {length_s:.2f} s")
        bank = _bank(self.pack, self.pack_stamp)
        inserts = [Insert(cue=bank[name], at_s=time_s, gain_db=gain_db) for name, time_s, gain_db in self.cues]
        columns = [np.ascontiguousarray(channels[:, k]) for k in range(channels.shape[1])]
        mixed = np.stack([mix_recording(column, rate, inserts).samples for column in columns], axis=1)
        replace_recording(self.output, channels, mixed, rate, subtype)
        return {
            "output": self.output,
            "length_s": round(len(mixed) / rate, 6),
            "sample_rate": rate,
            "channels": channels.shape[1],
            "n_cues": len(self.cues),
        }


def replace_recording(
    name: str, before: NDArray[np.float32], samples: NDArray[np.float32], rate: int, subtype: str
) -> None:
    """Write `samples` to the file `name` when they are complete, in the sample format of the file `before`."""
    file_format = "FLAC" if name.lower().endswith(".flac") else "WAV"
    if subtype not in _SUBTYPES or (file_format == "FLAC" and subtype == "FLOAT"):
        subtype = "PCM_24"
    output = Path(name)
    data = in_memory(_encoded(before, samples, subtype), rate, file_format, subtype)
    with explained(output, kind=AudioFileError):
        output.parent.mkdir(parents=True, exist_ok=True)
        with replacing(output) as part:
            part.write_bytes(data)


@lru_cache(maxsize=4)
def _bank(pack: str | None, pack_stamp: str) -> Bank:
    del pack_stamp
    return load_bank(pack)


def sweep(outputs: Iterable[str]) -> None:
    """Delete temporary files that killed workers left beside these outputs."""
    paths = {Path(output) for output in outputs}
    for folder in {path.parent for path in paths}:
        for part in folder.glob(".*"):
            if folder / (unfinished_name(part) or ".") in paths:
                part.unlink(missing_ok=True)


def _encoded(before: NDArray[np.float32], mixed: NDArray[np.float32], subtype: str) -> NDArray[Any]:
    """Samples in the file's format; libsndfile scales by 32767 and would change untouched samples."""
    if subtype == "PCM_16":
        touched = np.ones(mixed.shape, dtype=bool)
        touched[: len(before)] = mixed[: len(before)] != before
        dithered = np.stack([dithered_int16(mixed[:, k]) for k in range(mixed.shape[1])], axis=1)
        return np.where(touched, dithered, int16_of_float(mixed))
    if subtype == "PCM_24":
        steps = np.clip(np.rint(mixed.astype(np.float64) * 8388608.0), -8388608, 8388607)
        return steps.astype(np.int32) << 8
    return mixed
